package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const uid = "/00000000-0000-0000-0000-000000000001"

// sound is the state after two runs took turns on a node, with all objects observed in between.
func sound() ([]Ledger, Seen) {
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var ledgers []Ledger
	seen := Seen{}
	for r, name := range []string{"first", "second"} {
		ledger := Ledger{Run: "runs/default/" + name + uid, Objects: map[string][]byte{
			"experiment.json":            []byte(`{}`),
			"waves/000/wave.json":        []byte(`{"blocks": [{"id": "w000-b0000", "order": [0, 1]}, {"id": "w000-b0001", "order": [1, 0]}]}`),
			"analysis/000/analysis.json": []byte(`{"trials": {"planned": 4, "used": 4}}`),
		}}
		for b := range 2 {
			for s := range 2 {
				at := began.Add(time.Duration(r)*time.Minute + time.Duration(b)*10*time.Second + time.Duration(s)*3*time.Second)
				key, object := attemptOf(b, s, "pod", at)
				ledger.Objects[key] = object
			}
		}
		for key, object := range ledger.Objects {
			seen.Add(ledger.Run+"/"+key, string(object))
		}
		ledgers = append(ledgers, ledger)
	}
	return ledgers, seen
}

func attemptOf(block, slot int, executor string, at time.Time) (key string, object []byte) {
	id := fmt.Sprintf("w000-b%04d", block)
	trial := fmt.Sprintf("%s-s%05d", id, slot)
	return "attempts/" + id + "/" + executor + "/" + trial + ".json", fmt.Appendf(nil,
		`{"id": "%s/%s", "trial": "%s", "block": "%s", "lease": {"node": "node", "token": 1}, "startedAt": "%s", "durationSeconds": 2, "outcome": "Succeeded"}`,
		executor, trial, trial, id, at.Format(time.RFC3339Nano))
}

func TestCheck_SoundLedgersHaveNoFinding(t *testing.T) {
	ledgers, seen := sound()
	findings := Check(ledgers, seen, nil)
	for _, figure := range findings.Figures(5) {
		if want := map[bool]float64{true: 5}[figure.Figure == "chaos.faults"]; figure.Value != want {
			t.Errorf("%s is %g: %+v", figure.Figure, figure.Value, findings)
		}
		if figure.Samples == 0 {
			t.Errorf("%s rests on nothing", figure.Figure)
		}
	}
	if findings.Trials != 8 || findings.Runs != 2 || findings.Blocks != 4 || findings.Objects != 8 {
		t.Errorf("%+v", findings)
	}
}

// stopped is a run whose second block never began when its wave was stopped: it has another wave, and that has the analysis.
func stopped(ledger *Ledger, seen Seen, next string) {
	for slot := range 2 {
		key, _ := attemptOf(1, slot, "pod", time.Time{})
		delete(ledger.Objects, key)
		delete(seen, ledger.Run+"/"+key)
	}
	ledger.Objects["waves/001/wave.json"] = []byte(next)
	ledger.Objects["analysis/001/analysis.json"] = []byte(`{"trials": {"planned": 4, "used": 4}}`)
}

func TestCheck_ReplannedBlockIsNotLost(t *testing.T) {
	ledgers, seen := sound()
	stopped(&ledgers[0], seen, `{"blocks": [{"id": "w001-b0002", "order": [1, 0]}]}`)
	for slot := range 2 {
		key, object := attemptOf(2, slot, "pod", time.Date(2026, 1, 1, 12, 5, 3*slot, 0, time.UTC))
		key, object = strings.ReplaceAll(key, "w000", "w001"), []byte(strings.ReplaceAll(string(object), "w000", "w001"))
		ledgers[0].Objects[key] = object
	}
	if findings := Check(ledgers, seen, nil); len(findings.Lost)+len(findings.Doubled)+len(findings.Stuck) > 0 || findings.Trials != 8 {
		t.Errorf("%+v", findings)
	}
}

