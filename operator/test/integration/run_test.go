package integration

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
)

// The operator of this test has all namespaces, so that no other test may run beside it.
func TestRun_ReachesVerdict(t *testing.T) {
	w := started(t, nil, everywhere)
	run := w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionTrue, assayv1alpha1.ReasonAccepted, "sha256:")
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning)

	// The ledger has the experiment and the plan; the blocks get the same plan.
	exp, err := ledger.ReadExperiment(w.ctx, w.ledger())
	w.must(err)
	if exp.Digest != run.Status.Experiment {
		t.Errorf("status.experiment is %s and the ledger's is %s", run.Status.Experiment, exp.Digest)
	}
	inLedger, _, err := ledger.ReadWaves(w.ctx, w.ledger(), -1)
	w.must(err)
	if diff := cmp.Diff(inLedger[0], *w.wave(0)); diff != "" {
		t.Errorf("ledger and ConfigMap differ:\n%s", diff)
	}
	var configMap corev1.ConfigMap
	w.must(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "scan-w000"}, &configMap))
	if !ptr.Deref(configMap.Immutable, false) || !metav1.IsControlledBy(&configMap, run) {
		t.Errorf("the plan's ConfigMap must be immutable and the run's: %+v", configMap.ObjectMeta)
	}
	started, err := w.getWorkflow("scan-w000")
	w.must(err)
	if !metav1.IsControlledBy(started, run) || len(started.Spec.Templates) != 3 {
		t.Errorf("the workflow must be the run's and complete: %+v", started.ObjectMeta)
	}

	w.argoSays("scan-w000", "Running", "")
	w.runBlocks(0, 1)
	w.argoSays("scan-w000", "Running", "1/5")
	w.until("a quarter of the trials is done and the rest is estimated", func() error {
		got := w.get().Status
		if got.Progress != "36/144" || got.Remaining == nil || got.Phase != assayv1alpha1.PhaseRunning {
			return fmt.Errorf("progress %s, remaining %v, phase %s", got.Progress, got.Remaining, got.Phase)
		}
		return nil
	})
	w.runBlocks(1, 4)
	w.argoSays("scan-w000", "Running", "4/5")
	w.until("it is being analysed", func() error {
		if phase := w.get().Status.Phase; phase != assayv1alpha1.PhaseAnalyzing {
			return fmt.Errorf("phase %s", phase)
		}
		return nil
	})
	w.analyze()
	w.argoSays("scan-w000", "Succeeded", "")

	ended := w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached, "verdict Go").Status
	if ended.Verdict != assayv1alpha1.VerdictGo || ended.Best != "fused-m4r" || ended.Gain == "" ||
		ended.Phase != assayv1alpha1.PhaseSucceeded {
		t.Errorf("verdict %s, best %s, gain %s, phase %s", ended.Verdict, ended.Best, ended.Gain, ended.Phase)
	}
	want := assayv1alpha1.TrialCounts{Planned: 192, Done: 192}
	if ended.Trials != want || ended.CompletionTime == nil || ended.StartTime == nil || ended.Remaining != nil || ended.Report == "" {
		t.Errorf("trials %+v, started %v, completed %v, remaining %v, report %q", ended.Trials, ended.StartTime, ended.CompletionTime,
			ended.Remaining, ended.Report)
	}
	if len(ended.Gates) == 0 || ended.Gates[0].Outcome != assayv1alpha1.VerdictNoGo || ended.Gates[0].Interval == nil {
		t.Errorf("the gates that decide do not come first: %+v", ended.Gates)
	}
	for _, event := range []string{"Accepted", "WaveStarted", "VerdictReached"} {
		w.untilEvent(event, "")
	}
}

func TestRun_ContinuesAfterOperatorIsReplaced(t *testing.T) {
	t.Parallel()
	w := started(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.MaxNodes = 2
	})
	w.runBlocks(0, 2)
	before, err := w.getWorkflow("scan-w000")
	w.must(err)

	w.operator.stop()
	// Changes in the meantime have no effect, because the experiment is frozen and the lanes are chosen.
	w.template.Spec.Command = []string{"/other"}
	w.must(admin.Update(w.ctx, w.template))
	w.addNode("node-0", "4")
	w.runBlocks(2, 4)
	w.operator.start()

	w.until("the new operator has counted the trials", func() error {
		if progress := w.get().Status.Progress; progress != "144/144" {
			return fmt.Errorf("progress %s", progress)
		}
		return nil
	})
	after, err := w.getWorkflow("scan-w000")
	w.must(err)
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || before.UID != after.UID {
		t.Errorf("the workflow was changed or replaced:\n%s", diff)
	}
	w.analyze()
	w.argoSays("scan-w000", "Succeeded", "")
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	var all argo.WorkflowList
	w.must(admin.List(w.ctx, &all, client.InNamespace(w.namespace)))
	if len(all.Items) != 1 {
		t.Errorf("%d workflows, want 1", len(all.Items))
	}
}

