package analyze_test

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/fixture"
)

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
		"a damaged list of what was analysed is named, and what is there counts": {
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
