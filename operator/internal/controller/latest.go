package controller

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lru"
	"assay.dev/assay/operator/internal/plan"
)

// latestRuns remember runs as the API server last gave them, except those that are over. Most passes are brought by pods, and
// nothing of the run has changed since the last one.
type latestRuns struct {
	known lru.Map[client.ObjectKey, *assayv1alpha1.BenchmarkRun]
}

// latestBytes is what they may take, counted as the API server has them. One that is forgotten is read again.
const latestBytes = 8 << 20

// keep fills in a run's defaults and remembers it. Every run that a pass works on came through here.
func (l *latestRuns) keep(run *assayv1alpha1.BenchmarkRun) {
	experiment.DefaultRun(&run.Spec)
	key := client.ObjectKeyFromObject(run)
	raw, err := json.Marshal(run)
	if err != nil || plan.Ended(run) && run.DeletionTimestamp.IsZero() {
		l.known.Delete(key)
		return
	}
	l.known.Put(key, run.DeepCopy(), len(raw), latestBytes)
}

func (l *latestRuns) forget(key client.ObjectKey) { l.known.Delete(key) }

// at is the run in a version, if that is the one that is remembered.
func (l *latestRuns) at(key client.ObjectKey, version string) *assayv1alpha1.BenchmarkRun {
	if run, ok := l.known.Get(key); ok && run.ResourceVersion == version {
		return run.DeepCopy()
	}
	return nil
}

// readRun reads a run. The cache may be behind and has not all of it, but it knows a version: if that is the one that the API
// server gave last, or made of the last status, nothing newer is known. Otherwise the API server is asked.
func (r *Reconciler) readRun(ctx context.Context, key client.ObjectKey) (*assayv1alpha1.BenchmarkRun, error) {
	cached := &assayv1alpha1.BenchmarkRun{}
	if err := r.Cache.Get(ctx, key, cached); err == nil {
		if run := r.latest.at(key, cached.ResourceVersion); run != nil {
			return run, nil
		}
	}
	run := &assayv1alpha1.BenchmarkRun{}
	if err := r.Live.Get(ctx, key, run); err != nil {
		if apierrors.IsNotFound(err) {
			r.latest.forget(key)
		}
		return nil, err
	}
	r.latest.keep(run)
	return run, nil
}
