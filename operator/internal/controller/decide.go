package controller

import (
	"context"
	"fmt"

	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// decide decides what happens next to a run. Two kinds of decision are made one at a time.
func (r *Reconciler) decide(ctx context.Context, world *observe.World) (plan.Decision, error) {
	if plan.Expands(world.Observed) {
		// So that the run which an operator was killed at is the one that it had noted.
		r.expanding.Lock()
		defer r.expanding.Unlock()
	}
	if err := r.noteExpansion(ctx, world); err != nil {
		return plan.Decision{}, err
	}
	now := r.Clock.Now()
	if len(world.Waiting) > 0 {
		world.Queue = r.memory.Queue(now, func() *lease.Queue { return plan.NewQueue(&world.Observed, r.Settings) })
	}
	if !r.counted(world) {
		return plan.Decide(world.Observed, r.Settings, now), nil
	}
	// Between a decision to begin and the status that tells of it others would all find the same room.
	r.beginning.Lock()
	defer r.beginning.Unlock()
	if err := r.Observer.CountUnderWay(ctx, world); err != nil {
		return plan.Decision{}, fmt.Errorf("count runs under way: %w", err)
	}
	decision := plan.Decide(world.Observed, r.Settings, now)
	r.memory.Note(world.Run.UID, func(n *observe.Notes) { n.Begins = plan.Begins(decision.Action) || observe.Begun(world) })
	return decision, nil
}

// counted reports whether a run may be about to begin in a namespace whose runs an administrator counts.
func (r *Reconciler) counted(world *observe.World) bool {
	run := world.Run
	return r.Settings.Policy.Counts(run.Namespace) && run.Status.Wave == nil && run.DeletionTimestamp.IsZero() && !plan.Ended(run)
}

// noteExpansion writes into the run's status that its experiment is about to be expanded, before it is. The status computed at
// the end of the pass takes the note away; one that an operator finds was left by one that was killed.
func (r *Reconciler) noteExpansion(ctx context.Context, world *observe.World) error {
	run := world.Run
	expands, noted := plan.Expands(world.Observed), r.memory.Noted(run.UID).Expands
	if expands && !noted {
		status := run.Status.DeepCopy()
		status.AcceptanceTries++
		written, err := r.Applier.Status(ctx, run, status)
		if err != nil {
			return fmt.Errorf("note that the experiment is about to be expanded: %w", err)
		}
		r.memory.KeepRun(written)
		world.Run = written
	}
	if expands != noted {
		r.memory.Note(run.UID, func(n *observe.Notes) { n.Expands = expands })
	}
	return nil
}
