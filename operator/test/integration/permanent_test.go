package integration

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

var scanMachine = fixture.Machine{Seconds: fixture.ScanSeconds, Noise: fixture.Noise{Trial: 0.01}}

// runFirstBlock writes the attempts of the first block, in which the program of some arms is missing.
func (w *world) runFirstBlock(missing ...string) {
	w.t.Helper()
	exp, err := ledger.ReadExperiment(w.ctx, w.ledger())
	w.must(err)
	one := *w.wave(0)
	one.Blocks = one.Blocks[:1]
	attempts := scanMachine.Run(exp, &one)
	for i := range attempts {
		if attempt := &attempts[i]; slices.Contains(missing, attempt.Arm) {
			attempt.Outcome, attempt.ExitCode, attempt.Result = record.Failed, nil, nil
			attempt.Message = "cannot start /scan: No such file or directory"
		}
	}
	objects, err := fixture.Objects(exp, nil, attempts)
	w.must(err)
	for key, raw := range objects {
		if strings.HasPrefix(key, ledger.AttemptsPrefix) {
			w.must(w.ledger().Create(w.ctx, key, raw))
		}
	}
	w.argoSays("scan-w000", "Running", "1/5")
}

// analyzeStopped runs the analysis of the first wave, which the operator has stopped, in place of Argo.
func (w *world) analyzeStopped() {
	w.t.Helper()
	w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
	w.analyze()
	w.argoSays("scan-w000", "Failed", "stopped with strategy 'Stop'")
}

func TestPermanentFailure_ProgramOfEveryArmIsMissing(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.runFirstBlock("loop", "fused-naive", "fused-m4r")
	w.analyzeStopped()
	ended := w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonSetupBroken,
		"no trial of any arm completed", "No such file or directory").Status
	if ended.Phase != assayv1alpha1.PhaseFailed || ended.Verdict != assayv1alpha1.VerdictInvalid ||
		!strings.Contains(ended.Reason, "No such file or directory") {
		t.Errorf("phase %s, verdict %s, reason %q", ended.Phase, ended.Verdict, ended.Reason)
	}
	w.untilReleased(w.node("node-a"))
	if _, err := w.getWorkflow("scan-w001"); err == nil {
		t.Error("another wave was planned")
	}
}

func TestPermanentFailure_CandidateThatNeverCompletesIsNotPlannedAgain(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.runFirstBlock("fused-naive")
	w.analyzeStopped()
	w.until("the next wave exists", func() error { _, err := w.getWorkflow("scan-w001"); return err })
	next := w.wave(1)
	if len(next.Blocks) != 3 {
		t.Errorf("%d blocks are planned again, want 3", len(next.Blocks))
	}
	for _, cell := range next.Cells {
		if next.Arms[cell.Arm].Name == "fused-naive" {
			t.Fatal("the next wave measures fused-naive")
		}
	}
	w.runWave(1, scanMachine)
	ended := w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached, "verdict Go").Status
	verdicts := map[string]assayv1alpha1.Verdict{}
	for _, candidate := range ended.Candidates {
		verdicts[candidate.Name] = candidate.Verdict
	}
	if verdicts["fused-naive"] != assayv1alpha1.VerdictNoGo || verdicts["fused-m4r"] != assayv1alpha1.VerdictGo {
		t.Errorf("verdicts %v", verdicts)
	}
	if ended.Best != "fused-m4r" {
		t.Errorf("best %q", ended.Best)
	}
}

func TestPermanentFailure_OnlyCandidateEndsTheRun(t *testing.T) {
	t.Parallel()
	w := started(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms = slices.DeleteFunc(spec.Arms, func(arm assayv1alpha1.Arm) bool { return arm.Name == "fused-naive" })
		for i := range spec.Gates {
			spec.Gates[i].Candidate = ""
		}
	})
	w.runFirstBlock("fused-m4r")
	w.analyzeStopped()
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached, "verdict NoGo",
		"No such file or directory")
	w.untilReleased(w.node("node-a"))
}

func TestPermanentFailure_MemoryLimitBelowRuntimesNeed(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "StartError", ExitCode: 128, Message: "failed to create containerd task: OCI runtime create failed: runc create failed: " +
				"unable to start container process: container init was OOM-killed (memory limit too low?): unknown",
		}},
	}}})
	ended := w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonSetupBroken,
		"container main does not start: StartError", "memory limit too low", "raise spec.placement.memory").Status
	if ended.Phase != assayv1alpha1.PhaseFailed || ended.Verdict != assayv1alpha1.VerdictInvalid ||
		!strings.Contains(ended.Reason, "memory limit too low") {
		t.Errorf("phase %s, verdict %s, reason %q", ended.Phase, ended.Verdict, ended.Reason)
	}
	w.untilWorkflow("is terminated", func(spec argo.Spec) bool { return spec.Shutdown == argo.Terminate })
	w.argoSays("scan-w000", "Failed", "terminated")
	w.untilReleased(w.node("node-a"))
}

func TestPermanentFailure_UnknownStartErrorIsRetried(t *testing.T) {
	t.Parallel()
	w := started(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Retry.Limit = ptr.To[int32](1)
	})
	failed := corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", Message: "context canceled"}},
	}}}
	w.addPod("scan-w000-block-1", failed)
	w.pass(0)
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning)
	w.addPod("scan-w000-block-2", failed)
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonSetupBroken, "context canceled")
}
