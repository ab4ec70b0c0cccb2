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

// step lets a minute pass at most, in which the planner decides once; a write that is refused changes nothing.
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
	after, again := decision.LookAgain()
	if !again || after > time.Minute {
		after = time.Minute
	}
	w.now = w.now.Add(max(after, time.Second))
}

// Whatever stands in a run's way, and from when on: its nodes are free soon after its budget, unless a block runs there.
func TestDecide_NodesAreReleasedAfterTheBudget(t *testing.T) {
	type way struct {
		stands  func(*world)
		refused func(Action) bool
	}
	nothing := func(Action) bool { return false }
	damaged := func(w *world) {
		w.Ledger = LedgerState{Problem: assayv1alpha1.ReasonLedgerDamaged, Message: "analysis.json is no analysis"}
	}
	ways := map[string]way{
		"the ledger is damaged": {damaged, nothing},
		"the store is away": {func(w *world) {
			w.Ledger = LedgerState{Problem: assayv1alpha1.ReasonLedgerUnreachable, Message: "no answer"}
		}, nothing},
		"the engine is away": {func(w *world) {
			w.Engine = EngineState{Problem: assayv1alpha1.ReasonEngineTooOld, Message: "upgrade it"}
		}, nothing},
		"the engine does not act": {func(*world) {}, nothing},
		"the engine is away, and the ledger is damaged": {func(w *world) {
			damaged(w)
			w.Engine = EngineState{Problem: assayv1alpha1.ReasonEngineTooOld, Message: "upgrade it"}
		}, nothing},
		"no execution can be made": {func(*world) {}, func(action Action) bool { _, ok := action.(StartWave); return ok }},
		"no wave can be written":   {func(*world) {}, func(action Action) bool { _, ok := action.(PlanWave); return ok }},
		"no node is tainted": {func(w *world) { w.Run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode },
			func(action Action) bool {
				_, ok := action.(PlanWave) // The world taints at once: the wave does not come either way.
				return ok
			}},
		"the analysis is on a node that is lost": {func(w *world) {
			if w.Wave != nil {
				w.Pods = PodState{Alive: 1, Analysing: []AnalysisPod{{Node: "node-b", Execution: w.Wave.Name}}}
			}
			w.ready("node-b", false)
		}, nothing},
		"somebody wrote what its blocks have not measured": {func(w *world) {
			if w.Ledger.Newest != nil {
				w.allMeasured(experiment.VerdictGo, len(w.Ledger.Newest.Blocks))
			}
		}, nothing},
		"a person suspended it in the engine": {func(w *world) {
			if w.Wave != nil {
				w.Wave.Suspended = true
			}
		}, nothing},
	}
	asks := map[string]func(*world){
		"nobody asks for anything": func(*world) {},
		"it is cancelled":          func(w *world) { w.Run.Spec.Cancel = ptr.To(true) },
		"it is suspended":          func(w *world) { w.Run.Spec.Suspend = ptr.To(true) },
	}
	for what, way := range ways {
		for asked, ask := range asks {
			for before := range 12 {
				t.Run(fmt.Sprintf("%s after %d steps and %s", what, before, asked), func(t *testing.T) {
					w := newWorld(t)
					for range before {
						w.step(nothing)
					}
					way.stands(w)
					ask(w)
					// What a run gets at most: its budget, the grace for the engine, and the time to notice.
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

// A status that the API server refuses, whoever is to blame for it, keeps no node from others.
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
			t.Errorf("%s: it does not end any more", verdict)
		}
	}
}

// Somebody takes the operator's finalizer off a run and deletes it, so that only others' finalizers keep it.
func TestDecide_DeletedRunWithoutFinalizerStops(t *testing.T) {
	w := newWorld(t)
	w.happens("the run is created", func() {})
	w.Run.Finalizers, w.Run.DeletionTimestamp = []string{"orphan"}, ptr.To(metav1.NewTime(w.now))
	w.settle()
	if !w.Wave.Deleting {
		t.Fatalf("its execution goes on:\n%s", w.log.String())
	}
	w.happens("the execution is gone", func() { w.Wave, w.Pods = nil, PodState{} })
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
		"a store that is away comes back": {assayv1alpha1.ReasonLedgerUnreachable, func(w *world) { w.Run.Spec.Cancel = ptr.To(true) }, PodState{}, ""},
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
		"its node is gone":               {func(w *world) { w.Nodes = w.Nodes[:1] }, true},
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
			w.happens("the execution is gone", func() { w.Wave = nil })
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

// Whoever writes a run all the time keeps it from being deleted.
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
