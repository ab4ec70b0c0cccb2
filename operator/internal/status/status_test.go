package status

import (
	"encoding/json"
	"errors"
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
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

var began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func testWorld() *observe.World {
	wave := &record.Wave{Blocks: []record.Block{{ID: "w000-b0000", Order: make([]int, 10)}, {ID: "w000-b0001", Order: make([]int, 10)},
		{ID: "w000-b0002", Order: make([]int, 10)}, {ID: "w000-b0003", Order: make([]int, 10)}}}
	return &observe.World{
		LedgerURL: "s3://assay/runs/lab/scan/u",
		Observed: plan.Observed{
			Run:    &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u", Generation: 3}},
			Ledger: plan.LedgerState{Experiment: &experiment.Experiment{Digest: "sha256:0"}, Newest: wave, Trials: 40, Measurable: 40},
			Wave:   &plan.Execution{Name: "scan-w000", CreatedAt: began, Seen: true},
		},
	}
}

var running = plan.Decision{Progressing: true, Reason: assayv1alpha1.ReasonWaveRunning, Message: "execution scan-w000 is running"}

// line returns a summary of a status.
func line(s assayv1alpha1.BenchmarkRunStatus) string {
	out := fmt.Sprintf("%s %s", s.Phase, s.Progress)
	if s.Remaining != nil {
		out += " " + s.Remaining.Duration.String()
	}
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue {
			out += fmt.Sprintf(" %s", c.Type)
		} else {
			out += fmt.Sprintf(" !%s(%s)", c.Type, c.Reason)
		}
	}
	return strings.TrimSpace(out)
}

