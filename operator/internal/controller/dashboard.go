package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// dashboard writes the run's dashboard. One that cannot be written is told and tried again in the next pass; no run waits
// for it.
func (r *Reconciler) dashboard(ctx context.Context, run *assayv1alpha1.BenchmarkRun, after *assayv1alpha1.BenchmarkRunStatus) {
	if err := r.Applier.Dashboard(ctx, run, after); err != nil && ctx.Err() == nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot write the run's dashboard")
		r.Recorder.Eventf(run, corev1.EventTypeWarning, "DashboardNotWritten", "cannot write the run's dashboard: %v", err)
	}
}