// cutShort is a run whose second block was interrupted after some trials when its node was lost. Another block replaces it.
func cutShort(ledger *Ledger, seen Seen, after int) {
	for slot := after; slot < 2; slot++ {
		key, _ := attemptOf(1, slot, "pod", time.Time{})
		delete(ledger.Objects, key)
		delete(seen, ledger.Run+"/"+key)
	}
	ledger.Objects[fmt.Sprintf("started/w000-b0001/pod/w000-b0001-s%05d.json", after)] = []byte(`{}`)
	ledger.Objects["waves/001/wave.json"] = []byte(`{"blocks": [{"id": "w001-b0002", "order": [1, 0]}]}`)
	for slot := range 2 {
		key, object := attemptOf(2, slot, "pod", time.Date(2026, 1, 1, 12, 5, 3*slot, 0, time.UTC))
		ledger.Objects[strings.ReplaceAll(key, "w000", "w001")] = []byte(strings.ReplaceAll(string(object), "w000", "w001"))
	}
	ledger.Objects["analysis/001/analysis.json"] = fmt.Appendf(nil, `{"trials": {"planned": 6, "used": %d, "missing": %d}}`, 4+after, 2-after)
}

func TestCheck_CutBlockIsReplacedByAnother(t *testing.T) {
	for after := range 2 {
		ledgers, seen := sound()
		cutShort(&ledgers[0], seen, after)
		if findings := Check(ledgers, seen, nil); len(findings.Lost)+len(findings.Doubled)+len(findings.Stuck) > 0 || findings.Trials != 8+after {
			t.Errorf("after %d trials: %+v", after, findings)
		}
	}
}

