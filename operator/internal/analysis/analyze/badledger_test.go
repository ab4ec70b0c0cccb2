package analyze

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

// folderLedger is a simulated run in a folder, ready to be spoilt.
type folderLedger struct {
	t      *testing.T
	folder string
}

func newFolderLedger(t *testing.T) *folderLedger {
	t.Helper()
	return folderLedgerOf(t, 4, gainAt8("1.5"))
}

func folderLedgerOf(t *testing.T, blocks int, asked ...assayv1alpha1.Gate) *folderLedger {
	t.Helper()
	exp, err := fixture.ScanExperiment(gates(asked...))
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.Machine{Seed: 1, Noise: quiet, Seconds: fixture.ScanSeconds}.Run(exp, wave)
	objects, err := fixture.Objects(exp, []*record.Wave{wave}, attempts)
	if err != nil {
		t.Fatal(err)
	}
	l := &folderLedger{t, t.TempDir()}
	for key, data := range objects {
		l.write(key, data)
	}
	return l
}

func (l *folderLedger) write(key string, data []byte) {
	path := filepath.Join(l.folder, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *folderLedger) read(key string) []byte {
	data, err := os.ReadFile(filepath.Join(l.folder, filepath.FromSlash(key)))
	if err != nil {
		l.t.Fatal(err)
	}
	return data
}

func (l *folderLedger) remove(key string) {
	if err := os.Remove(filepath.Join(l.folder, filepath.FromSlash(key))); err != nil {
		l.t.Fatal(err)
	}
}

// replace changes a text in an object; the text must be there.
func (l *folderLedger) replace(key, from, to string) {
	data := l.read(key)
	if !bytes.Contains(data, []byte(from)) {
		l.t.Fatalf("%s has no %q", key, from)
	}
	l.write(key, bytes.ReplaceAll(data, []byte(from), []byte(to)))
}

// analyze judges the ledger, and leaves the seal as assay analyze --write does.
func (l *folderLedger) analyze() *analysis.Analysis {
	ctx := context.Background()
	store, err := ledger.Open(ctx, ledger.FolderURL(l.folder), ledger.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	exp, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		l.t.Fatal(err)
	}
	evidence, err := ledger.ReadEvidence(ctx, store, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	l.write(ledger.SealKey(0), selection.Seal(evidence, 0))
	return ours(Evidence(exp, evidence, 0))
}

func TestBadLedgers(t *testing.T) {
	key := func(trial string) string {
		return fmt.Sprintf("attempts/%s/pod-%s/%s.json", trial[:10], trial[:10], trial)
	}
	const trial, other = "w000-b0001-s00003", "w000-b0002-s00003"
	cases := map[string]struct {
		spoil    func(*folderLedger)
		trials   analysis.Trials
		excluded string // The key or id of the only exclusion; empty when there is none.
		reason   string
		changed  bool // The evidence digest changes.
	}{
		"a missing attempt leaves its trial missing": {
			spoil:  func(l *folderLedger) { l.remove(key(trial)) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Missing: 1, Attempts: 143}, changed: true,
		},
		"an attempt copied to another key is named and not counted twice": {
			spoil: func(l *folderLedger) {
				l.write("attempts/w000-b0001/pod-copy/"+trial+".json", l.read(key(trial)))
			},
			trials: analysis.Trials{Planned: 144, Used: 96, Warmups: 48, Attempts: 144}, changed: true,
			excluded: "attempts/w000-b0001/pod-copy/" + trial + ".json", reason: "which belongs at " + key(trial) + ": it was moved or changed",
		},
		"an attempt copied over another one is named and spoils it": {
			spoil:  func(l *folderLedger) { l.write(key(other), l.read(key(trial))) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 143}, changed: true,
			excluded: key(other), reason: "it was moved or changed",
		},
		"a truncated attempt is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.write(key(trial), l.read(key(trial))[:400]) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 143}, changed: true,
			excluded: key(trial), reason: "truncated",
		},
		"an empty attempt is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.write(key(trial), nil) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 143}, changed: true,
			excluded: key(trial), reason: "",
		},
		"an attempt of another run is named and spoils its trial": {
			spoil: func(l *folderLedger) {
				l.replace(key(trial), "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11", "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c12")
			},
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "it is of run uid",
		},
		"an attempt with another argument than its cell is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.replace(key(trial), "--iterations=30", "--iterations=29") },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `is "--iterations=29" and the cell has "--iterations=30"`,
		},
		"an attempt with another program than its cell is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.replace(key(trial), "/usr/local/bin/pir-scan", "/tmp/pir-scan") },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `it ran "/tmp/pir-scan" and the cell runs "/usr/local/bin/pir-scan"`,
		},
		"an attempt with other parameters than its cell is named and spoils its trial": {
			spoil:  func(l *folderLedger) { l.replace(key(trial), `"iterations":"30"`, `"iterations":"31"`) },
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: `iterations is "31" here and "30" there`,
		},
		"a result changed after the run was analysed is named and spoils its trial": {
			spoil: func(l *folderLedger) {
				l.analyze()
				l.replace(key(trial), `"durationSeconds":`, `"durationSeconds":1`)
			},
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "its object had sha256",
		},
		"analysing again does not hide a change": {
			spoil: func(l *folderLedger) {
				l.analyze()
				l.replace(key(trial), `"durationSeconds":`, `"durationSeconds":1`)
				l.analyze()
			},
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Invalid: 1, Attempts: 144}, changed: true,
			excluded: "pod-w000-b0001/" + trial, reason: "its object had sha256",
		},
		"an attempt removed after the run was analysed is named": {
			spoil: func(l *folderLedger) {
				l.analyze()
				l.remove(key(trial))
			},
			trials: analysis.Trials{Planned: 144, Used: 95, Warmups: 48, Missing: 1, Attempts: 143}, changed: true,
			excluded: key(trial), reason: "and is gone",
		},
		"an attempt that came after the run was analysed counts": {
			spoil: func(l *folderLedger) {
				late := l.read(key(trial))
				l.remove(key(trial))
				l.analyze()
				l.write(key(trial), late)
			},
			trials: analysis.Trials{Planned: 144, Used: 96, Warmups: 48, Attempts: 144},
		},
		"a damaged list of what was analysed is named, and what is there counts": {
			spoil: func(l *folderLedger) {
				l.analyze()
				l.write("analysis/000/evidence.sha256", []byte("nonsense\n"))
			},
			trials:   analysis.Trials{Planned: 144, Used: 96, Warmups: 48, Attempts: 144},
			excluded: "analysis/000/evidence.sha256", reason: "line 1 is not the sha256sum of an attempt",
		},
		"an object that is no attempt is named": {
			spoil:  func(l *folderLedger) { l.write("attempts/notes.txt", []byte("hello")) },
			trials: analysis.Trials{Planned: 144, Used: 96, Warmups: 48, Attempts: 144}, changed: true,
			excluded: "attempts/notes.txt", reason: "invalid attempt",
		},
	}
	sound := newFolderLedger(t).analyze()
	if len(sound.Excluded) > 0 {
		t.Fatal(sound.Excluded)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newFolderLedger(t)
			c.spoil(l)
			got := l.analyze()
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
			checkInvariants(t, got)
		})
	}
}

