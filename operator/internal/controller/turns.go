package controller

import (
	"context"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// turns lets one run at a time be decided of those that have not begun, in namespaces whose runs an administrator counts. Between a
// decision to begin and the status that tells of it others would all find the same room.
type turns struct{ one sync.Mutex }

// decide decides what happens next to a run.
func (r *Reconciler) decide(ctx context.Context, world *observe.World, now time.Time) (plan.Decision, error) {
	run := world.Run
	if !r.Settings.Policy.Counts(run.Namespace) || run.Status.Wave != nil || !run.DeletionTimestamp.IsZero() || plan.Ended(run) {
		return plan.Decide(world.Observed, r.Settings, now), nil
	}
	r.turns.one.Lock()
	defer r.turns.one.Unlock()
	if err := r.Observer.CountUnderWay(ctx, world); err != nil {
		return plan.Decision{}, err
	}
	decision := plan.Decide(world.Observed, r.Settings, now)
	r.Observer.Begins(world, plan.Begins(decision.Action))
	return decision, nil
}