func TestStatus(t *testing.T) {
	refused := errors.New("workflows.argoproj.io is forbidden")
	cases := map[string]struct {
		edit func(o *Outcome)
		want string
	}{
		"a wave runs": {
			func(*Outcome) {}, "Running 0/40 Accepted LedgerReady Progressing !Suspended(NotSuspended)",
		},
		"half of the blocks took ten minutes, so the other half will": {
			func(o *Outcome) { o.World.Ledger.Done, o.World.Ledger.Measured, o.World.Ledger.DoneBlocks = 20, 20, 2 },
			"Running 20/40 10m0s Accepted LedgerReady Progressing !Suspended(NotSuspended)",
		},
		"all blocks are there": {
			func(o *Outcome) { o.World.Ledger.Done, o.World.Ledger.Measured, o.World.Ledger.DoneBlocks = 40, 40, 4 },
			"Analyzing 40/40 0s Accepted LedgerReady Progressing !Suspended(NotSuspended)",
		},
		"the experiment has just been accepted": {
			func(o *Outcome) {
				o.Decision = plan.Decision{Action: plan.Accept{Experiment: o.World.Ledger.Experiment}, Progressing: true,
					Reason: assayv1alpha1.ReasonAccepted}
				o.World.Ledger, o.World.Wave = plan.LedgerState{}, nil
			},
			"Pending  Accepted LedgerReady Progressing !Suspended(NotSuspended)",
		},
		"it could not be written to the ledger": {
			func(o *Outcome) {
				o.Decision = plan.Decision{Action: plan.Accept{Experiment: o.World.Ledger.Experiment}, Progressing: true,
					Reason: assayv1alpha1.ReasonAccepted}
				o.World.Ledger, o.World.Wave = plan.LedgerState{}, nil
				o.LedgerErr = store.ErrNoBucket
			},
			"Pending  !LedgerReady(BucketMissing) !Progressing(BucketMissing) !Suspended(NotSuspended)",
		},
		"the template does not exist": {
			func(o *Outcome) {
				o.World.Ledger, o.World.Wave = plan.LedgerState{}, nil
				o.Decision = plan.Decision{Reason: assayv1alpha1.ReasonTemplateNotFound}
			},
			"Pending  !Accepted(TemplateNotFound) LedgerReady !Progressing(TemplateNotFound) !Suspended(NotSuspended)",
		},
		"the workflow may not be written": {
			func(o *Outcome) {
				o.World.Wave = nil
				o.Decision = plan.Decision{Action: plan.StartWave{Wave: o.World.Ledger.Newest}, Progressing: true,
					Reason: assayv1alpha1.ReasonWaveRunning}
				o.WriteErr = refused
			},
			"Pending  Accepted LedgerReady !Progressing(WriteFailed) !Suspended(NotSuspended)",
		},
		"an ending after a failed action is not written": {
			func(o *Outcome) {
				o.Decision = plan.Decision{Action: plan.Terminate{}, Reason: assayv1alpha1.ReasonImageNotPulled,
					Ending: &plan.Ending{Reason: assayv1alpha1.ReasonImageNotPulled}}
				o.WriteErr = refused
			},
			"Running 0/40 Accepted LedgerReady !Progressing(WriteFailed) !Suspended(NotSuspended)",
		},
		"suspended": {
			func(o *Outcome) {
				o.World.Run.Spec.Suspend = ptr.To(true)
				o.Decision = plan.Decision{Reason: assayv1alpha1.ReasonSuspended}
			},
			"Suspended 0/40 Accepted LedgerReady !Progressing(Suspended) Suspended",
		},
		"an unreachable ledger leaves the results unchanged": {
			func(o *Outcome) {
				o.World.Run.Status = Compute(*o, began.Add(time.Minute))
				o.World.Ledger = plan.LedgerState{Problem: assayv1alpha1.ReasonLedgerUnreachable, Message: "no answer"}
				o.Decision = plan.Decision{Reason: assayv1alpha1.ReasonLedgerUnreachable}
			},
			"Running 0/40 Accepted !LedgerReady(LedgerUnreachable) !Progressing(LedgerUnreachable) !Suspended(NotSuspended)",
		},
		"the end, with an analysis": {
			func(o *Outcome) {
				o.World.Ledger.Done, o.World.Ledger.Measured, o.World.Ledger.DoneBlocks, o.World.Ledger.Analysed = 40, 40, 4, true
				o.Decision = plan.Decision{Reason: assayv1alpha1.ReasonFinished,
					Ending: &plan.Ending{Analysed: true, Reason: assayv1alpha1.ReasonVerdictReached}}
			},
			"Succeeded 40/40 Accepted LedgerReady !Progressing(Finished) !Suspended(NotSuspended) Complete",
		},
		"the end, with a broken setup": {
			func(o *Outcome) {
				o.World.Ledger.Done, o.World.Ledger.Measured, o.World.Ledger.DoneBlocks, o.World.Ledger.Analysed = 40, 40, 4, true
				o.Decision = plan.Decision{Reason: assayv1alpha1.ReasonFinished,
					Ending: &plan.Ending{Analysed: true, Reason: assayv1alpha1.ReasonSetupBroken}}
			},
			"Failed 40/40 Accepted LedgerReady !Progressing(Finished) !Suspended(NotSuspended) Failed",
		},
		"the end of a cancelled run": {
			func(o *Outcome) {
				o.World.Run.Spec.Suspend = ptr.To(true)
				o.Decision = plan.Decision{Reason: assayv1alpha1.ReasonCancelled, Ending: &plan.Ending{Reason: assayv1alpha1.ReasonCancelled}}
			},
			"Cancelled 0/40 Accepted LedgerReady !Progressing(Finished) !Suspended(NotSuspended) Failed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Outcome{World: testWorld(), Decision: running}
			tc.edit(&o)
			now := began.Add(10 * time.Minute)
			got := Compute(o, now)
			if diff := cmp.Diff(tc.want, line(got)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			// The same observation later gives the same status, so that conditions do not flap.
			o.World.Run.Status = got
			if diff := cmp.Diff(got, Compute(o, now.Add(7*time.Second))); diff != "" {
				t.Errorf("the status changes by itself (-first +second):\n%s", diff)
			}
		})
	}
}

