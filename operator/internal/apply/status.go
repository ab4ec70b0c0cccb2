package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Status writes the run's status, the whole of it.
func (a *Applier) Status(ctx context.Context, run *assayv1alpha1.BenchmarkRun, status *assayv1alpha1.BenchmarkRunStatus) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return err
	}
	object := identity(run)
	object.Object["status"] = content
	return a.Client.Status().Patch(ctx, object, client.Apply, client.FieldOwner(FieldOwner), client.ForceOwnership)
}
