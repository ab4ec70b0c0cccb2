package integration

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/plan"
)

// forgetManagers removes the managed fields of the run, as any user with write access may do. An apply that omits a field then no longer
// removes it.
func (w *world) forgetManagers() {
	w.t.Helper()
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`))
	w.must(admin.Patch(w.ctx, w.get(), patch))
}

// Otherwise the run would stay suspended for the operator, and its budget never end.
func TestStatus_IsCompleteWithoutFieldOwnership(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Suspend = ptr.To(true) })
	w.untilCondition(assayv1alpha1.ConditionSuspended, metav1.ConditionTrue, assayv1alpha1.ReasonSuspended)
	w.forgetManagers()
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Suspend = nil })
	run := w.untilCondition(assayv1alpha1.ConditionSuspended, metav1.ConditionFalse, assayv1alpha1.ReasonNotSuspended)
	if run.Status.SuspendedSince != nil {
		t.Errorf("it is suspended since %s, and goes on", run.Status.SuspendedSince)
	}
}

// Otherwise the deletion would never finish, and the operator retry for ever.
func TestFinalizer_IsRemovedWithoutFieldOwnership(t *testing.T) {
	t.Parallel()
	for name, hostile := range map[string]func(*world){
		"who made it wrote the finalizer": func(w *world) { w.run.Finalizers = []string{plan.Finalizer} },
		"no field has an owner":           func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			hostile(w)
			w.must(admin.Create(w.ctx, w.template))
			w.must(admin.Create(w.ctx, w.run))
			w.until("the first wave's workflow exists", func() error { _, err := w.getWorkflow("scan-w000"); return err })
			w.forgetManagers()
			w.must(admin.Delete(w.ctx, w.get()))
			w.until("the run is gone", func() error {
				if name := w.get().Name; name != "" {
					return errors.New("it is still there")
				}
				return nil
			})
		})
	}
}

// An operator that lost the leadership decides on a version that its successor has replaced.
func TestStatus_WriteOnStaleVersionIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(admin.Create(w.ctx, w.run))
	read := w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonTemplateNotFound)
	successor := client.RawPatch(types.MergePatchType, []byte(`{"status":{"progress":"1/2"}}`))
	w.must(admin.Status().Patch(w.ctx, w.get(), successor))
	status := read.Status.DeepCopy()
	status.Progress = "0/2"
	a := &apply.Applier{Client: admin, Live: admin}
	if _, err := a.Status(w.ctx, read, status); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if got := w.get().Status.Progress; got != "1/2" {
		t.Errorf("progress is %s", got)
	}
}
