package plan

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
)

// The lease of the first wave is older than the wave, which has its token.
func TestDecide_SuspendedRunReleasesNodesAfterTheBudget(t *testing.T) {
	for name, before := range map[string]time.Duration{
		"its lease is as old as the wave": 0, "a millisecond older": time.Millisecond, "two seconds older": 2 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.happens("the run is created", func() {})
			w.Leases[0].Acquired = w.Run.Status.StartTime.Add(-before)
			w.after(time.Minute).happens("it is suspended, and its block does not end", func() {
				w.Pods.Blocks, w.Run.Spec.Suspend = map[string]int{"node-a": 1}, ptr.To(true)
			})
			w.after(w.Run.Spec.Budget.WallClock.Duration).happens("its budget is used up", func() {})
			if !w.Wave.Stopped {
				t.Errorf("its wave continues:\n%s", w.log.String())
			}
		})
	}
}

func TestOverBudget_SuspendedTimeIsExcluded(t *testing.T) {
	suspendedAt := func(after time.Duration) func(*world) {
		return func(w *world) {
			w.Run.Spec.Suspend, w.Wave.Suspended = ptr.To(true), true
			w.Run.Status.SuspendedSince = ptr.To(metav1.NewTime(w.began.Add(after)))
		}
	}
	// A block that does not end holds its node.
	since := func(acquired time.Duration) func(*world) {
		return func(w *world) {
			w.Leases = []lease.Lease{{Node: "node-a", Holder: HolderOf(w.Run), Token: 1, Acquired: w.began.Add(acquired)}}
		}
	}
	longest := func(w *world) { w.Run.Spec.Budget.WallClock.Duration = math.MaxInt64 }
	week := 168 * time.Hour
	earlier := func(w *world) { w.Run.Status.SuspendedTime = &metav1.Duration{Duration: 3 * time.Hour} }
	for name, tc := range map[string]struct {
		edits []func(*world)
		after time.Duration
		over  bool
	}{
		"two hours of work":                                     {nil, 2 * time.Hour, true},
		"the maximum budget":                                    {[]func(*world){longest}, week, false},
		"the maximum budget, and suspended":                     {[]func(*world){longest, earlier, suspendedAt(4 * time.Hour)}, week, false},
		"a second less":                                         {nil, 2*time.Hour - time.Second, false},
		"suspended after an hour, for a week":                   {[]func(*world){suspendedAt(time.Hour)}, 170 * time.Hour, false},
		"suspended before it began":                             {[]func(*world){suspendedAt(-time.Hour)}, 170 * time.Hour, false},
		"three hours of five were suspended":                    {[]func(*world){earlier}, 5 * time.Hour, true},
		"a second less, and three hours were suspended":         {[]func(*world){earlier}, 5*time.Hour - time.Second, false},
		"three hours were suspended, and it is suspended again": {[]func(*world){earlier, suspendedAt(4 * time.Hour)}, 170 * time.Hour, false},
		"suspended after an hour, and the node is held for two": {[]func(*world){since(0), suspendedAt(time.Hour)}, 2 * time.Hour, true},
		"a second less, suspended, with the node":               {[]func(*world){since(0), suspendedAt(time.Hour)}, 2*time.Hour - time.Second, false},
		"suspended repeatedly, and the lease is not released":   {[]func(*world){since(time.Minute), earlier}, 2*time.Hour + time.Minute, true},
		"the lease was released meanwhile":                      {[]func(*world){since(4 * time.Hour), earlier}, 5*time.Hour - time.Second, false},
		"a lease older than the wave":                           {[]func(*world){since(-time.Hour)}, time.Hour, false},
		"a lease older than the wave, held for the budget":      {[]func(*world){since(-time.Hour), suspendedAt(time.Hour)}, 2 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.happens("the run is created", func() {})
			w.Leases = nil
			for _, edit := range tc.edits {
				edit(w)
			}
			p := &planner{Observed: w.Observed, settings: testSettings, now: w.began.Add(tc.after)}
			if p.overBudget() != tc.over {
				t.Errorf("after %s the budget of %s is used up: %v, want %v", tc.after, w.Run.Spec.Budget.WallClock.Duration, !tc.over, tc.over)
			}
		})
	}
}

// Without a policy the budget has no limit.
func TestDecide_MaximumBudgetDoesNotOverflow(t *testing.T) {
	w := newWorld(t)
	w.Run.Spec.Budget.WallClock.Duration = math.MaxInt64
	w.happens("the run is created", func() {})
	if w.Wave == nil || w.longest != math.MaxInt64 {
		t.Errorf("a block of wave %v may take %s, want the maximum", w.Wave, w.longest)
	}
}

// A run that is suspended while its blocks run and resumed between waves retakes its leases with each wave, so that no other run can
// acquire them in between.
func TestDecide_RepeatedSuspensionReleasesNodes(t *testing.T) {
	w := newWorld(t)
	adaptive(400, "1%")(&w.Run.Spec)
	w.happens("the run is created", func() {})
	for wave := 1; wave <= 3; wave++ {
		w.happens("it is suspended while its block runs", func() {
			w.Pods.Blocks, w.Run.Spec.Suspend = map[string]int{"node-a": 1}, ptr.To(true)
		})
		w.after(50*time.Minute).happens("it is resumed", func() {
			before := SuspendedFor(w.Run, w.now)
			w.Run.Status.SuspendedTime = &metav1.Duration{Duration: before}
			w.Pods.Blocks, w.Run.Spec.Suspend = nil, nil
		})
		if Ended(w.Run) || w.Wave.Stopped {
			break
		}
		w.blocksDone(len(w.Ledger.Newest.Blocks))
		w.analysisFinds(experiment.VerdictInconclusive, 10*wave, 0.04)
	}
	if p := (&planner{Observed: w.Observed}); !Ended(w.Run) && !w.Wave.Stopped && len(p.held()) > 0 {
		t.Errorf("after %s of a budget of %s it holds %v:\n%s", w.now.Sub(w.began), w.Run.Spec.Budget.WallClock.Duration, p.held(),
			w.log.String())
	}
}
