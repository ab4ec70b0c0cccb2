package apply

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// statusTries limits the retries of a status write that conflicts with changes of other fields.
const statusTries = 10

// Status replaces the status of the run and returns the run as the API server has it then. The status was computed from one version of the
// run, and another status is a conflict: an operator that lost its leadership without noticing must not reset a run that has ended since.
func (a *Applier) Status(ctx context.Context, run *assayv1alpha1.BenchmarkRun,
	status *assayv1alpha1.BenchmarkRunStatus) (*assayv1alpha1.BenchmarkRun, error) {
	var object *unstructured.Unstructured
	version := run.ResourceVersion
	for try := 1; ; try++ {
		object = identity(run)
		object.SetResourceVersion(version)
		err := a.replaceStatus(ctx, object, status)
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) || try == statusTries {
			return nil, err
		}
		live, err := a.asDecidedOn(ctx, run)
		if err != nil {
			return nil, err
		}
		version = live.ResourceVersion
	}
	var written assayv1alpha1.BenchmarkRun
	return &written, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &written)
}

// replaceStatus replaces the status of an object if it still has the resource version in it; another version is a conflict. It does not use
// server-side apply, which removes only fields that its owner applied before: users who may change an object can remove the managed fields,
// and an obsolete field would remain.
func (a *Applier) replaceStatus(ctx context.Context, object *unstructured.Unstructured, status any) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return err
	}
	return a.Client.Status().Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner))
}
