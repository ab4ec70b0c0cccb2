package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// then returns the status of the next reconcile, minutes later and after a change of the observation.
func then(t *testing.T, first, next func(o *Outcome)) (before, after assayv1alpha1.BenchmarkRunStatus) {
	t.Helper()
	o := Outcome{World: testWorld(), Decision: running}
	first(&o)
	before = Compute(o, began.Add(10*time.Minute))
	o.World.Run.Status = before
	next(&o)
	return before, Compute(o, began.Add(30*time.Minute))
}

func TestStatus_FollowsTheSteps(t *testing.T) {
	half := func(o *Outcome) { o.World.Ledger.Done, o.World.Ledger.Measured, o.World.Ledger.DoneBlocks = 20, 20, 2 }
	all := func(o *Outcome) { o.World.Ledger.Done, o.World.Ledger.Measured, o.World.Ledger.DoneBlocks = 40, 40, 4 }
	away := func(o *Outcome) {
		o.World.Ledger = plan.LedgerState{Problem: assayv1alpha1.ReasonLedgerUnreachable, Message: "no answer"}
		o.Decision = plan.Decision{Reason: assayv1alpha1.ReasonLedgerUnreachable}
	}
	collected := func(o *Outcome) { o.World.Wave = nil }
	planned := func(o *Outcome) {
		wave := *o.World.Ledger.Newest
		wave.Wave = 1
		o.World.Ledger.Newest, o.World.Ledger.Trials, o.World.Wave = &wave, 80, nil
	}
	show := func(s assayv1alpha1.BenchmarkRunStatus) string {
		out := fmt.Sprintf("%s %s", s.Phase, s.Progress)
		if s.Remaining != nil {
			out += ", " + s.Remaining.Duration.String() + " left"
		}
		if s.Wave != nil {
			out += fmt.Sprintf(", wave %d as %s", *s.Wave, s.Execution)
		}
		return out
	}
	nothing := func(*Outcome) {}
	for name, c := range map[string]struct {
		first, next   func(*Outcome)
		before, after string
	}{
		"a block ends, and the others are expected to be as fast": {
			half, func(o *Outcome) { o.World.Ledger.Done, o.World.Ledger.Measured, o.World.Ledger.DoneBlocks = 30, 30, 3 },
			"Running 20/40, 10m0s left, wave 0 as scan-w000", "Running 30/40, 10m0s left, wave 0 as scan-w000",
		},
		"the last block ends": {
			half, all, "Running 20/40, 10m0s left, wave 0 as scan-w000", "Analyzing 40/40, 0s left, wave 0 as scan-w000",
		},
		"the ledger is unreachable at first": {
			func(o *Outcome) { away(o); o.World.Wave = nil }, nothing, "Pending ", "Pending ",
		},
		"the ledger is unreachable during the analysis": {
			all, away, "Analyzing 40/40, 0s left, wave 0 as scan-w000", "Analyzing 40/40, 0s left, wave 0 as scan-w000",
		},
		"the workflow is collected while blocks are read": {
			half, func(o *Outcome) {
				collected(o)
				o.World.Ledger.Done, o.World.Ledger.Measured, o.World.Ledger.DoneBlocks = 30, 30, 3
			},
			"Running 20/40, 10m0s left, wave 0 as scan-w000", "Running 30/40, wave 0 as scan-w000",
		},
		"a further wave is planned and has not begun": {
			half, planned, "Running 20/40, 10m0s left, wave 0 as scan-w000", "Running 20/40, 10m0s left, wave 0 as scan-w000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := then(t, c.first, c.next)
			if diff := cmp.Diff([]string{c.before, c.after}, []string{show(before), show(after)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Tries of the acceptance are counted before the try, and reset after one that did not crash the operator.
func TestStatus_AcceptanceTriesAreResetAfterSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(w *observe.World)
		want int32
	}{
		"the template is not there":   {func(w *observe.World) { w.Ledger.Experiment = nil }, 2},
		"the ledger is away":          {func(w *observe.World) { w.Ledger = plan.LedgerState{Problem: "LedgerUnreachable"} }, 2},
		"the experiment was expanded": {func(w *observe.World) { w.Ledger.Experiment, w.Template = nil, &assayv1alpha1.BenchmarkTemplateSpec{} }, 0},
		"an experiment is there":      {func(*observe.World) {}, 0},
		"the run ended without an experiment": {func(w *observe.World) {
			w.Ledger.Experiment, w.Run.Status.CompletionTime = nil, ptr.To(metav1.NewTime(began))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			world := testWorld()
			world.Run.Status.AcceptanceTries = 2
			c.edit(world)
			if got := Compute(Outcome{World: world}, began); got.AcceptanceTries != c.want {
				t.Errorf("%d tries, want %d", got.AcceptanceTries, c.want)
			}
		})
	}
}

func TestEvents_SuspendAndResume(t *testing.T) {
	suspend := func(suspended bool) func(*Outcome) {
		return func(o *Outcome) { o.World.Run.Spec.Suspend = ptr.To(suspended) }
	}
	told := func(before, after *assayv1alpha1.BenchmarkRunStatus) string {
		var out []string
		for _, event := range Events(before, after) {
			if strings.Contains(event.Reason, "Suspended") {
				out = append(out, event.Type+" "+event.Reason)
			}
		}
		return strings.Join(out, ", ")
	}
	for name, c := range map[string]struct {
		first, next bool
		want        [2]string
	}{
		"a run that is never suspended":  {false, false, [2]string{"", ""}},
		"one that is while it runs":      {false, true, [2]string{"", "Normal Suspended"}},
		"one that is from the beginning": {true, true, [2]string{"Normal Suspended", ""}},
		"one that is resumed":            {true, false, [2]string{"Normal Suspended", "Normal NotSuspended"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := then(t, suspend(c.first), suspend(c.next))
			if got := [2]string{told(&assayv1alpha1.BenchmarkRunStatus{}, &before), told(&before, &after)}; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The status has an expectation about further blocks only if the experiment is known and has a decision, which a search does not have.
func TestStatus_ExpectationRequiresADecision(t *testing.T) {
	for name, c := range map[string]struct {
		exp  *experiment.Experiment
		want string
	}{
		"an experiment":                    {&experiment.Experiment{}, "a decision at the effect found"},
		"a search":                         {&experiment.Experiment{Plan: experiment.Plan{Search: &experiment.Search{}}}, ""},
		"results without their experiment": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got assayv1alpha1.BenchmarkRunStatus
			Results(&got, c.exp, &analysis.Analysis{ValidBlocks: 8, Gates: []analysis.GateResult{{
				Op: experiment.RatioAtLeast, Severity: experiment.Blocking, Bound: ptr.To(1.5), Confidence: 0.95,
				Estimate: &analysis.Estimate{Value: 1.6, Ratio: true, Low: ptr.To(1.4), High: ptr.To(1.8), Blocks: 8},
			}}}, "")
			if !strings.HasPrefix(got.Expected, c.want) || c.want == "" && got.Expected != "" {
				t.Errorf("expects %q, want %q", got.Expected, c.want)
			}
		})
	}
}

// An estimate with an unbounded interval is shown without it.
func TestStatus_IntervalHasBothBounds(t *testing.T) {
	for name, e := range map[string]*analysis.Estimate{
		"no lower end":  {Value: 2, Unit: "s", High: ptr.To(3.0)},
		"no upper end":  {Value: 2, Unit: "s", Low: ptr.To(1.0)},
		"no end at all": {Value: 2, Unit: "s"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gates(nil, []analysis.GateResult{{Estimate: e}}); got[0].Interval != nil || got[0].Estimate == "" {
				t.Errorf("%+v", got[0])
			}
		})
	}
}

// The schema limits the list of leases. A longer list would make the whole status invalid.
func TestLeases_NumberInTheStatusIsLimited(t *testing.T) {
	world := testWorld()
	for i := range maxLeases + 1 {
		world.Leases = append(world.Leases, lease.Lease{Node: fmt.Sprintf("node-%03d", i), Holder: plan.HolderOf(world.Run)})
	}
	if got := Compute(Outcome{World: world, Decision: running}, began); len(got.Leases) != maxLeases {
		t.Errorf("%d leases", len(got.Leases))
	}
}
