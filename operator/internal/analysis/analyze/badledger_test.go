package analyze_test

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
)

func TestAnalysis_BadLedgers(t *testing.T) {
	key := func(trial string) string {
		return fmt.Sprintf("attempts/%s/pod-%s/%s.json", trial[:10], trial[:10], trial)
	}
	const trial, other = "w000-b0001-s00003", "w000-b0002-s00003"
	cases := map[string]struct {
		spoil    func(*folderLedger)
		trials   analysis.Trials
		excluded string // The key or id of the only exclusion, or empty.
		reason   string
		changed  bool // The evidence digest changes.
	}{
		"a missing attempt leaves its trial missing": {
			spoil:  func(l *folderLedger) { l.Remove(key(trial)) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Missing: 1, Attempts: 143}, changed: true,
		},
		"an attempt copied to another key is named and not counted twice": {
			spoil: func(l *folderLedger) {
				l.Write("attempts/w000-b0001/pod-copy/"+trial+".json", l.Read(key(trial)))
			},
			trials: analysis.Trials{Planned: 144, Used: 96, Warmups: 48, Attempts: 144}, changed: true,
			excluded: "attempts/w000-b0001/pod-copy/" + trial + ".json", reason: "which belongs at " + key(trial) + ": it was moved or changed",
		},
		"an attempt copied over another one is named and spoils it": {
			spoil:  func(l *folderLedger) { l.Write(key(other), l.Read(key(trial))) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 143}, changed: true,
			excluded: key(other), reason: "it was moved or changed",
		},
		"a truncated attempt is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.Write(key(trial), l.Read(key(trial))[:400]) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 143}, changed: true,
			excluded: key(trial), reason: "truncated",
		},
		"an empty attempt is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.Write(key(trial), nil) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 143}, changed: true,
			excluded: key(trial), reason: "",
		},
		"an attempt of another run is named and spoils its trial": {
			spoil: func(l *folderLedger) {
				l.Replace(key(trial), "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11", "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c12")
			},
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "it is of run uid",
		},
		"an attempt with another argument than its cell is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.Replace(key(trial), "--iterations=30", "--iterations=29") },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `is "--iterations=29" and the cell has "--iterations=30"`,
		},
		"an attempt with another program than its cell is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.Replace(key(trial), "/usr/local/bin/pir-scan", "/tmp/pir-scan") },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `it ran "/tmp/pir-scan" and the cell runs "/usr/local/bin/pir-scan"`,
		},
		"an attempt with other parameters than its cell is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.Replace(key(trial), `"iterations":"30"`, `"iterations":"31"`) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `iterations is "31" here and "30" there`,
		},
		"a result changed after the run was analysed is named and spoils its trial": {
			spoil: func(l *folderLedger) {
				l.Analyze()
				l.Replace(key(trial), `"durationSeconds":`, `"durationSeconds":1`)
			},
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "its object had sha256",
		},
		"analysing again does not hide a change": {
			spoil: func(l *folderLedger) {
				l.Analyze()
				l.Replace(key(trial), `"durationSeconds":`, `"durationSeconds":1`)
				l.Analyze()
			},
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "its object had sha256",
		},
		"an attempt removed after the run was analysed is named": {
			spoil: func(l *folderLedger) {
				l.Analyze()
				l.Remove(key(trial))
			},
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Missing: 1, Attempts: 143}, changed: true,
			excluded: key(trial), reason: "and is gone",
		},
		"an attempt that came after the run was analysed counts": {
			spoil: func(l *folderLedger) {
				late := l.Read(key(trial))
				l.Remove(key(trial))
				l.Analyze()
				l.Write(key(trial), late)
			},
			trials: analysis.Trials{Planned: 144, Used: 96, Warmups: 48, Attempts: 144},
		},
		"a damaged list of analysed objects is reported, and the existing objects count": {
			spoil: func(l *folderLedger) {
				l.Analyze()
				l.Write("analysis/000/evidence.sha256", []byte("nonsense\n"))
			},
			trials:   analysis.Trials{Planned: 144, Used: 96, Warmups: 48, Attempts: 144},
			excluded: "analysis/000/evidence.sha256", reason: "line 1 is not the sha256sum of an attempt",
		},
		"an object that is no attempt is named": {
			spoil:  func(l *folderLedger) { l.Write("attempts/notes.txt", []byte("hello")) },
			trials: analysis.Trials{Planned: 144, Used: 96, Warmups: 48, Attempts: 144}, changed: true,
			excluded: "attempts/notes.txt", reason: "invalid attempt",
		},
	}
	sound := newFolderLedger(t).Analyze()
	if len(sound.Excluded) > 0 {
		t.Fatal(sound.Excluded)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newFolderLedger(t)
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

// A program that makes the records of its slow or wrong trials unusable hides them, and must not win by it.
func TestCompletes_TrialsWithoutUsableRecordAreNoSuccess(t *testing.T) {
	parity := assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual}
	items := regexp.MustCompile(`"items":[0-9]+`)
	unreadable := func(l *folderLedger, key string) {
		l.Write(key, items.ReplaceAll(l.Read(key), []byte(`"items":9223372036854775808`)))
	}
	const arm = `"arm":"fused-m4r"`
	// twice executes every block once more, and has the run analysed.
	twice := func(l *folderLedger) {
		for _, key := range l.Attempts() {
			l.Write(strings.Replace(key, "/pod-", "/pod-copy-", 1), l.Read(key))
		}
		l.Analyze()
	}
	for name, c := range map[string]struct {
		gates        []assayv1alpha1.Gate
		before       func(*folderLedger)
		arm          string // Empty is the candidate.
		spoil        func(l *folderLedger, key string)
		want         experiment.Verdict
		gate, reason string
		warning      string
	}{
		"as they are": {spoil: func(*folderLedger, string) {}, want: fixture.Go},
		"a count that Go cannot read": {spoil: unreadable, want: fixture.Inconclusive, gate: "completes", reason: "76 of 80 trials completed against at least " +
			"1.000: 4 unreadable (first w000-b0000-s"},
		"of the baseline": {arm: `"arm":"loop"`, spoil: unreadable, want: fixture.Inconclusive, gate: "completes", reason: "4 unreadable"},
		"a share that is reached without them holds": {
			gates: []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}, spoil: unreadable, want: fixture.Go,
		},
		"an output that differs in them is not equal": {
			gates: []assayv1alpha1.Gate{parity, {Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}},
			spoil: func(l *folderLedger, key string) {
				l.Write(key, regexp.MustCompile(`"digest":"..`).ReplaceAll(l.Read(key), []byte(`"digest":"00`)))
				unreadable(l, key)
			}, want: fixture.Inconclusive, gate: "same", reason: "the outputs of 4 trials of arm fused-m4r are not known",
		},
		"an output of the baseline that is not known is not equal": {
			gates: []assayv1alpha1.Gate{parity, {Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}, arm: `"arm":"loop"`,
			spoil: unreadable, want: fixture.Inconclusive, gate: "same", reason: "the outputs of 4 trials of arm loop are not known",
		},
		"a record of another run": {spoil: func(l *folderLedger, key string) {
			l.Replace(key, "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11", "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c12")
		}, want: fixture.Inconclusive, gate: "completes", reason: "4 not part of this experiment"},
		"a record that was changed": {before: func(l *folderLedger) { l.Analyze() }, spoil: func(l *folderLedger, key string) {
			l.Replace(key, `"durationSeconds":`, `"durationSeconds":1`)
		}, want: fixture.Inconclusive, gate: "completes", reason: "4 changed since it was analysed before"},
		"a record that was taken away": {before: func(l *folderLedger) { l.Analyze() }, spoil: func(l *folderLedger, key string) {
			l.Remove(key)
		}, want: fixture.Inconclusive, gate: "completes", reason: "4 changed since it was analysed before"},
		"a record that was taken away, of a share that is reached without it": {
			gates:  []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}},
			before: func(l *folderLedger) { l.Analyze() }, spoil: func(l *folderLedger, key string) { l.Remove(key) },
			want: fixture.Inconclusive, gate: "gain", reason: "was present in an earlier analysis, and is missing or changed",
		},
		"a record that another execution also has, and that was taken away": {before: twice, spoil: func(l *folderLedger, key string) {
			l.Remove(key)
		}, want: fixture.Inconclusive, gate: "gain", reason: "is missing or changed"},
		"a record that another execution also has, and that was changed": {before: twice, spoil: func(l *folderLedger, key string) {
			l.Replace(key, `"durationSeconds":`, `"durationSeconds":1`)
		}, want: fixture.Inconclusive, gate: "done", reason: "is missing or changed",
			gates: []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}},
		"a record that another execution also has, and that is unreadable": {before: twice,
			spoil: func(l *folderLedger, key string) { l.Write(key, []byte("{")) },
			want:  fixture.Inconclusive, gate: "gain", reason: "is missing or changed"},
		"one that another execution cannot read is a loss": {spoil: func(l *folderLedger, key string) {
			l.Write(strings.Replace(key, "/pod-", "/pod-copy-", 1), []byte("{"))
		}, want: fixture.Go, warning: "4 of no use in another execution"},
		"a record that another execution also has": {spoil: func(l *folderLedger, key string) {
			l.Write(strings.Replace(key, "/pod-", "/pod-copy-", 1), l.Read(key))
		}, want: fixture.Go},
	} {
		t.Run(name, func(t *testing.T) {
			l := folderLedgerOf(t, 10, append(c.gates, fixture.GainAt8("1.5"))...)
			if c.before != nil {
				c.before(l)
			}
			left := 4
			for _, key := range l.Attempts() {
				if left > 0 && bytes.Contains(l.Read(key), []byte(cmp.Or(c.arm, arm))) {
					left--
					c.spoil(l, key)
				}
			}
			got := l.Analyze()
			at := slices.IndexFunc(got.Candidates, func(c analysis.Candidate) bool { return c.Name == "fused-m4r" })
			if got.Candidates[at].Verdict != c.want {
				t.Errorf("%s: %s, want %s", got.Candidates[at].Verdict, got.Candidates[at].Reason, c.want)
			}
			if !slices.ContainsFunc(got.Gates, func(g analysis.GateResult) bool {
				return g.Gate == c.gate && g.Outcome == c.want && strings.Contains(g.Message, c.reason)
			}) && c.gate != "" {
				t.Errorf("no gate %s that is %s with %q: %+v", c.gate, c.want, c.reason, got.Gates)
			}
			if !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, c.warning) }) && c.warning != "" {
				t.Errorf("warnings %q, want one with %q", got.Warnings, c.warning)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}
