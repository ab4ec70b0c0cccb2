package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/test/fakeexecutor"
)

// faked is a world whose operator has a fake engine, and that engine.
func faked(t *testing.T) (*world, *fakeexecutor.Executor) {
	t.Helper()
	engine := fakeexecutor.New()
	w := newWorld(t, nil, withEngine(engine))
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	return w, engine
}

// untilSet changes an execution once it exists.
func (w *world) untilSet(engine *fakeexecutor.Executor, name string, change func(*executor.Execution)) {
	w.t.Helper()
	w.until("execution "+name+" exists", func() error {
		if !engine.Set(w.namespace, name, change) {
			return fmt.Errorf("there is no execution %s", name)
		}
		return nil
	})
}

func TestFakeEngine_RunReachesItsVerdict(t *testing.T) {
	t.Parallel()
	w, engine := faked(t)
	w.untilSet(engine, "scan-w000", func(e *executor.Execution) { e.Seen = true })
	run := w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning, "execution scan-w000")
	var planned corev1.ConfigMap
	w.must(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "scan-w000"}, &planned))
	if !metav1.IsControlledBy(&planned, run) || !slices.Contains(run.Finalizers, plan.Finalizer) || run.Status.Execution != "scan-w000" {
		t.Errorf("plan %+v, finalizers %q and execution %q do not belong to a started run", planned.ObjectMeta, run.Finalizers,
			run.Status.Execution)
	}
	w.runBlocks(0, 4)
	w.analyze()
	w.untilSet(engine, "scan-w000", func(e *executor.Execution) { e.Ended = true })
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached, "verdict Go")
	var flows argo.WorkflowList
	w.must(admin.List(w.ctx, &flows, client.InNamespace(w.namespace)))
	if len(flows.Items) > 0 {
		t.Errorf("the run has %d Workflows, want none", len(flows.Items))
	}
}

func TestFakeEngine_CauseOfFailureIsQuoted(t *testing.T) {
	t.Parallel()
	w, engine := faked(t)
	w.untilSet(engine, "scan-w000", func(e *executor.Execution) { e.Seen, e.Ended, e.Message = true, true, "quota exceeded" })
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonExecutionFailed,
		"the fake engine says: quota exceeded")
}

func TestFakeEngine_RunWaitsWhileEngineIsNotReady(t *testing.T) {
	t.Parallel()
	engine := fakeexecutor.New()
	engine.SetState(plan.EngineState{Problem: assayv1alpha1.ReasonEngineMissing, Message: "install the engine"})
	w := newWorld(t, nil, withEngine(engine))
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonEngineMissing, "install the engine")
	engine.SetState(plan.EngineState{})
	w.untilSet(engine, "scan-w000", func(*executor.Execution) {})
}

func TestFakeEngine_SuspendResumeAndCancelReachTheExecution(t *testing.T) {
	t.Parallel()
	w, engine := faked(t)
	state := func(want string, check func(executor.Execution) bool) {
		t.Helper()
		w.until("the execution is "+want, func() error {
			var found []string
			err := engine.Visit(w.ctx, executor.Query{Namespace: w.namespace, Name: "scan"}, func(e executor.Execution) {
				if check(e) {
					found = append(found, e.Name)
				}
			})
			if err == nil && !slices.Contains(found, "scan-w000") {
				err = fmt.Errorf("it is not: %s", strings.Join(found, ", "))
			}
			return err
		})
	}
	w.untilSet(engine, "scan-w000", func(e *executor.Execution) { e.Seen = true })
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Suspend = ptr.To(true) })
	state("suspended", func(e executor.Execution) bool { return e.Suspended })
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Suspend = ptr.To(false) })
	state("resumed", func(e executor.Execution) bool { return !e.Suspended })
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Cancel = ptr.To(true) })
	state("stopped", func(e executor.Execution) bool { return e.Stopped })
	w.untilSet(engine, "scan-w000", func(e *executor.Execution) { e.Ended = true })
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonCancelled)
}