func TestResults(t *testing.T) {
	world := testWorld()
	world.ReportURL = "s3://assay/report.md"
	world.Ledger.Done, world.Ledger.Analysed = 40, true
	ratio := func(value float64) *analysis.Estimate {
		return &analysis.Estimate{Value: value, Unit: "1", Ratio: true, Low: ptr.To(value * 0.9), High: ptr.To(value * 1.1), Blocks: 4}
	}
	world.Analysis = &analysis.Analysis{
		Verdict: experiment.VerdictGo, Best: "fused",
		Headline: &analysis.Headline{Text: "13.00x [11.70, 14.30] (99.5 %), gain of fused"},
		Candidates: []analysis.Candidate{{Name: "naive", Verdict: experiment.VerdictNoGo, Headline: &analysis.Headline{Text: "0.7x"}},
			{Name: "fused", Verdict: experiment.VerdictGo}},
		Gates: []analysis.GateResult{
			{Gate: "slo", Candidate: "fused", Severity: experiment.Advisory, Outcome: experiment.VerdictNoGo},
			{Gate: "gain", Candidate: "fused", Op: experiment.RatioAtLeast, Bound: ptr.To(1.5), Severity: experiment.Blocking, Outcome: experiment.VerdictGo, Estimate: ratio(13), MinimumDetectableEffect: ptr.To(0.0123)},
			{Gate: "gain", Candidate: "naive", Severity: experiment.Blocking, Outcome: experiment.VerdictNoGo, Estimate: ratio(0.7)},
		},
		Trials: analysis.Trials{Planned: 40, Used: 36, Failed: 3, Invalid: 1},
	}
	got := Compute(Outcome{World: world, Decision: running}, began)
	if naive, fused := got.Candidates[0], got.Candidates[1]; naive.Gain != "0.7x" || fused.Gain != "" {
		t.Errorf("candidates %+v", got.Candidates)
	}
	if got.Gain != "13.00x [11.70, 14.30] (99.5 %), gain of fused" || got.Best != "fused" ||
		got.Report != world.ReportURL || got.Verdict != assayv1alpha1.VerdictGo {
		t.Errorf("gain %q, best %s, report %s, verdict %s", got.Gain, got.Best, got.Report, got.Verdict)
	}
	if want := (assayv1alpha1.TrialCounts{Planned: 40, Done: 36, Failed: 3, Invalid: 1}); got.Trials != want {
		t.Errorf("trials %+v, want %+v", got.Trials, want)
	}
	var order []string
	for _, gate := range got.Gates {
		order = append(order, gate.Name+" "+gate.Candidate)
	}
	if diff := cmp.Diff([]string{"gain naive", "gain fused", "slo fused"}, order); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	if gate := got.Gates[1]; gate.Bound != "1.500x" || gate.Interval == nil || gate.Interval.Low != "11.70x" ||
		gate.MinimumDetectableEffect != "1.230%" || gate.Blocks != 4 {
		t.Errorf("gate %+v", gate)
	}
}