// Each damage is the result of one platform fault, and changes one figure.
func TestCheck_BrokenLedgersAreNamed(t *testing.T) {
	const last = "attempts/w000-b0001/pod/w000-b0001-s00001.json"
	cases := map[string]struct {
		spoil  func(first *Ledger, seen Seen)
		figure string
		says   string
	}{
		"an attempt that never came": {func(first *Ledger, seen Seen) {
			delete(first.Objects, last)
			delete(seen, first.Run+"/"+last)
		}, "chaos.lost", "no attempt of trial w000-b0001-s00001"},
		"an attempt that only says that it did not start": {func(first *Ledger, _ Seen) {
			first.Objects[last] = []byte(strings.Replace(string(first.Objects[last]), "Succeeded", "NotStarted", 1))
		}, "chaos.lost", "no attempt of trial w000-b0001-s00001"},
		"an attempt that was left out and not made up for": {func(first *Ledger, _ Seen) {
			first.Objects["analysis/000/analysis.json"] = []byte(`{"trials": {"planned": 4, "used": 3, "missing": 1}, "excluded": [{"attempt": "pod/w000-b0001-s00001"}]}`)
		}, "chaos.lost", "no attempt of trial w000-b0001-s00001"},
		"a block that never began, and is in no later wave": {func(first *Ledger, seen Seen) {
			stopped(first, seen, `{"blocks": []}`)
		}, "chaos.lost", "1 blocks never began or were cut short, and 0 were planned"},
		"a block that never began, and one in its place that left nothing": {func(first *Ledger, seen Seen) {
			stopped(first, seen, `{"blocks": [{"id": "w001-b0002", "order": [0]}]}`)
		}, "chaos.lost", "no attempt of trial w001-b0002-s00000"},
		"a block that began, left nothing, and is in no later wave": {func(first *Ledger, seen Seen) {
			stopped(first, seen, `{"blocks": []}`)
			first.Objects["waves/000/wave.json"] = []byte(`{"blocks": [{"id": "w000-b0000", "order": [0, 1]}, {"id": "w000-b0001", "order": [1]}]}`)
			first.Objects["started/w000-b0001/pod/w000-b0001-s00000.json"] = []byte(`{}`)
		}, "chaos.lost", "1 blocks never began or were cut short, and 0 were planned"},
		"a block that was cut short, and one in place of two": {func(first *Ledger, seen Seen) {
			cutShort(first, seen, 0)
			for slot := range 2 {
				key, _ := attemptOf(0, slot, "pod", time.Time{})
				delete(first.Objects, key)
				delete(seen, first.Run+"/"+key)
			}
		}, "chaos.lost", "2 blocks never began or were cut short, and 1 were planned"},
		"a trial out of the middle of a block that is in a later wave": {func(first *Ledger, seen Seen) {
			cutShort(first, seen, 0)
			key, object := attemptOf(1, 1, "pod", time.Date(2026, 1, 1, 12, 0, 13, 0, time.UTC))
			first.Objects[key] = object
		}, "chaos.lost", "no attempt of trial w000-b0001-s00000"},
		"an attempt that was cut short": {func(first *Ledger, _ Seen) {
			first.Objects["attempts/w000-b0001/pod/x.json"] = first.Objects[last][:20]
		}, "chaos.lost", "cannot be read"},
		"an analysis that accounts for too few": {func(first *Ledger, _ Seen) {
			first.Objects["analysis/000/analysis.json"] = []byte(`{"trials": {"planned": 4, "used": 3}}`)
		}, "chaos.lost", "accounts for 3 of 4"},
		"an analysis that accounts for too many": {func(first *Ledger, _ Seen) {
			first.Objects["analysis/000/analysis.json"] = []byte(`{"trials": {"planned": 4, "used": 5}}`)
		}, "chaos.doubled", "accounts for 5 trials"},
		"two executions of a trial that both count": {func(first *Ledger, _ Seen) {
			key, object := attemptOf(1, 1, "pod-again", time.Date(2026, 1, 1, 12, 0, 20, 0, time.UTC))
			first.Objects[key] = object
		}, "chaos.doubled", "2 attempts of trial w000-b0001-s00001"},
		"two runs on a node at once": {func(first *Ledger, _ Seen) {
			key, object := attemptOf(1, 1, "pod", time.Date(2026, 1, 1, 12, 1, 1, 0, time.UTC))
			first.Objects[key] = object
		}, "chaos.overlaps", "w000-b0001/pod of runs/default/first" + uid + " and w000-b0000/pod of runs/default/second"},
		"a run that neither ended nor says why": {func(first *Ledger, _ Seen) {
			delete(first.Objects, "analysis/000/analysis.json")
		}, "chaos.stuck", "no analysis of its newest wave"},
		"a run that was judged and went on": {func(first *Ledger, _ Seen) {
			first.Objects["waves/001/wave.json"] = []byte(`{"blocks": []}`)
		}, "chaos.stuck", "no analysis of its newest wave"},
		"a failed run without a known reason": {func(first *Ledger, _ Seen) {
			delete(first.Objects, "analysis/000/analysis.json")
			first.Ended = "Failed: ExecutionFailed: no block left an attempt"
		}, "chaos.lost", "ended as Failed: ExecutionFailed: no block left an attempt: no fault explains it"},
		"a run that failed and was analysed": {func(first *Ledger, _ Seen) {
			first.Ended = "Failed: AnalysisFailed: not in 3 tries"
		}, "chaos.lost", "ended as Failed: AnalysisFailed"},
		"a run that was set aside though the operator was killed once only": {func(first *Ledger, _ Seen) {
			first.Ended = "Failed: SetAside: the operator began 2 times"
		}, "chaos.lost", "ended as Failed: SetAside"},
		"a run that is complete without an analysis": {func(first *Ledger, _ Seen) {
			delete(first.Objects, "analysis/000/analysis.json")
			first.Ended = "Complete: VerdictReached: Go"
		}, "chaos.lost", "says that it is complete, and its ledger has no analysis of its newest wave"},
		"an attempt with two contents": {func(first *Ledger, seen Seen) {
			seen.Add(first.Run+"/"+last, "another")
		}, "chaos.overwritten", "was seen with 2 contents"},
		"an attempt that was there and is gone": {func(first *Ledger, seen Seen) {
			seen.Add(first.Run+"/attempts/w000-b0001/lost-pod/w000-b0001-s00001.json", "x")
		}, "chaos.overwritten", "is gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ledgers, seen := sound()
			tc.spoil(&ledgers[0], seen)
			findings := Check(ledgers, seen, map[string]int{"operator-killed": 1, "pod-deleted": 9})
			said := map[string][]string{
				"chaos.lost": findings.Lost, "chaos.doubled": findings.Doubled, "chaos.overlaps": findings.Overlaps,
				"chaos.stuck": findings.Stuck, "chaos.overwritten": findings.Overwritten,
			}
			for _, figure := range findings.Figures(0) {
				want := map[bool]float64{true: 1}[figure.Figure == tc.figure]
				if figure.Value != want {
					t.Errorf("%s is %g, want %g: %v", figure.Figure, figure.Value, want, said[figure.Figure])
				}
			}
			if !strings.Contains(strings.Join(said[tc.figure], "\n"), tc.says) {
				t.Errorf("%s says %q, want %q", tc.figure, said[tc.figure], tc.says)
			}
		})
	}
}

