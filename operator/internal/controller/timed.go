package controller

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// slowReconcile is the duration above which a reconcile is logged.
const slowReconcile = 100 * time.Millisecond

// timed logs the reconciles of a reconciler that were slow.
type timed struct {
	reconcile.Reconciler
	clock clock.PassiveClock
}

// Reconcile calls the reconciler and takes its time.
func (t timed) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	began := t.clock.Now()
	result, err := t.Reconciler.Reconcile(ctx, request)
	if took := t.clock.Since(began); took > slowReconcile {
		ctrl.LoggerFrom(ctx).Info("Slow reconcile", "duration", took.String())
	}
	return result, err
}
