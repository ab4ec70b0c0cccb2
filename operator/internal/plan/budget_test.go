package plan

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// step makes one decision and advances the clock to the next, by at most a minute. A rejected write changes nothing.
func (w *world) step(refused func(Action) bool) {
	w.t.Helper()
	decision := Decide(w.Observed, testSettings, w.now)
	w.record(decision)
	if decision.Action != nil && !refused(decision.Action) {
		w.do(decision.Action)
	} else if decision.Action != nil {
		decision.Ending = nil
	}
	w.remember(decision)
	after, again := decision.RequeueAfter()
	if !again || after > time.Minute {
		after = time.Minute
	}
	w.now = w.now.Add(max(after, time.Second))
}

// A run releases its nodes soon after its budget, for every obstacle and every step at which it begins, unless a block runs there.
func TestDecide_NodesAreReleasedAfterTheBudget(t *testing.T) {
	type way struct {
		begins  func(*world)
		refused func(Action) bool
	}
	nothing := func(Action) bool { return false }
	damaged := func(w *world) {
		w.Ledger = LedgerState{Problem: assayv1alpha1.ReasonLedgerDamaged, Message: "analysis.json is no analysis"}
	}
	ways := map[string]way{
		"the ledger is damaged": {damaged, nothing},
		"the store is unreachable": {func(w *world) {
			w.Ledger = LedgerState{Problem: assayv1alpha1.ReasonLedgerUnreachable, Message: "no answer"}
		}, nothing},
		"the engine is unusable": {func(w *world) {
			w.Engine = EngineState{Problem: assayv1alpha1.ReasonEngineTooOld, Message: "upgrade it"}
		}, nothing},
		"the engine does not act": {func(*world) {}, nothing},
		"the engine is unusable, and the ledger is damaged": {func(w *world) {
			damaged(w)
			w.Engine = EngineState{Problem: assayv1alpha1.ReasonEngineTooOld, Message: "upgrade it"}
		}, nothing},
		"no execution can be created": {func(*world) {}, func(action Action) bool { _, ok := action.(StartWave); return ok }},
		"no wave can be written":      {func(*world) {}, func(action Action) bool { _, ok := action.(PlanWave); return ok }},
		"no node is tainted": {func(w *world) { w.Run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode },
			func(action Action) bool {
				_, ok := action.(PlanWave) // The simulated cluster taints at once, so that the wave is rejected instead.
				return ok
			}},
		"the analysis is on a node that is lost": {func(w *world) {
			if w.Wave != nil {
				w.Pods = PodState{Alive: 1, Analysing: []AnalysisPod{{Node: "node-b", Execution: w.Wave.Name}}}
			}
			w.ready("node-b", false)
		}, nothing},
		"a foreign writer completes its attempts": {func(w *world) {
			if w.Ledger.Newest != nil {
				w.allMeasured(experiment.VerdictGo, len(w.Ledger.Newest.Blocks))
			}
		}, nothing},
		"a user suspended it in the engine": {func(w *world) {
			if w.Wave != nil {
				w.Wave.Suspended = true
			}
		}, nothing},
	}
	asks := map[string]func(*world){
		"it is not changed": func(*world) {},
		"it is cancelled":   func(w *world) { w.Run.Spec.Cancel = ptr.To(true) },
		"it is suspended":   func(w *world) { w.Run.Spec.Suspend = ptr.To(true) },
	}
	for what, way := range ways {
		for asked, ask := range asks {
			for before := range 12 {
				t.Run(fmt.Sprintf("%s after %d steps and %s", what, before, asked), func(t *testing.T) {
					w := newWorld(t)
					for range before {
						w.step(nothing)
					}
					way.begins(w)
					ask(w)
					// The maximum is the budget, the grace period for the engine, and the interval of requeues.
					end := w.now.Add(w.Run.Spec.Budget.WallClock.Duration + podGrace + 10*time.Minute)
					for w.now.Before(end) {
						w.step(way.refused)
						if w.Wave != nil && w.Wave.Deleting {
							w.Wave, w.Pods = nil, PodState{}
						}
					}
					p := &planner{Observed: w.Observed, settings: testSettings, now: w.now}
					for _, held := range p.held() {
						if !w.now.Before(held.Acquired.Add(w.Run.Spec.Budget.WallClock.Duration + podGrace + 5*time.Minute)) {
							t.Errorf("%s is held since %s and it is %s:\n%s", held.Node, held.Acquired.Sub(w.began), w.now.Sub(w.began), w.log.String())
						}
					}
				})
			}
		}
	}
}

// A run whose status the API server rejects still releases its nodes.
func TestDecide_RejectedStatusStillReleasesNodes(t *testing.T) {
	for _, verdict := range []experiment.Verdict{experiment.VerdictGo, experiment.VerdictInvalid} {
		w := newWorld(t)
		w.happens("the run is created", func() {})
		w.allDone(verdict, len(w.Ledger.Newest.Blocks))
		for range 10 {
			if action := Decide(w.Observed, testSettings, w.now).Action; action != nil {
				w.do(action)
			}
			w.now = w.now.Add(time.Second)
		}
		if p := (&planner{Observed: w.Observed}); len(p.held()) > 0 {
			t.Errorf("%s: it holds %v", verdict, p.held())
		}
		if Decide(w.Observed, testSettings, w.now).Ending == nil {
			t.Errorf("%s: it has no ending any more", verdict)
		}
	}
}