func TestRun_LostStatusIsRebuiltFromLedger(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.runBlocks(0, 4)
	w.analyze()
	w.argoSays("scan-w000", "Succeeded", "")
	before := w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached).Status

	w.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		run := w.get()
		run.Status = assayv1alpha1.BenchmarkRunStatus{}
		return admin.Status().Update(w.ctx, run)
	}))
	// Any event of the run triggers a reconcile.
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.TTLSecondsAfterFinished = ptr.To[int32](3600) })

	after := w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached).Status
	forget := func(s assayv1alpha1.BenchmarkRunStatus) assayv1alpha1.BenchmarkRunStatus {
		s.CompletionTime, s.Conditions, s.ObservedGeneration, s.StartTime, s.Remaining, s.Leases = nil, nil, 0, nil, nil, nil
		return s
	}
	if diff := cmp.Diff(forget(before), forget(after)); diff != "" {
		t.Errorf("the status was rebuilt differently (-before +after):\n%s", diff)
	}
}

func TestRun_LostAnalysisIsRepeated(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.runBlocks(0, 4)
	w.argoSays("scan-w000", "Failed", "exit handler failed: OOMKilled")
	w.argoSays("scan-w000-a1", "Failed", "OOMKilled")
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning,
		"scan-w000-a2 analyses wave 0 again")
	w.analyze()
	w.argoSays("scan-w000-a2", "Succeeded", "")
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
}

func TestRun_EndsAfterRepeatedFailureOfAnalysis(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.runBlocks(0, 4)
	for _, name := range []string{"scan-w000", "scan-w000-a1", "scan-w000-a2", "scan-w000-a3"} {
		w.argoSays(name, "Failed", "OOMKilled")
	}
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonAnalysisFailed, "OOMKilled", "assay analyze")
	w.untilEvent(assayv1alpha1.ReasonAnalysisFailed, "")
}

func TestRun_DeletedWorkflowIsRestarted(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.runBlocks(0, 2)
	first, err := w.getWorkflow("scan-w000")
	w.must(err)
	w.must(admin.Delete(w.ctx, first))
	w.until("there is a new workflow", func() error {
		second, err := w.getWorkflow("scan-w000")
		if err == nil && second.UID == first.UID {
			return fmt.Errorf("it is the old one")
		}
		return err
	})
	inLedger, _, err := ledger.ReadWaves(w.ctx, w.ledger(), -1)
	w.must(err)
	if len(inLedger) != 1 {
		t.Errorf("%d waves, want 1", len(inLedger))
	}
}

