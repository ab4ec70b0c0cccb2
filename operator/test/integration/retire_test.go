package integration

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/plan"
)

func (w *world) untilWithoutFinalizer() {
	w.t.Helper()
	w.until("the run has no finalizer", func() error {
		if run := w.get(); slices.Contains(run.Finalizers, plan.Finalizer) {
			return errors.New("it has")
		}
		return nil
	})
}

// Without an operator a run that has ended can be deleted, and so can its definition.
func TestFinalizer_IsRemovedOnceTheRunHasEnded(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	if !slices.Contains(w.get().Finalizers, plan.Finalizer) {
		t.Fatalf("a run that has begun has the finalizers %q", w.get().Finalizers)
	}
	w.finish()
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	w.untilReleased(w.node("node-a"))
	w.untilWithoutFinalizer()
	w.operator.stop()
	w.must(admin.Delete(w.ctx, w.run))
	w.until("the run is gone", func() error { return w.gone(w.run.DeepCopy()) })
}

// A block that has not ended keeps the finalizer of a run that has ended, because its node must not be used by another run.
func TestFinalizer_StaysWhileABlockRuns(t *testing.T) {
	t.Parallel()
	w := started(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveNone
	})
	pod := w.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodRunning})
	w.finish()
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	if !slices.Contains(w.get().Finalizers, plan.Finalizer) {
		t.Error("the finalizer is gone while a block runs")
	}
	w.setPod(w.live(pod), corev1.PodStatus{Phase: corev1.PodSucceeded})
	w.untilWithoutFinalizer()
}

// Uninstalling cancels a run, waits until its node is free, and names it as long as it is not.
func TestRetire_CancelsRunsAndWaitsForTheirNodes(t *testing.T) {
	t.Parallel()
	w := started(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode
	})
	w.runBlocks(0, 2)
	retire := []string{"retire", "--run-namespaces", w.namespace, "--system-namespace", w.system(), "--timeout"}
	out, code := w.assay(append(retire, "1s")...)
	if want := "run " + w.namespace + "/scan"; code == cli.ExitDone || !strings.Contains(out, want+" is being cancelled") ||
		!strings.Contains(out, "node "+w.node("node-a")) {
		t.Fatalf("exit code %d: %s", code, out)
	}
	w.until("the wave is stopped", func() error {
		if wf, err := w.getWorkflow("scan-w000"); err != nil || wf.Spec.Shutdown == "" {
			return errors.Join(err, errors.New("it is not"))
		}
		return nil
	})
	w.analyze()
	w.argoSays("scan-w000", "Failed", "stopped")
	w.untilReleased(w.node("node-a"))
	if out := w.printed(append(retire, "30s")...); !strings.Contains(out, "no run holds a node or a finalizer") {
		t.Errorf("it says: %s", out)
	}
	if phase := w.get().Status.Phase; phase != assayv1alpha1.PhaseCancelled {
		t.Errorf("phase %s", phase)
	}
}
