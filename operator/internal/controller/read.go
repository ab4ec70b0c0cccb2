package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// readRun reads a run. The cache may be stale and has only a part of the run, but it has a resource version: if that is the version that
// the API server returned last, for a read or for a write of the status, the remembered run is current. Otherwise it is read again.
func (r *Reconciler) readRun(ctx context.Context, key client.ObjectKey) (*assayv1alpha1.BenchmarkRun, error) {
	cached := &assayv1alpha1.BenchmarkRun{}
	if err := r.Observer.Client.Get(ctx, key, cached); err == nil {
		if run := r.Observer.Memory.RunAt(key, cached.ResourceVersion); run != nil {
			return run, nil
		}
	}
	run := &assayv1alpha1.BenchmarkRun{}
	if err := r.Observer.Live.Get(ctx, key, run); err != nil {
		if apierrors.IsNotFound(err) {
			r.Observer.Memory.Gone(key)
		}
		return nil, err
	}
	r.Observer.Memory.KeepRun(run)
	return run, nil
}