// Argo's retention or an administrator may delete workflows and pods at any time. The ledger has all required data.
func TestRun_EarlyDeletionOfWorkflowsAndPodsLosesNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]func(w *world, vanish func(name string)){
		"before the analysis was seen": func(w *world, vanish func(string)) {
			w.runBlocks(0, 4)
			w.analyze()
			vanish("scan-w000")
		},
		"before the analysis was made": func(w *world, vanish func(string)) {
			w.runBlocks(0, 4)
			vanish("scan-w000")
			w.until("it is analysed by another workflow", func() error {
				_, err := w.getWorkflow("scan-w000-a1")
				return err
			})
			w.analyze()
			vanish("scan-w000-a1")
		},
		"in the middle of the wave": func(w *world, vanish func(string)) {
			w.runBlocks(0, 2)
			vanish("scan-w000")
			w.until("the wave goes on in a new workflow", func() error {
				_, err := w.getWorkflow("scan-w000")
				return err
			})
			w.runBlocks(2, 4)
			w.analyze()
			vanish("scan-w000")
		},
		"with the pods of its blocks": func(w *world, vanish func(string)) {
			pod := w.blockPod("scan-w000-block-1")
			w.runBlocks(0, 4)
			w.deletePod(pod)
			w.analyze()
			vanish("scan-w000")
		},
		"after it ended": func(w *world, vanish func(string)) {
			w.finish()
			w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
			vanish("scan-w000")
			// Any event of the run triggers a reconcile.
			w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.TTLSecondsAfterFinished = ptr.To[int32](3600) })
			w.until("it was looked at", func() error {
				if run := w.get(); run.Status.ObservedGeneration != run.Generation {
					return fmt.Errorf("generation %d of %d", run.Status.ObservedGeneration, run.Generation)
				}
				return nil
			})
		},
	}
	for name, story := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t, nil)
			story(w, func(name string) {
				wf, err := w.getWorkflow(name)
				w.must(err)
				if wf.Spec.TTLStrategy == nil || wf.Spec.PodGC == nil {
					t.Errorf("when workflow %s goes is left to Argo's own settings: %+v", name, wf.Spec)
				}
				w.must(admin.Delete(w.ctx, wf))
			})
			ended := w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached).Status
			if want := (assayv1alpha1.TrialCounts{Planned: 192, Done: 192}); ended.Trials != want || ended.Verdict != assayv1alpha1.VerdictGo {
				t.Errorf("trials %+v, verdict %s", ended.Trials, ended.Verdict)
			}
			evidence, err := ledger.ReadEvidence(w.ctx, w.ledger(), -1)
			w.must(err)
			if len(evidence.Attempts) != 192 || len(evidence.Waves) != 1 {
				t.Errorf("%d attempts of %d waves are in the ledger, want 192 of one", len(evidence.Attempts), len(evidence.Waves))
			}
			w.until("its nodes are free", func() error {
				if held := w.get().Status.Leases; len(held) > 0 {
					return fmt.Errorf("it holds %v", held)
				}
				return nil
			})
			var all argo.WorkflowList
			w.must(admin.List(w.ctx, &all, client.InNamespace(w.namespace)))
			if len(all.Items) > 0 {
				t.Errorf("%d workflows are left or were started again, the first is %s", len(all.Items), all.Items[0].Name)
			}
		})
	}
}

func TestRun_WorkflowOfEarlierRunIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	older := &argo.Workflow{ObjectMeta: metav1.ObjectMeta{
		// A finalizer delays its deletion.
		Namespace: w.namespace, Name: "scan-w000", Finalizers: []string{"test.assay.dev/held"},
		Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy, executor.RunLabel: "scan", executor.RunUIDLabel: "earlier", executor.WaveLabel: "0"},
	}}
	w.must(admin.Create(w.ctx, older))
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonWaitingForNode, "earlier run")
	w.until("the earlier one is let go", func() error {
		wf, err := w.getWorkflow("scan-w000")
		if err != nil {
			return err
		}
		if wf.DeletionTimestamp.IsZero() {
			return errors.New("it is not deleted")
		}
		wf.Finalizers = nil
		return admin.Update(w.ctx, wf)
	})
	w.until("the run's own workflow exists", func() error {
		wf, err := w.getWorkflow("scan-w000")
		if err == nil && wf.Labels[executor.RunUIDLabel] != string(w.get().UID) {
			return fmt.Errorf("it is the earlier one")
		}
		return err
	})
	if !slices.Contains(w.get().Finalizers, plan.Finalizer) {
		t.Errorf("finalizers are %v", w.get().Finalizers)
	}
}

// A Go client writes a memory of "0" and a wallClock of "0s" if its author set neither, and the API server stores them. Such a run has
// the defaults, also for a later operator.
func TestRun_ExplicitZerosOfGoClientAreDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement = assayv1alpha1.Placement{NodeSelector: spec.Placement.NodeSelector, Exclusive: assayv1alpha1.ExclusiveNode}
		spec.Budget = assayv1alpha1.Budget{Trials: spec.Budget.Trials}
	})
	w.must(admin.Create(w.ctx, w.template))
	w.create()
	if written := w.get().Spec; !written.Placement.Memory.IsZero() || written.Budget.WallClock.Duration != 0 {
		t.Fatalf("the run has memory %v and wallClock %v, want the zeros that this is about", &written.Placement.Memory, written.Budget.WallClock)
	}
	w.untilStarted()
	w.operator.stop()
	w.operator.start()
	w.finish()
	w.untilReleased(w.node("node-a"))
	w.untilCondition(assayv1alpha1.ConditionLedgerReady, metav1.ConditionTrue, assayv1alpha1.ReasonLedgerReady)
}
