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

// forgetManagers takes from the API server who owns which field of the run, as whoever may change a run may do: what the operator leaves
// out of what it applies is then not taken away.
func (w *world) forgetManagers() {
	w.t.Helper()
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`))
	w.must(admin.Patch(w.ctx, w.get(), patch))
}

// Else the run would be suspended for the operator for ever, and its budget never end.
func TestAStatusIsWholeWhoeverOwnsItsFields(t *testing.T) {
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

// Else it would never go, and the operator try without end.
func TestARunGoesWhoeverOwnsItsFinalizer(t *testing.T) {
	for name, hostile := range map[string]func(*world){
		"who made it wrote the finalizer": func(w *world) { w.run.Finalizers = []string{plan.Finalizer} },
		"nobody owns anything":            func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
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

// An operator that does not lead any more has read what its successor has replaced since.
func TestAStatusThatWasDecidedOnAnotherIsRefused(t *testing.T) {
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
