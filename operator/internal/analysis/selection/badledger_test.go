package selection_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
	"assay.dev/assay/operator/test/folderledger"
)

func TestAnalysis_BadLedgers(t *testing.T) {
	t.Parallel()
	key := func(trial string) string {
		return fmt.Sprintf("attempts/%s/pod-%s/%s.json", trial[:10], trial[:10], trial)
	}
	const trial, other = "w000-b0001-s00004", "w000-b0002-s00004"
	cases := map[string]struct {
		spoil    func(*folderledger.Ledger)
		trials   analysis.Trials
		excluded string // The key or id of the only exclusion, or empty.
		reason   string
		changed  bool // The evidence digest changes.
	}{
		"a missing attempt leaves its trial missing": {
			spoil:  func(l *folderledger.Ledger) { l.Remove(key(trial)) },
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Missing: 1, Attempts: 191}, changed: true,
		},
		"an attempt copied to another key is named and not counted twice": {
			spoil: func(l *folderledger.Ledger) {
				l.Write("attempts/w000-b0001/pod-copy/"+trial+".json", l.Read(key(trial)))
			},
			trials: analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192}, changed: true,
			excluded: "attempts/w000-b0001/pod-copy/" + trial + ".json", reason: "which belongs at " + key(trial) + ": it was moved or changed",
		},
		"an attempt copied over another one is named and spoils it": {
			spoil:  func(l *folderledger.Ledger) { l.Write(key(other), l.Read(key(trial))) },
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 191}, changed: true,
			excluded: key(other), reason: "it was moved or changed",
		},
		"a truncated attempt is named and spoils its trial": {
			spoil:  func(l *folderledger.Ledger) { l.Write(key(trial), l.Read(key(trial))[:400]) },
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 191}, changed: true,
			excluded: key(trial), reason: "truncated",
		},
		"an empty attempt is named and spoils its trial": {
			spoil:  func(l *folderledger.Ledger) { l.Write(key(trial), nil) },
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 191}, changed: true,
			excluded: key(trial), reason: "",
		},
		"an attempt of another run is named and spoils its trial": {
			spoil: func(l *folderledger.Ledger) {
				l.Replace(key(trial), "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11", "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c12")
			},
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "it is of run uid",
		},
		"an attempt with another argument than its cell is named and spoils its trial": {
			spoil:  func(l *folderledger.Ledger) { l.Replace(key(trial), "--iterations=30", "--iterations=29") },
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `is "--iterations=29" and the cell has "--iterations=30"`,
		},
		"an attempt with another program than its cell is named and spoils its trial": {
			spoil:  func(l *folderledger.Ledger) { l.Replace(key(trial), "/usr/local/bin/pir-scan", "/tmp/pir-scan") },
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `it ran "/tmp/pir-scan" and the cell runs "/usr/local/bin/pir-scan"`,
		},
		"an attempt with other parameters than its cell is named and spoils its trial": {
			spoil:  func(l *folderledger.Ledger) { l.Replace(key(trial), `"iterations":"30"`, `"iterations":"31"`) },
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `iterations is "31" here and "30" there`,
		},
		"a result changed after the run was analysed is named and spoils its trial": {
			spoil: func(l *folderledger.Ledger) {
				l.Analyze()
				l.Replace(key(trial), `"durationSeconds":`, `"durationSeconds":1`)
			},
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "its object had sha256",
		},
		"analysing again does not hide a change": {
			spoil: func(l *folderledger.Ledger) {
				l.Analyze()
				l.Replace(key(trial), `"durationSeconds":`, `"durationSeconds":1`)
				l.Analyze()
			},
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "its object had sha256",
		},
		"an attempt removed after the run was analysed is named": {
			spoil: func(l *folderledger.Ledger) {
				l.Analyze()
				l.Remove(key(trial))
			},
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Missing: 1, Attempts: 191}, changed: true,
			excluded: key(trial), reason: "and is gone",
		},
		"an attempt that came after the run was analysed counts": {
			spoil: func(l *folderledger.Ledger) {
				late := l.Read(key(trial))
				l.Remove(key(trial))
				l.Analyze()
				l.Write(key(trial), late)
			},
			trials: analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192},
		},
		"a damaged list of analysed objects is reported, and the existing objects count": {
			spoil: func(l *folderledger.Ledger) {
				l.Analyze()
				l.Write("analysis/000/evidence.sha256", []byte("nonsense\n"))
			},
			trials:   analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192},
			excluded: "analysis/000/evidence.sha256", reason: "line 1 is not the sha256sum of an attempt",
		},
		"an object that is no attempt is named": {
			spoil:  func(l *folderledger.Ledger) { l.Write("attempts/notes.txt", []byte("hello")) },
			trials: analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192}, changed: true,
			excluded: "attempts/notes.txt", reason: "invalid attempt",
		},
	}
	sound := folderledger.New(t).Analyze()
	if len(sound.Excluded) > 0 {
		t.Fatal(sound.Excluded)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := folderledger.New(t)
			c.spoil(l)
			got := l.Analyze()
			if got.Trials != c.trials {
				t.Errorf("trials %+v, want %+v", got.Trials, c.trials)
			}
			switch {
			case c.excluded == "" && len(got.Excluded) > 0:
				t.Errorf("excluded %+v", got.Excluded)
			case c.excluded != "" && (len(got.Excluded) != 1 || got.Excluded[0].Attempt != c.excluded ||
				!strings.Contains(got.Excluded[0].Reason, c.reason)):
				t.Errorf("excluded %+v, want %s for %q", got.Excluded, c.excluded, c.reason)
			}
			if (got.Evidence != sound.Evidence) != c.changed {
				t.Errorf("evidence %s, and of the sound ledger %s; changed: want %v", got.Evidence, sound.Evidence, c.changed)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

func TestMissingWave_GapsAndAlterationsAreReported(t *testing.T) {
	t.Parallel()
	const trial = "attempts/w000-b0001/pod-w000-b0001/w000-b0001-s00004.json"
	for name, c := range map[string]struct {
		spoil func(*folderledger.Ledger)
		says  string // Part of an exclusion or a warning.
	}{
		"a missing attempt": {func(l *folderledger.Ledger) { l.Remove(trial) }, "1 missing), first w000-b0001-s00004"},
		"Succeeded beside an exit code": {
			func(l *folderledger.Ledger) { l.Replace(trial, `"exitCode":0`, `"exitCode":3`) }, "outcome is Succeeded and exitCode 3",
		},
		"Succeeded beside a signal": {func(l *folderledger.Ledger) { l.Replace(trial, `"exitCode":0`, `"signal":9`) }, "outcome is Succeeded and signal 9"},
		"Failed beside a result": {
			func(l *folderledger.Ledger) { l.Replace(trial, `"outcome":"Succeeded"`, `"outcome":"Failed"`) }, "exitCode is 0 and there is a result",
		},
		"NotStarted beside a result": {
			func(l *folderledger.Ledger) { l.Replace(trial, `"outcome":"Succeeded"`, `"outcome":"NotStarted"`) }, "it did start, and counts as failed",
		},
		"an unknown outcome":   {func(l *folderledger.Ledger) { l.Replace(trial, `"outcome":"Succeeded"`, `"outcome":"Fine"`) }, "$.outcome"},
		"an unknown isolation": {func(l *folderledger.Ledger) { l.Replace(trial, `"level":"ExclusiveCPUs"`, `"level":"Alone"`) }, "$.isolation.level"},
		"an unknown purpose": {
			func(l *folderledger.Ledger) {
				l.Replace("waves/000/wave.json", `"purpose":"screen"`, `"purpose":"show"`)
			}, "$.purpose",
		},
		"an unknown field": {func(l *folderledger.Ledger) { l.Replace(trial, `"slot":4`, `"slot":4,"slat":4`) }, "slat"},
		"a number of 1e300": {func(l *folderledger.Ledger) {
			l.Replace(trial, `"latency":{"unit":"s","samples":[`, `"latency":{"unit":"s","samples":[1e300,`)
		}, "allowed are 0 and magnitudes"},
		"a number beyond JSON's": {
			func(l *folderledger.Ledger) {
				l.Replace(trial, `"latency":{"unit":"s","samples":[`, `"latency":{"unit":"s","samples":[1e999,`)
			}, "w000-b0001-s00004",
		},
		"a negative time": {func(l *folderledger.Ledger) {
			l.Replace(trial, `"latency":{"unit":"s","samples":[`, `"latency":{"unit":"s","samples":[-1,`)
		}, "negative time"},
		"a negative duration": {func(l *folderledger.Ledger) { l.Replace(trial, `"durationSeconds":`, `"durationSeconds":-`) }, "$.durationSeconds"},
		"a duration far shorter than the samples": {
			func(l *folderledger.Ledger) {
				l.Write(trial, regexp.MustCompile(`"durationSeconds":[0-9.]+`).ReplaceAll(l.Read(trial), []byte(`"durationSeconds":0.001`)))
			}, "contradicts the runner's readings in 1 trials: pod-",
		},
		"an object too large": {
			func(l *folderledger.Ledger) { l.Write(trial, make([]byte, 64<<20+1)) }, "it has 67108865 bytes and at most 67108864 are read",
		},
		"a block that is there twice": {
			func(l *folderledger.Ledger) {
				l.Replace("waves/000/wave.json", `"id":"w000-b0002"`, `"id":"w000-b0001"`)
			},
			`blocks[2].id "w000-b0001" is used twice`,
		},
		"a slot of no cell": {
			func(l *folderledger.Ledger) { l.Replace("waves/000/wave.json", `"warmup":[0,`, `"warmup":[99,`) }, "has cell 99 in slot 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := folderledger.New(t)
			c.spoil(l)
			got := l.Analyze()
			named := func(text string) bool { return strings.Contains(text, c.says) }
			if !slices.ContainsFunc(got.Warnings, named) &&
				!slices.ContainsFunc(got.Excluded, func(e analysis.Exclusion) bool { return named(e.Attempt + " " + e.Reason) }) {
				t.Errorf("excluded %+v, warnings %q: want %q", got.Excluded, got.Warnings, c.says)
			}
			// The list of the objects read can be parsed.
			l.Analyze()
		})
	}
}

func TestMissingWave_IsReportedAndPreventsDecision(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*analyzed.Run){
		"the plan and all of it": func(l *analyzed.Run) {
			l.Waves = slices.Delete(l.Waves, 1, 2)
			l.Retain(func(a record.Attempt) bool { return a.Wave != 1 })
		},
		"the plan": func(l *analyzed.Run) { l.Waves = slices.Delete(l.Waves, 1, 2) },
		"the plans and one wave's attempts": func(l *analyzed.Run) {
			l.Waves = nil
			l.Retain(func(a record.Attempt) bool { return a.Wave != 1 })
		},
		"the newest plan": func(l *analyzed.Run) { l.Waves = l.Waves[:2] },
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			world := fixture.NewWorld(fixture.Scenarios()[0], -0.06, 1, 2)
			for number := 1; number < 3; number++ {
				wave, err := fixture.Wave(l.Exp, number, 10*number, 10)
				if err != nil {
					t.Fatal(err)
				}
				l.Attempts = append(l.Attempts, world.Run(l.Exp, wave)...)
				l.Waves = append(l.Waves, *wave)
			}
			through := func() *analysis.Analysis {
				return analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts}, 2)
			}
			if got := through(); got.Verdict != fixture.Go {
				t.Fatalf("the whole ledger: %s", got.Candidates[0].Reason)
			}
			spoil(l)
			got := through()
			if got.Verdict != fixture.Inconclusive || !strings.Contains(got.Candidates[0].Reason, "is missing, cannot be read or contradicts") {
				t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
			}
			if !slices.ContainsFunc(got.Excluded, func(e analysis.Exclusion) bool { return strings.HasPrefix(e.Attempt, "waves/00") }) {
				t.Errorf("excluded %+v", got.Excluded[:min(2, len(got.Excluded))])
			}
		})
	}
}

