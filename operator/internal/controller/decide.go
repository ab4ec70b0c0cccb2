package controller

import (
	"context"
	"fmt"

	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// decide returns the decision for a run. Expanding an experiment and starting a run that counts against a limit are each serialized.
func (r *Reconciler) decide(ctx context.Context, world *observe.World) (plan.Decision, error) {
	if plan.Expands(world.Observed) {
		// If expanding ends the operator, for want of memory, the run that is noted in the status is the one that did it.
		r.expanding.Lock()
		defer r.expanding.Unlock()
	}
	if err := r.noteExpansion(ctx, world); err != nil {
		return plan.Decision{}, err
	}
	now := r.Observer.Clock.Now()
	if len(world.Waiting) > 0 {
		world.Queue = r.Observer.Memory.Queue(r.Observer.Clock, func() *lease.Queue { return plan.NewQueue(&world.Observed, r.Settings) })
	}
	if !r.counted(world) {
		decision := plan.Decide(world.Observed, r.Settings, now)
		r.Observer.Memory.Note(world.Run, func(n *observe.Notes) { n.Passive = decision.Queue == nil })
		return decision, nil
	}
	// Until the status of a run that starts is written, other runs would be counted without it.
	r.beginning.Lock()
	defer r.beginning.Unlock()
	if err := r.Observer.CountUnderWay(ctx, world); err != nil {
		return plan.Decision{}, fmt.Errorf("count runs under way: %w", err)
	}
	decision := plan.Decide(world.Observed, r.Settings, now)
	r.Observer.Memory.Note(world.Run, func(n *observe.Notes) {
		n.Begins, n.Passive = plan.Begins(decision.Action) || observe.Begun(world), decision.Queue == nil
	})
	return decision, nil
}

// counted reports whether a run has not started and is in a namespace with a limit of runs.
func (r *Reconciler) counted(world *observe.World) bool {
	run := world.Run
	return r.Settings.Policy.Counts(run.Namespace) && run.Status.Wave == nil && run.DeletionTimestamp.IsZero() && !plan.Ended(run)
}

// noteExpansion counts an attempt to expand the experiment in the run's status, before the attempt. The status at the end of the reconcile
// resets the count, so that a count which an operator finds was left by one that was killed while it expanded.
func (r *Reconciler) noteExpansion(ctx context.Context, world *observe.World) error {
	run := world.Run
	expands, noted := plan.Expands(world.Observed), r.Observer.Memory.Noted(run).Expands
	if expands && !noted {
		status := run.Status.DeepCopy()
		status.AcceptanceTries++
		written, err := r.Applier.Status(ctx, run, status)
		if err != nil {
			return fmt.Errorf("note that the experiment is about to be expanded: %w", err)
		}
		r.Observer.Memory.KeepRun(written)
		world.Run = written
	}
	if expands != noted {
		r.Observer.Memory.Note(run, func(n *observe.Notes) { n.Expands = expands })
	}
	return nil
}