func TestStatus_AnswersOfASearch(t *testing.T) {
	world := testWorld()
	world.Ledger.Analysed = true
	world.Analysis = &analysis.Analysis{Search: []analysis.SearchResult{
		{
			Arm: "loop", FeasibleMax: "597", InfeasibleMin: "627", FirstBreach: "627", BindingConstraint: "latency p99 AtMost 2ms",
			Interval: &analysis.LoadInterval{Low: "597", High: "627"}, Value: &analysis.Estimate{Value: 590, Unit: "op/s", Low: ptr.To(585.0), High: ptr.To(595.0)},
			Reason: "597 meets every constraint", Confirmed: true,
		},
		{Arm: "fused", Reason: "no load was tried"},
	}}
	got := Compute(Outcome{World: world, Decision: running}, began)
	want := []assayv1alpha1.SearchStatus{
		{
			Arm: "loop", FeasibleMax: "597", InfeasibleMin: "627", FirstBreach: "627", BindingConstraint: "latency p99 AtMost 2ms",
			Interval: &assayv1alpha1.Interval{Low: "597", High: "627"}, Value: "590.0 op/s [585.0, 595.0]", Reason: "597 meets every constraint",
		},
		{Arm: "fused", Reason: "no load was tried"},
	}
	if diff := cmp.Diff(want, got.Search); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatus_FailedTrialsOfEarlierWavesAreCounted(t *testing.T) {
	world := testWorld()
	world.Ledger.Done, world.Ledger.Measured = 25, 25
	world.Analysis = &analysis.Analysis{Wave: 0, Trials: analysis.Trials{Planned: 20, Used: 17, Failed: 2, Invalid: 1}}
	first := Compute(Outcome{World: world, Decision: running}, began)
	if want := (assayv1alpha1.TrialCounts{Planned: 40, Done: 22, Failed: 2, Invalid: 1}); first.Trials != want || first.Progress != "25/40" {
		t.Errorf("trials %+v and progress %s, want %+v", first.Trials, first.Progress, want)
	}
	// As long as no block ends, nothing changes.
	world.Run.Status = first
	if again := Compute(Outcome{World: world, Decision: running}, began.Add(time.Minute)); !cmp.Equal(first.Remaining, again.Remaining) {
		t.Errorf("remaining changed from %v to %v", first.Remaining, again.Remaining)
	}
}

func TestStatus_MaximumSizeFits(t *testing.T) {
	world := testWorld()
	long := strings.Repeat("ü", 100000)
	result := &analysis.Analysis{Verdict: experiment.VerdictInvalid}
	for i := range 10000 {
		result.Gates = append(result.Gates,
			analysis.GateResult{Gate: "g", Candidate: "c", Point: long, Message: long, Outcome: experiment.VerdictInvalid,
				Estimate: &analysis.Estimate{Value: float64(i), Unit: long, Low: ptr.To(1.0), High: ptr.To(2.0)}})
		result.Warnings = append(result.Warnings, long)
	}
	for i := range 16 {
		result.Candidates = append(result.Candidates,
			analysis.Candidate{Name: fmt.Sprintf("c%d", i), Verdict: experiment.VerdictInvalid, Headline: &analysis.Headline{Text: long}})
	}
	for i := range 100 {
		result.Search = append(result.Search, analysis.SearchResult{Arm: fmt.Sprintf("c%d", i), FeasibleMax: long, InfeasibleMin: long,
			FirstBreach: long, BindingConstraint: long, Reason: long})
	}
	world.Analysis = result
	got := Compute(Outcome{World: world, Decision: plan.Decision{Reason: "Test", Message: long}}, began)
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 256<<10 {
		t.Errorf("the status has %d bytes", len(raw))
	}
}

func TestEvents_EachTransitionIsReportedOnce(t *testing.T) {
	o := Outcome{World: testWorld(), Decision: running}
	first := Compute(o, began)
	if diff := cmp.Diff([]string{"WaveStarted", "Accepted"}, reasons(Events(&assayv1alpha1.BenchmarkRunStatus{}, &first))); diff != "" {
		t.Errorf("first events (-want +got):\n%s", diff)
	}
	if events := Events(&first, &first); len(events) > 0 {
		t.Errorf("events without a change: %v", events)
	}
	o.World.Run.Status = first
	o.World.Ledger = plan.LedgerState{Problem: assayv1alpha1.ReasonLedgerMissing, Message: "100 % gone"}
	o.Decision = plan.Decision{Reason: assayv1alpha1.ReasonLedgerMissing}
	second := Compute(o, began)
	events := Events(&first, &second)
	if diff := cmp.Diff([]Event{{"Warning", assayv1alpha1.ReasonLedgerMissing, "100 % gone"}}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func reasons(events []Event) []string {
	var out []string
	for _, event := range events {
		out = append(out, event.Reason)
	}
	return out
}

func TestStatus_FinishedRunIsUnchanged(t *testing.T) {
	world := testWorld()
	world.Run.Status.CompletionTime = ptr.To(metav1.NewTime(began))
	world.Run.Status.ObservedGeneration = 3
	world.Ledger = plan.LedgerState{}
	if diff := cmp.Diff(world.Run.Status, Compute(Outcome{World: world}, began)); diff != "" {
		t.Errorf("the status changed:\n%s", diff)
	}
}

// The total suspended time is stored in the status, so that it survives a restart of the operator.
func TestStatus_SuspendedTimeIsSummed(t *testing.T) {
	world := testWorld()
	pass := func(after time.Duration, suspend bool) *metav1.Duration {
		world.Run.Spec.Suspend = ptr.To(suspend)
		world.Run.Status = Compute(Outcome{World: world, Decision: running}, began.Add(after))
		return world.Run.Status.SuspendedTime
	}
	for i, step := range []struct {
		after   time.Duration
		suspend bool
		want    time.Duration
	}{
		{0, false, 0}, {time.Hour, true, 0}, {2 * time.Hour, true, 0}, {3 * time.Hour, false, 2 * time.Hour}, {4 * time.Hour, false, 2 * time.Hour},
		{5 * time.Hour, true, 2 * time.Hour}, {6 * time.Hour, false, 3 * time.Hour},
	} {
		got := pass(step.after, step.suspend)
		if step.want == 0 && got != nil || step.want != 0 && (got == nil || got.Duration != step.want) {
			t.Errorf("step %d: suspended for %v, want %s", i, got, step.want)
		}
	}
}
