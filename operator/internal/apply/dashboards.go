package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/dashboard"
)

// Dashboard applies the run's dashboard with a pin.
func (a *Applier) Dashboard(ctx context.Context, run *assayv1alpha1.BenchmarkRun, pin dashboard.Pin) error {
	object := a.Dashboards.ConfigMap(run, pin)
	if err := a.apply(ctx, run, object); err != nil {
		return fmt.Errorf("apply ConfigMap %s: %w", object.Name, err)
	}
	return nil
}

// InVain reports whether an error of a write is permanent: the object is immutable or has another owner.
func InVain(err error) bool {
	var foreign *ForeignError
	return apierrors.IsInvalid(err) || errors.As(err, &foreign)
}
