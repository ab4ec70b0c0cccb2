package plan

import (
	"fmt"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// setTo lists changes of the operator's clock: corrections of seconds, time zones, and unset dates.
var setTo = []time.Duration{-10 * 365 * 24 * time.Hour, -24 * time.Hour, -2 * time.Hour, -10 * time.Minute, -10 * time.Second,
	10 * time.Second, 10 * time.Minute, 2 * time.Hour, 24 * time.Hour}

// measures simulates a minute of the cluster, in which a block or the analysis completes.
func (w *world) measures() {
	switch {
	case w.Ledger.Newest == nil || w.Wave == nil || w.Wave.Stopped || w.Ledger.Analysed:
		if w.Wave != nil && w.Wave.Stopped && !w.Ledger.Analysed {
			w.analysis(experiment.VerdictInconclusive)
		}
	case len(w.Ledger.Open) > 0:
		w.blocksDone(1)
	default:
		w.analysis(experiment.VerdictGo)
	}
}

// After a change of the clock during a run, no block is lost or planned twice. The run ends with its verdict, or with the attempts so far
// if the change exceeds its budget.
func TestDecide_ClockChangeLosesNoBlocks(t *testing.T) {
	for _, by := range setTo {
		for before := range 14 {
			t.Run(fmt.Sprintf("by %s after %d steps", by, before), func(t *testing.T) {
				w := newWorld(t)
				budget := w.Run.Spec.Budget.WallClock.Duration
				steps := 0
				for ; steps < 60 && !Ended(w.Run); steps++ {
					if steps == before {
						w.now = w.now.Add(by)
					}
					w.step(func(Action) bool { return false })
					if steps%3 == 2 {
						w.measures()
					}
				}
				switch reached := by.Abs() < budget-time.Hour; {
				case !Ended(w.Run):
					t.Errorf("it has not ended after %d steps:\n%s", steps, w.log.String())
				case reached && (w.Ledger.Done != w.Ledger.Trials || len(w.Ledger.Waves) != 1 || w.Ledger.Verdict != experiment.VerdictGo):
					t.Errorf("%d of %d trials of %d waves, %s:\n%s",
						w.Ledger.Done, w.Ledger.Trials, len(w.Ledger.Waves), w.Ledger.Verdict, w.log.String())
				}
			})
		}
	}
}

// Timeouts last about as long if the clock is changed meanwhile, so that no run holds a node beyond twice its budget.
func TestDecide_ClockChangeDelaysNoRelease(t *testing.T) {
	ways := map[string]func(*world){
		"no block completes": func(*world) {},
		"its nodes are not ready": func(w *world) {
			w.ready("node-a", false)
			w.ready("node-b", false)
		},
		"its image is missing": func(w *world) { w.Pods.Image = &ImageProblem{Image: "lab/scan:1", Message: "no", Scheduled: w.now} },
		"its pod does not start": func(w *world) {
			if w.Wave != nil {
				pod := StartingPod{Name: "scan-1", Node: "node-a", Scheduled: w.now, Execution: w.Wave.Name, Block: true}
				w.Pods = PodState{Alive: 1, Starting: &pod}
			}
		},
		"the ledger is damaged": func(w *world) {
			w.Ledger = LedgerState{Problem: assayv1alpha1.ReasonLedgerDamaged, Message: "analysis.json is no analysis"}
		},
	}
	for what, stands := range ways {
		for _, by := range setTo {
			for before := range 8 {
				t.Run(fmt.Sprintf("%s after %d steps, the clock is set by %s", what, before, by), func(t *testing.T) {
					w := newWorld(t)
					none := func(Action) bool { return false }
					for range before {
						w.step(none)
					}
					stands(w)
					for range 2 {
						w.step(none)
					}
					w.now = w.now.Add(by)
					end := w.now.Add(2*w.Run.Spec.Budget.WallClock.Duration + podGrace + 10*time.Minute)
					free := false
					for w.now.Before(end) {
						w.step(none)
						if w.Wave != nil && w.Wave.Deleting {
							w.Wave, w.Pods = nil, PodState{}
						}
						p := &planner{Observed: w.Observed, settings: testSettings, now: w.now}
						free = free || len(p.held()) == 0
					}
					if !free {
						t.Errorf("its node was never free:\n%s", w.log.String())
					}
				})
			}
		}
	}
}
