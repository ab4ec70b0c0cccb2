package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// rehearsal is a writer that stores nothing: the API server admits each object of a run, or refuses it.
type rehearsal struct {
	*Applier
	run *assayv1alpha1.BenchmarkRun
}

// Create implements executor.Writer.
func (r *rehearsal) Create(ctx context.Context, object client.Object) error {
	return r.Apply(ctx, object)
}

// Apply implements executor.Writer.
func (r *rehearsal) Apply(ctx context.Context, object client.Object) error {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if err := r.apply(ctx, r.run, object, client.DryRunAll); err != nil {
		return fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
	}
	return nil
}

// Delete implements executor.Writer.
func (r *rehearsal) Delete(context.Context, client.Object) error {
	return errors.New("a rehearsal deletes nothing")
}

// Permanent reports whether a write fails until the object, its name or a policy of the cluster changes: an object of another owner has
// the name, it is invalid, or admission denied it. An exceeded quota and a missing right are not permanent.
func Permanent(err error) bool {
	if foreign, ok := errors.AsType[*ForeignError](err); ok {
		return !foreign.left
	}
	denied := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	return apierrors.IsInvalid(err) || denied && (strings.Contains(err.Error(), "denied the request") ||
		strings.Contains(err.Error(), "denied request"))
}