// An object may claim any wave number. Of the missing waves before it only the first are listed.
func TestWaveNumber_LargeValueIsCheap(t *testing.T) {
	t.Parallel()
	const far = 300_000
	for name, spoil := range map[string]func(*analyzed.Run){
		"an attempt": func(l *analyzed.Run) {
			attempt := l.Attempts[0]
			attempt.Wave, attempt.Block = far, record.BlockName(far, 0)
			attempt.Trial = record.TrialName(attempt.Block, 0, false)
			attempt.ID = "simulated/" + attempt.Trial
			l.Attempts = append(l.Attempts, attempt)
		},
		"a plan that cannot be read": func(l *analyzed.Run) {
			l.Problems = append(l.Problems, record.Problem{Source: record.Source{Key: record.WaveKey(far)}, Reason: "it is truncated"})
		},
	} {
		l := analyzed.SimulatePair(t, 0.94, nil)
		spoil(l)
		got := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Problems: l.Problems}, far)
		if got.Verdict != fixture.Inconclusive || !strings.Contains(got.Candidates[0].Reason, "waves/001/wave.json is missing") {
			t.Errorf("%s: %s: %s", name, got.Verdict, got.Candidates[0].Reason)
		}
		if named := len(got.Excluded); named > 200 {
			t.Errorf("%s: %d objects are named as missing", name, named)
		}
	}
}