// A user removes the operator's finalizer from a run and deletes it. Another finalizer prevents the deletion.
func TestDecide_DeletedRunWithoutFinalizerStops(t *testing.T) {
	w := newWorld(t)
	w.happens("the run is created", func() {})
	w.Run.Finalizers, w.Run.DeletionTimestamp = []string{"orphan"}, ptr.To(metav1.NewTime(w.now))
	w.settle()
	if !w.Wave.Deleting {
		t.Fatalf("its execution continues:\n%s", w.log.String())
	}
	w.happens("the execution is deleted", func() { w.Wave, w.Pods = nil, PodState{} })
	if p := (&planner{Observed: w.Observed}); len(p.held()) > 0 || w.released {
		t.Errorf("it holds %v, and removes a finalizer that it does not have: %v\n%s", p.held(), w.released, w.log.String())
	}
}

func TestDecide_DamagedLedgerDoesNotDelayTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		problem string
		ask     func(*world)
		pods    PodState
		want    string
	}{
		"cancelled":                       {assayv1alpha1.ReasonLedgerDamaged, func(w *world) { w.Run.Spec.Cancel = ptr.To(true) }, PodState{}, assayv1alpha1.ReasonCancelled},
		"over its budget":                 {assayv1alpha1.ReasonLedgerDamaged, func(w *world) { w.after(2 * time.Hour) }, PodState{}, assayv1alpha1.ReasonBudgetExhausted},
		"neither":                         {assayv1alpha1.ReasonLedgerDamaged, func(*world) {}, PodState{}, ""},
		"an unreachable store is awaited": {assayv1alpha1.ReasonLedgerUnreachable, func(w *world) { w.Run.Spec.Cancel = ptr.To(true) }, PodState{}, ""},
		"a block still writes": {assayv1alpha1.ReasonLedgerDamaged, func(w *world) { w.Run.Spec.Cancel = ptr.To(true) },
			PodState{Alive: 1, Blocks: map[string]int{"node-a": 1}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.happens("the run is created", func() {})
			w.Wave.Stopped, w.Wave.Ended, w.Pods = true, true, tc.pods
			w.Ledger = LedgerState{Problem: tc.problem, Message: "wave 0 is altered"}
			tc.ask(w)
			ending := ""
			if got := Decide(w.Observed, testSettings, w.now); got.Ending != nil {
				ending = got.Ending.Reason
			}
			if ending != tc.want {
				t.Errorf("it ends with %q, want %q", ending, tc.want)
			}
		})
	}
}

func TestDecide_AnalysisOnLostNodeIsRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(*world)
		again bool
	}{
		"its node is not ready for long": {func(w *world) { w.ready("node-b", false); w.after(testSettings.NodeGrace) }, true},
		"its node is not ready":          {func(w *world) { w.ready("node-b", false) }, false},
		"its node is deleted":            {func(w *world) { w.Nodes = w.Nodes[:1] }, true},
		"its node is cordoned":           {func(w *world) { w.cordon("node-b", true) }, false},
		"a block of the wave still runs": {func(w *world) { w.Nodes, w.Pods.Blocks = w.Nodes[:1], map[string]int{"node-a": 1} }, false},
		"it has no node yet":             {func(w *world) { w.Pods.Analysing[0].Node = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(4)
			w.Pods = PodState{Alive: 1, Analysing: []AnalysisPod{{Node: "node-b", Execution: w.Wave.Name}}}
			tc.edit(w)
			w.happens(name, func() {})
			if w.Wave.Deleting != tc.again {
				t.Fatalf("its execution is deleted: %v, want %v\n%s", w.Wave.Deleting, tc.again, w.log.String())
			}
			if !tc.again {
				return
			}
			w.happens("the execution is deleted", func() { w.Wave = nil })
			if len(w.Analyses) != 1 {
				t.Fatalf("%d analyses, want one more\n%s", len(w.Analyses), w.log.String())
			}
			w.Analyses[0].Ended = true
			w.analysis(experiment.VerdictGo)
			if !Ended(w.Run) {
				t.Errorf("the run has not ended\n%s", w.log.String())
			}
		})
	}
}

// Concurrent writes to a run can prevent its deletion with a precondition.
func TestDecide_NodesAreReleasedBeforeDeletion(t *testing.T) {
	w := accepted(t, func(w *world) {
		w.holds("node-a")
		w.Run.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
		w.end()
	})
	for range 10 {
		action := Decide(w.Observed, testSettings, w.now).Action
		if _, deletes := action.(DeleteRun); !deletes && action != nil {
			w.do(action)
		}
		w.now = w.now.Add(time.Second)
	}
	if p := (&planner{Observed: w.Observed}); len(p.held()) > 0 {
		t.Errorf("it holds %v", p.held())
	}
}
