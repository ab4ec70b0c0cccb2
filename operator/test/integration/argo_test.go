package integration

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// The operator starts on a cluster without Argo, reports it, and continues when Argo is installed: first with CRDs that lack a field that
// waves need, then with the right ones.
func TestArgo_InstalledAfterOperator(t *testing.T) {
	workflows := readCRD(t, "argoproj.io_workflows.yaml")
	deleteCRD(t, workflows)
	t.Cleanup(func() { installCRD(t, readCRD(t, "argoproj.io_workflows.yaml")) })
	w := newWorld(t, nil, withArgoChecks)
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionTrue, assayv1alpha1.ReasonAccepted)
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonEngineMissing,
		"does not serve kind Workflow", "argo.mode=bundled")
	w.untilEvent(assayv1alpha1.ReasonEngineMissing, "install Argo Workflows")

	installCRD(t, older(t, workflows))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonEngineTooOld, "the field .spec.", "v3.7")
	if _, err := w.getWorkflow("scan-w000"); err == nil {
		t.Error("a workflow was started with CRDs that drop a part of it")
	}

	installCRD(t, workflows)
	w.until("the first wave's workflow exists", func() error { _, err := w.getWorkflow("scan-w000"); return err })
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning)
	// Only a watch detects this so quickly, because the poll interval is 30 s.
	w.argoSays("scan-w000", "Error", "no such account")
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonExecutionFailed, "no such account")
}

// A run whose workflows were removed with Argo releases its node and is deleted.
func TestArgo_RunIsDeletedWhileMissing(t *testing.T) {
	w := started(t, nil, withArgoChecks)
	workflows := readCRD(t, "argoproj.io_workflows.yaml")
	t.Cleanup(func() { installCRD(t, readCRD(t, "argoproj.io_workflows.yaml")) })
	deleteCRD(t, workflows)
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonEngineMissing)
	if len(w.get().Status.Leases) == 0 {
		t.Fatal("the run has no node to give back")
	}
	w.must(admin.Delete(w.ctx, w.run))
	w.until("the run is gone", func() error { return w.gone(w.run.DeepCopy()) })
}

// A run that was created while Argo was missing can be cancelled and deleted.
func TestArgo_RunIsCancelledAndDeletedWhileMissing(t *testing.T) {
	workflows := readCRD(t, "argoproj.io_workflows.yaml")
	deleteCRD(t, workflows)
	t.Cleanup(func() { installCRD(t, readCRD(t, "argoproj.io_workflows.yaml")) })
	w := newWorld(t, nil, withArgoChecks)
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonEngineMissing)
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Cancel = ptr.To(true) })
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonCancelled)
	w.must(admin.Delete(w.ctx, w.run))
	w.until("the run is gone", func() error { return w.gone(w.run.DeepCopy()) })
}

func readCRD(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(argoCRDs, name))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// older is the CRD with a schema of spec that lacks most of the fields that waves need.
func older(t *testing.T, crd *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out := crd.DeepCopy()
	versions, _, err := unstructured.NestedSlice(out.Object, "spec", "versions")
	if err != nil || len(versions) == 0 {
		t.Fatalf("the CRD has no version: %v", err)
	}
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "properties": map[string]any{
			"status": anything,
			"spec": map[string]any{"type": "object", "properties": map[string]any{
				"entrypoint": map[string]any{"type": "string"}, "templates": map[string]any{"type": "array", "items": anything},
			}},
		},
	}}
	if err := unstructured.SetNestedSlice(out.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	return out
}

// installCRD creates or replaces the CRD and waits until it is served.
func installCRD(t *testing.T, wanted *unstructured.Unstructured) {
	t.Helper()
	w := &world{t: t, ctx: background(t)}
	w.until("the CRD is established", func() error {
		live := wanted.DeepCopy()
		err := admin.Get(w.ctx, client.ObjectKeyFromObject(wanted), live)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err != nil:
			return admin.Create(w.ctx, wanted.DeepCopy())
		}
		version := live.GetResourceVersion()
		next := wanted.DeepCopy()
		next.SetResourceVersion(version)
		if err := admin.Update(w.ctx, next); err != nil {
			return err
		}
		return established(next)
	})
}

func deleteCRD(t *testing.T, crd *unstructured.Unstructured) {
	t.Helper()
	w := &world{t: t, ctx: background(t)}
	w.must(client.IgnoreNotFound(admin.Delete(w.ctx, crd.DeepCopy())))
	w.until("the CRD is gone", func() error { return w.gone(crd.DeepCopy()) })
}
