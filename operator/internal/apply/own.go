package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// own returns an error if an object of this name exists and has another owner. Names are derived from the run's name, which a tenant
// chooses, and the operator may write objects that the tenant may not write: a run must not overwrite objects of other owners.
func (a *Applier) own(ctx context.Context, run *assayv1alpha1.BenchmarkRun, object client.Object) error {
	current, err := a.live(ctx, object)
	if err != nil || current == nil {
		return err
	}
	controller := metav1.GetControllerOf(current)
	if controller != nil && controller.UID == run.UID {
		return nil
	}
	whose := "without an owner"
	if controller != nil {
		whose = fmt.Sprintf("that of %s %s with uid %s", controller.Kind, controller.Name, controller.UID)
	}
	// The garbage collector deletes the objects of an earlier run of this name.
	earlier := controller != nil && controller.Kind == "BenchmarkRun" && controller.Name == run.Name
	return &ForeignError{left: earlier || !current.DeletionTimestamp.IsZero(), text: fmt.Sprintf(
		"%s %s in namespace %s exists and is not this run's but %s, so that the operator must not change it: delete or rename it, or create "+
			"this run under another name",
		current.Kind, object.GetName(), object.GetNamespace(), whose)}
}

// live reads the metadata of an object from the API server; nil if it does not exist.
func (a *Applier) live(ctx context.Context, object client.Object) (*metav1.PartialObjectMetadata, error) {
	kind, err := a.Client.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	var current metav1.PartialObjectMetadata
	current.SetGroupVersionKind(kind)
	err = a.Live.Get(ctx, client.ObjectKeyFromObject(object), &current)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", kind.Kind, object.GetName(), err)
	}
	current.SetGroupVersionKind(kind)
	return &current, nil
}

// ForeignError means that an object has another owner.
type ForeignError struct {
	text string
	// left means that the object is about to be deleted.
	left bool
}

func (e *ForeignError) Error() string { return e.text }
