package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

func (w *world) untilWorkflow(what string, check func(argo.Spec) bool) {
	w.t.Helper()
	w.until("the workflow "+what, func() error {
		wf, err := w.getWorkflow("scan-w000")
		if err == nil && !check(wf.Spec) {
			err = fmt.Errorf("suspend %v, shutdown %q", wf.Spec.Suspend, wf.Spec.Shutdown)
		}
		return err
	})
	// An update must retain the rest of the workflow.
	if wf, err := w.getWorkflow("scan-w000"); err != nil || len(wf.Spec.Templates) != 3 || wf.Spec.Entrypoint == "" {
		w.t.Errorf("the workflow lost its templates: %v", err)
	}
}

func TestSuspend_AndResume(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Suspend = ptr.To(true) })
	w.untilWorkflow("is suspended", func(spec argo.Spec) bool { return ptr.Deref(spec.Suspend, false) })
	run := w.untilCondition(assayv1alpha1.ConditionSuspended, metav1.ConditionTrue, assayv1alpha1.ReasonSuspended)
	if run.Status.Phase != assayv1alpha1.PhaseSuspended {
		t.Errorf("phase %s", run.Status.Phase)
	}
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Suspend = ptr.To(false) })
	w.untilWorkflow("goes on", func(spec argo.Spec) bool { return !ptr.Deref(spec.Suspend, true) })
	w.untilCondition(assayv1alpha1.ConditionSuspended, metav1.ConditionFalse, assayv1alpha1.ReasonNotSuspended)
}

func TestSuspend_AtCreationStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Suspend = ptr.To(true)
	})
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonSuspended, "set it to false")
	if _, err := w.getWorkflow("scan-w000"); err == nil {
		t.Error("a workflow was started")
	}
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Suspend = nil })
	w.until("it starts", func() error { _, err := w.getWorkflow("scan-w000"); return err })
}

func TestCancel_AnalyzesExistingResults(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.runBlocks(0, 2)
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Cancel = ptr.To(true) })
	w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonCancelled)
	w.analyze()
	w.argoSays("scan-w000", "Failed", "stopped with strategy 'Stop'")
	run := w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonCancelled)
	if run.Status.Phase != assayv1alpha1.PhaseCancelled || run.Status.Verdict == "" {
		t.Errorf("phase %s, verdict %q", run.Status.Phase, run.Status.Verdict)
	}
}

// Argo marks the blocks of a stopped workflow as failed and starts the analysis while their keepers still write.
func TestCancel_LateAttemptsAreAnalyzed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		reason string
		edit   func(*assayv1alpha1.BenchmarkRunSpec)
		stop   func(*world)
	}{
		"cancelled": {assayv1alpha1.ReasonCancelled, func(*assayv1alpha1.BenchmarkRunSpec) {}, func(w *world) {
			w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Cancel = ptr.To(true) })
		}},
		"over its budget": {assayv1alpha1.ReasonBudgetExhausted, func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Budget.WallClock = metav1.Duration{Duration: time.Hour}
		}, func(w *world) { w.pass(2 * time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) { end.edit(spec) })
			w.runBlocks(0, 2)
			pod := w.blockPod("scan-w000-block-2")
			end.stop(w)
			w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
			w.analyze()
			w.argoSays("scan-w000", "Failed", "stopped with strategy 'Stop'")
			w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, end.reason, "waiting for 1 block")
			w.runBlocks(2, 3)
			// A client with a key of the namespace hides the late attempts in the list of those that were read.
			w.forgeSeal()
			w.deletePod(pod)
			w.until("the late attempts are analyzed", func() error { _, err := w.getWorkflow("scan-w000-a1"); return err })
			w.analyze()
			w.argoSays("scan-w000-a1", "Succeeded", "")
			w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, end.reason)
			if unread, err := ledger.CountUnread(w.ctx, w.ledger(), 0); err != nil || unread != 0 {
				t.Errorf("%d attempts are in no analysis: %v", unread, err)
			}
		})
	}
}

func TestCancel_BeforeAnyBlockRan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Cancel = ptr.To(true)
	})
	w.must(admin.Create(w.ctx, w.run))
	run := w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonCancelled, "before anything was measured")
	if run.Status.Phase != assayv1alpha1.PhaseCancelled {
		t.Errorf("phase %s", run.Status.Phase)
	}
}

func TestBudget_StopsRun(t *testing.T) {
	t.Parallel()
	w := started(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Budget.WallClock = metav1.Duration{Duration: time.Hour}
	})
	w.runBlocks(0, 2)
	w.pass(2 * time.Hour)
	w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
	w.analyze()
	w.argoSays("scan-w000", "Failed", "stopped with strategy 'Stop'")
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonBudgetExhausted, "1h")
}

func TestDelete_FinishesAfterBlocksHaveStopped(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	pod := w.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodRunning})
	// The object store is unavailable, which must not block the deletion.
	s.fail(w.namespace, store.ErrUnreachable)
	t.Cleanup(func() { s.fail(w.namespace, nil) })
	run := w.get()
	w.must(admin.Delete(w.ctx, run))
	w.until("the workflow is deleted", func() error {
		return w.gone(&argo.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "scan-w000"}})
	})
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonCancelled, "pods still running: 1")
	w.deletePod(pod)
	w.until("the run is gone", func() error { return w.gone(run) })

	s.fail(w.namespace, nil)
	if _, err := s.Get(w.ctx, "runs/"+w.namespace+"/scan/"+string(run.UID)+"/"+ledger.ExperimentKey); err != nil {
		t.Errorf("the ledger must stay: %v", err)
	}
}

func TestTimeToLive_DeletesRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Cancel, spec.TTLSecondsAfterFinished = ptr.To(true), ptr.To[int32](1)
	})
	w.must(admin.Create(w.ctx, w.run))
	w.until("the run is gone", func() error { return w.gone(w.run.DeepCopy()) })
}

func TestLedger_OutageLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s.fail(w.namespace, store.ErrNoBucket)
	t.Cleanup(func() { s.fail(w.namespace, nil) })
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionLedgerReady, metav1.ConditionFalse, assayv1alpha1.ReasonLedgerMissing, "bucket does not exist")
	w.untilEvent(assayv1alpha1.ReasonLedgerMissing, "")
	s.fail(w.namespace, nil)
	w.untilCondition(assayv1alpha1.ConditionLedgerReady, metav1.ConditionTrue, assayv1alpha1.ReasonLedgerReady)
	w.until("it starts", func() error { _, err := w.getWorkflow("scan-w000"); return err })

	w.runBlocks(0, 4)
	// The pod that names the analysis appears after the store has failed: the operator would otherwise remember the analysis and finish
	// the run without the store.
	written := w.writeFirstAnalysis()
	s.fail(w.namespace, errors.Join(store.ErrUnreachable, errors.New("connection refused")))
	w.analysisPod(written)
	w.argoSays("scan-w000", "Succeeded", "")
	run := w.untilCondition(assayv1alpha1.ConditionLedgerReady, metav1.ConditionFalse, assayv1alpha1.ReasonLedgerUnreachable,
		"connection refused")
	if run.Status.Experiment == "" || run.Status.Execution == "" {
		t.Errorf("the status lost earlier fields: %+v", run.Status)
	}
	s.fail(w.namespace, nil)
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
}
