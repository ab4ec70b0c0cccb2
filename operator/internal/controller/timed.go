package controller

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// slowPass is when a pass is worth a line in the log.
const slowPass = 100 * time.Millisecond

// timed says which passes of a reconciler were slow.
type timed struct {
	reconcile.Reconciler
	clock clock.PassiveClock
}

// Reconcile makes a pass.
func (t timed) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	began := t.clock.Now()
	result, err := t.Reconciler.Reconcile(ctx, request)
	if took := t.clock.Since(began); took > slowPass {
		ctrl.LoggerFrom(ctx).Info("A pass was slow", "took", took.String())
	}
	return result, err
}
