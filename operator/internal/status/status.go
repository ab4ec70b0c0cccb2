// Package status computes a run's status. It is pure: the same world, decision and clock give the same status, and every reconcile computes
// all of it, also one that failed.
package status

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/outcome"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// Outcome is the outcome of a reconcile.
type Outcome struct {
	World    *observe.World
	Decision plan.Decision
	// LedgerErr and WriteErr are why the action failed.
	LedgerErr, WriteErr error
}

func (o *Outcome) failed() bool { return o.LedgerErr != nil || o.WriteErr != nil }

// Compute returns the status after a reconcile.
func Compute(o Outcome, now time.Time) assayv1alpha1.BenchmarkRunStatus {
	run := o.World.Run
	out := *run.Status.DeepCopy()
	setLeases(&out, o.World)
	if plan.Expands(o.World.Observed) || o.World.Ledger.Experiment != nil || plan.Ended(run) {
		out.AcceptanceTries = 0 // The operator that computes this status has survived it.
	}
	out.ObservedGeneration = run.Generation
	if plan.Ended(run) {
		return out
	}
	// The API server keeps seconds; a finer clock would change the status on every reconcile.
	now = now.Truncate(time.Second)
	if run.DeletionTimestamp.IsZero() {
		setProgress(&out, &o, now)
		if o.World.Analysis != nil {
			Results(&out, o.World.Ledger.Experiment, o.World.Analysis, o.World.ReportURL)
			out.Analysis = o.World.Accepted
		}
	}
	setWaits(&out, o.Decision, now)
	setConditions(&out, &o, now)
	setReason(&out, o.World.Analysis, o.World.Failing())
	if o.Decision.Ending != nil && !o.failed() {
		if row := outcome.Of(true, ""); o.Decision.Ending.Reason == row.Reason {
			out.Verdict = assayv1alpha1.Verdict(row.Verdict) // A block that never started leaves nothing to analyse.
		}
		out.CompletionTime = ptr.To(metav1.NewTime(now))
		out.Remaining, out.Expected, out.Queue, out.Grace = nil, "", nil, nil
	}
	out.Phase = phase(&out, &o)
	return out
}

// setWaits records since when the run waits for a node, and since when it is in a period of grace. Later decisions read both.
func setWaits(out *assayv1alpha1.BenchmarkRunStatus, decision plan.Decision, now time.Time) {
	switch place := decision.Queue; {
	case place == nil:
		out.Queue = nil
	case out.Queue == nil:
		out.Queue = &assayv1alpha1.QueueStatus{Since: metav1.NewTime(now), Ahead: int32(place.Ahead)}
	default:
		out.Queue.Ahead = int32(place.Ahead)
	}
	switch what := decision.Grace; {
	case what == "":
		out.Grace = nil
	case out.Grace == nil || out.Grace.For != what:
		out.Grace = &assayv1alpha1.GraceStatus{For: what, Since: metav1.NewTime(now)}
	}
}

// setProgress counts the trials in the ledger. While the ledger is unreachable, the counts do not change.
func setProgress(out *assayv1alpha1.BenchmarkRunStatus, o *Outcome, now time.Time) {
	state := o.World.Ledger
	if state.Problem != "" {
		return
	}
	out.Ledger = o.World.LedgerURL
	experiment, wave, trials := state.Experiment, state.Newest, state.Trials
	executionName := ptr.Deref(o.World.Wave, plan.Execution{}).Name
	if !o.failed() {
		switch action := o.Decision.Action.(type) {
		case plan.Accept:
			experiment = action.Experiment
		case plan.StartWave:
			executionName = executor.Name(o.World.Run.Name, action.Wave.Wave)
		default:
		}
	}
	if experiment != nil {
		out.Experiment = experiment.Digest
	}
	if wave == nil || !begun(out, wave, executionName, state.Analysed) {
		return
	}
	out.Wave = ptr.To(int32(wave.Wave))
	out.Execution = cmp.Or(executionName, out.Execution)
	if out.StartTime == nil {
		out.StartTime = ptr.To(metav1.NewTime(cmp.Or(plan.Started(o.World.Observed), now)))
	}
	ran := state.Measured
	if result := o.World.Analysis; result != nil && state.Analysed {
		ran = min(ran, result.Ran)
	}
	progress := fmt.Sprintf("%d/%d", ran, state.Measurable)
	if progress != out.Progress || out.Remaining == nil {
		out.Remaining = remaining(o.World, now)
	}
	out.Trials = assayv1alpha1.TrialCounts{Planned: int32(trials), Done: int32(state.Done)}
	out.Progress = progress
}

// begun reports whether a wave has, or had, an execution. Otherwise it is only planned.
func begun(out *assayv1alpha1.BenchmarkRunStatus, wave *record.Wave, executionName string, analysed bool) bool {
	return executionName != "" || analysed || out.Wave != nil && int(*out.Wave) == wave.Wave
}

// remaining is the expected duration of the remaining blocks at the pace of those that ended. It only changes when a block ends.
func remaining(world *observe.World, now time.Time) *metav1.Duration {
	state := world.Ledger
	if world.Wave == nil || state.DoneBlocks == 0 {
		return nil
	}
	pace := now.Sub(world.Wave.CreatedAt) / time.Duration(state.DoneBlocks)
	left := pace * time.Duration(len(state.Newest.Blocks)-state.DoneBlocks)
	return &metav1.Duration{Duration: max(left, 0).Round(time.Second)}
}

// phase summarizes the conditions in a word.
func phase(out *assayv1alpha1.BenchmarkRunStatus, o *Outcome) assayv1alpha1.Phase {
	world := o.World
	if ending := o.Decision.Ending; ending != nil && !o.failed() {
		switch {
		case ending.Reason == assayv1alpha1.ReasonCancelled:
			return assayv1alpha1.PhaseCancelled
		case ending.Analysed:
			return outcome.Phase(ending.Reason)
		default:
			return assayv1alpha1.PhaseFailed
		}
	}
	state := world.Ledger
	switch {
	case !world.Run.DeletionTimestamp.IsZero(), state.Problem != "" && out.Phase != "":
		return out.Phase
	case plan.Suspended(world.Run):
		return assayv1alpha1.PhaseSuspended
	case out.Wave == nil:
		return assayv1alpha1.PhasePending
	case state.Newest != nil && state.DoneBlocks == len(state.Newest.Blocks) || len(world.Analyses) > 0:
		return assayv1alpha1.PhaseAnalyzing
	default:
		return assayv1alpha1.PhaseRunning
	}
}