// attempts are the keys of the measured trials.
func (l *folderLedger) attempts() []string {
	paths, err := filepath.Glob(filepath.Join(l.folder, "attempts", "*", "*", "*-s*.json"))
	if err != nil {
		l.t.Fatal(err)
	}
	for i, path := range paths {
		key, err := filepath.Rel(l.folder, path)
		if err != nil {
			l.t.Fatal(err)
		}
		paths[i] = filepath.ToSlash(key)
	}
	return paths
}

// A program that makes the records of its slow or wrong trials unusable hides them, and must not win by it.
func TestTrialsWithoutAUsableRecordAreNoSuccess(t *testing.T) {
	parity := assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual}
	items := regexp.MustCompile(`"items":[0-9]+`)
	unreadable := func(l *folderLedger, key string) {
		l.write(key, items.ReplaceAll(l.read(key), []byte(`"items":9223372036854775808`)))
	}
	const arm = `"arm":"fused-m4r"`
	// twice executes every block once more, and has the run analysed.
	twice := func(l *folderLedger) {
		for _, key := range l.attempts() {
			l.write(strings.Replace(key, "/pod-", "/pod-copy-", 1), l.read(key))
		}
		l.analyze()
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
		"as they are": {spoil: func(*folderLedger, string) {}, want: goes},
		"a count that Go cannot read": {spoil: unreadable, want: inconclusive, gate: "completes", reason: "76 of 80 trials completed against at least " +
			"1.000: 4 unreadable (first w000-b0000-s"},
		"of the baseline": {arm: `"arm":"loop"`, spoil: unreadable, want: inconclusive, gate: "completes", reason: "4 unreadable"},
		"a share that is reached without them holds": {
			gates: []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}, spoil: unreadable, want: goes,
		},
		"an output that differs in them is not equal": {
			gates: []assayv1alpha1.Gate{parity, {Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}},
			spoil: func(l *folderLedger, key string) {
				l.write(key, regexp.MustCompile(`"digest":"..`).ReplaceAll(l.read(key), []byte(`"digest":"00`)))
				unreadable(l, key)
			}, want: inconclusive, gate: "same", reason: "the outputs of 4 trials of arm fused-m4r are not known",
		},
		"an output of the baseline that is not known is not equal": {
			gates: []assayv1alpha1.Gate{parity, {Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}, arm: `"arm":"loop"`,
			spoil: unreadable, want: inconclusive, gate: "same", reason: "the outputs of 4 trials of arm loop are not known",
		},
		"a record of another run": {spoil: func(l *folderLedger, key string) {
			l.replace(key, "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11", "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c12")
		}, want: inconclusive, gate: "completes", reason: "4 not part of this experiment"},
		"a record that was changed": {before: func(l *folderLedger) { l.analyze() }, spoil: func(l *folderLedger, key string) {
			l.replace(key, `"durationSeconds":`, `"durationSeconds":1`)
		}, want: inconclusive, gate: "completes", reason: "4 changed since it was analysed before"},
		"a record that was taken away": {before: func(l *folderLedger) { l.analyze() }, spoil: func(l *folderLedger, key string) {
			l.remove(key)
		}, want: inconclusive, gate: "completes", reason: "4 changed since it was analysed before"},
		"a record that was taken away, of a share that is reached without it": {
			gates:  []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}},
			before: func(l *folderLedger) { l.analyze() }, spoil: func(l *folderLedger, key string) { l.remove(key) },
			want: inconclusive, gate: "gain", reason: "was there when the run was analysed before, and is gone or was changed",
		},
		"a record that another execution also has, and that was taken away": {before: twice, spoil: func(l *folderLedger, key string) {
			l.remove(key)
		}, want: inconclusive, gate: "gain", reason: "is gone or was changed"},
		"a record that another execution also has, and that was changed": {before: twice, spoil: func(l *folderLedger, key string) {
			l.replace(key, `"durationSeconds":`, `"durationSeconds":1`)
		}, want: inconclusive, gate: "done", reason: "is gone or was changed",
			gates: []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}},
		"a record that another execution also has, and that nobody can read any more": {before: twice,
			spoil: func(l *folderLedger, key string) { l.write(key, []byte("{")) },
			want:  inconclusive, gate: "gain", reason: "is gone or was changed"},
		"one that another execution cannot read is a loss": {spoil: func(l *folderLedger, key string) {
			l.write(strings.Replace(key, "/pod-", "/pod-copy-", 1), []byte("{"))
		}, want: goes, warning: "4 of no use in another execution"},
		"a record that another execution also has": {spoil: func(l *folderLedger, key string) {
			l.write(strings.Replace(key, "/pod-", "/pod-copy-", 1), l.read(key))
		}, want: goes},
	} {
		t.Run(name, func(t *testing.T) {
			l := folderLedgerOf(t, 10, append(c.gates, gainAt8("1.5"))...)
			if c.before != nil {
				c.before(l)
			}
			left := 4
			for _, key := range l.attempts() {
				if left > 0 && bytes.Contains(l.read(key), []byte(cmp.Or(c.arm, arm))) {
					left--
					c.spoil(l, key)
				}
			}
			got := l.analyze()
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
			checkInvariants(t, got)
		})
	}
}
