package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// expansions lets one experiment be expanded at a time, so that the run which an operator was killed at is the one that it had
// noted, and remembers what this operator noted and lived through.
type expansions struct {
	one   sync.Mutex
	mutex sync.Mutex
	noted map[types.UID]bool
}

func (e *expansions) knows(run types.UID) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.noted[run]
}

func (e *expansions) note(run types.UID) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.noted == nil {
		e.noted = map[types.UID]bool{}
	}
	e.noted[run] = true
}

func (e *expansions) forget(run types.UID) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	delete(e.noted, run)
}

// noteExpansion writes into the run's status that its experiment is about to be expanded, before it is. The status computed at
// the end of the pass takes the note away; one that an operator finds was left by one that was killed.
func (r *Reconciler) noteExpansion(ctx context.Context, world *observe.World) (done func(), err error) {
	run := world.Run
	if !plan.Expands(world.Observed) {
		r.expansions.forget(run.UID)
		return func() {}, nil
	}
	r.expansions.one.Lock()
	if r.expansions.knows(run.UID) {
		return r.expansions.one.Unlock, nil
	}
	status := run.Status.DeepCopy()
	status.AcceptanceTries++
	written, err := r.Applier.Status(ctx, run, status)
	if err != nil {
		r.expansions.one.Unlock()
		return nil, fmt.Errorf("note that the experiment is about to be expanded: %w", err)
	}
	r.latest.keep(written)
	r.expansions.note(run.UID)
	world.Run = written
	return r.expansions.one.Unlock, nil
}