func TestCheck_AllowedObjectsAreNoFinding(t *testing.T) {
	for name, change := range map[string]func(first *Ledger, seen Seen){
		"a run that was set aside because the operator was killed again and again": func(first *Ledger, seen Seen) {
			first.Objects = map[string][]byte{}
			for key := range seen {
				if strings.HasPrefix(key, first.Run+"/") {
					delete(seen, key)
				}
			}
			first.Ended = "Failed: SetAside: the operator began 2 times"
		},
		"an execution that was superseded": func(first *Ledger, _ Seen) {
			key, object := attemptOf(1, 1, "pod-killed", time.Date(2026, 1, 1, 12, 0, 5, 0, time.UTC))
			first.Objects[key] = object
			first.Objects["analysis/000/analysis.json"] = []byte(`{"trials": {"planned": 4, "used": 4}, "excluded": [{"attempt": "pod-killed/w000-b0001-s00001"}]}`)
		},
		"an analysis that was made again": func(first *Ledger, seen Seen) { seen.Add(first.Run+"/analysis/000/analysis.json", "again") },
		"a trial that failed": func(first *Ledger, _ Seen) {
			const key = "attempts/w000-b0001/pod/w000-b0001-s00001.json"
			first.Objects[key] = []byte(strings.Replace(string(first.Objects[key]), "Succeeded", "Failed", 1))
			first.Objects["analysis/000/analysis.json"] = []byte(`{"trials": {"planned": 4, "used": 3, "failed": 1},
				"excluded": [{"attempt": "pod/w000-b0001-s00001", "reason": "Failed: exit status 1"}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ledgers, seen := sound()
			change(&ledgers[0], seen)
			for _, figure := range Check(ledgers, seen, map[string]int{"operator-killed": 1, "operators-two": 1}).Figures(0) {
				if figure.Value != 0 {
					t.Errorf("%s is %g", figure.Figure, figure.Value)
				}
			}
		})
	}
}

func TestSuite_TooFewFaultsFail(t *testing.T) {
	for name, tc := range map[string]struct {
		findings Findings
		injected map[string]int
		says     string
	}{
		"as many faults as asked for, and nothing wrong": {Findings{Trials: 9}, map[string]int{"a": 1, "b": 2}, ""},
		"one fault too few":    {Findings{Trials: 9}, map[string]int{"a": 1, "b": 1}, "2 faults were injected within 1m0s, and 3 are asked for"},
		"no fault":             {Findings{Trials: 9}, nil, "0 faults were injected"},
		"no trial":             {Findings{}, map[string]int{"a": 3}, "no trial"},
		"a trial that is lost": {Findings{Trials: 9, Lost: []string{"x"}}, map[string]int{"a": 3}, "1 findings; seed 7"},
		"a run that hangs, and too few faults": {
			Findings{Trials: 9, Stuck: []string{"x"}}, map[string]int{"a": 1}, "1 findings; seed 7 makes the same schedule again\n1 faults",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := suite{seed: 7, faults: 5, least: 3, duration: time.Minute}.verdict(tc.findings, tc.injected)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
}
