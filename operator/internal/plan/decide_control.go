package plan

import (
	"fmt"
	"math"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/period"
)

// control stops, suspends and resumes the execution as the run's spec asks. It does not need the ledger.
func (p *planner) control() *Decision {
	if p.Wave == nil || p.Wave.Ended || p.Wave.Stopped || p.Wave.Deleting {
		return nil
	}
	switch {
	case Cancelled(p.Run):
		return p.stop("spec.cancel is true", assayv1alpha1.ReasonCancelled, "stopping: the attempts so far will be analysed")
	case p.overBudget():
		return p.stop(p.budgetMessage(), assayv1alpha1.ReasonBudgetExhausted, p.budgetMessage()+": the attempts so far will be analysed")
	case Suspended(p.Run) && !p.Wave.Suspended:
		return &Decision{Action: Suspend{p.Wave.Name}, Reason: assayv1alpha1.ReasonSuspended, Message: suspendedMessage, After: waveInterval}
	case !Suspended(p.Run) && p.Wave.Suspended && p.suspendedByUs():
		return &Decision{Action: Resume{p.Wave.Name}, Progressing: true, Reason: assayv1alpha1.ReasonWaveRunning, Message: p.waveMessage(),
			After: waveInterval}
	}
	return nil
}

// stop ends the wave that runs. Its analysis still follows.
func (p *planner) stop(why, reason, message string) *Decision {
	return &Decision{Action: Stop{Execution: p.Wave.Name, Why: why}, After: podsInterval, Reason: reason, Message: message}
}

const suspendedMessage = "spec.suspend is true: no new block starts; set it to false to go on"

// suspendedByUs reports whether the execution was suspended for spec.suspend, and not by a person in the engine.
func (p *planner) suspendedByUs() bool { return p.Run.Status.SuspendedSince != nil }

// budgetLeft is the remainder of the run's wall-clock budget, which counts once the run has a wave or a node. Suspension extends it, except
// for nodes: a suspended run releases its nodes when its blocks have ended, so that a node held for longer than the budget exhausts it. The
// same holds for a run that has a node and never starts its first wave.
func (p *planner) budgetLeft() (left time.Duration, counts bool) {
	start, budget := Started(p.Observed), p.Run.Spec.Budget.WallClock.Duration
	if counts = !start.IsZero(); counts {
		left = period.Left(start, longer(budget, SuspendedFor(p.Run, p.now)), p.now)
	}
	for _, held := range p.held() {
		// The lease of the first wave is older than the wave, which names its token.
		if of := period.Left(latest(start, held.Acquired), budget, p.now); !counts || of < left {
			left, counts = of, true
		}
	}
	return left, counts
}

// longer adds two durations, the first of which has no upper bound, and saturates at the longest duration.
func longer(unbounded, by time.Duration) time.Duration { return by + min(unbounded, math.MaxInt64-by) }

// SuspendedFor is how long a run was suspended since it started. It is computed from the status alone, so that it survives a restart.
func SuspendedFor(run *assayv1alpha1.BenchmarkRun, now time.Time) time.Duration {
	var out time.Duration
	if before := run.Status.SuspendedTime; before != nil {
		out = before.Duration
	}
	if begun, since := run.Status.StartTime, run.Status.SuspendedSince; begun != nil && since != nil {
		out += max(0, now.Sub(latest(begun.Time, since.Time)))
	}
	return out
}

// noMore reports whether the run may start nothing more, so that it needs no node.
func (p *planner) noMore() bool { return Cancelled(p.Run) || p.overBudget() }

// unended reports whether the newest wave was stopped, nothing of the run is on a node that answers, and the engine does not end its
// execution.
func (p *planner) unended() bool {
	return !Ended(p.Run) && p.Wave != nil && p.Wave.Stopped && !p.Wave.Ended && !p.Wave.Deleting && !p.onLiveNodes()
}

// neverEnding deletes the execution of a wave that was stopped more than podGrace ago and that the engine does not end, because it blocks
// the nodes of the run. It does not need the ledger.
func (p *planner) neverEnding() *Decision {
	if !p.unended() || !period.Over(p.since(assayv1alpha1.GraceForEngine), podGrace, p.now) {
		return nil
	}
	return &Decision{
		Action: DeleteExecutions{[]string{p.Wave.Name}}, After: WatchSettles, Grace: assayv1alpha1.GraceForEngine,
		Reason: assayv1alpha1.ReasonWaitingForEngine,
		Message: fmt.Sprintf("%s was stopped, none of its pods is running, and %s has not ended it for %s: deleting it to release its nodes",
			p.named(p.Wave.Name), p.settings.Engine.Name, podGrace),
	}
}

func (p *planner) overBudget() bool {
	left, counts := p.budgetLeft()
	return counts && left <= 0
}

func (p *planner) budgetMessage() string {
	return fmt.Sprintf("spec.budget.wallClock of %s is used up", p.Run.Spec.Budget.WallClock.Duration)
}

// Started is when the first wave was created; zero before that.
func Started(o Observed) time.Time {
	if o.Run.Status.StartTime != nil {
		return o.Run.Status.StartTime.Time
	}
	if o.Wave != nil {
		return o.Wave.CreatedAt
	}
	return time.Time{}
}
