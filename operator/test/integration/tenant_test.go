package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/record"
)

// axes returns a sweep with a number of axes and a number of values each.
func axes(count, size int) func(*assayv1alpha1.BenchmarkRunSpec) {
	return func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Sweep = &assayv1alpha1.Sweep{}
		for a := range count {
			axis := assayv1alpha1.SweepAxis{Name: string(rune('a' + a))}
			for i := range size {
				axis.Values = append(axis.Values, fmt.Sprint(i))
			}
			spec.Sweep.Axes = append(spec.Sweep.Axes, axis)
		}
	}
}

// builds returns a number of arms with a number of builds each, at a number of values.
func builds(arms, builds, values int) func(*assayv1alpha1.BenchmarkRunSpec) {
	return func(spec *assayv1alpha1.BenchmarkRunSpec) {
		axes(1, values)(spec)
		spec.Arms = nil
		for a := range arms {
			arm := assayv1alpha1.Arm{Name: fmt.Sprint("arm-", a), Baseline: a == 0}
			for b := range builds {
				arm.Builds = append(arm.Builds, assayv1alpha1.Build{Name: fmt.Sprint("build-", b), Program: fmt.Sprint("/bin/scan-", b)})
			}
			spec.Arms = append(spec.Arms, arm)
		}
	}
}

func TestAPIServer_RejectsForbiddenFieldsOfTenants(t *testing.T) {
	t.Parallel()
	toleration := func(toleration corev1.Toleration) func(*assayv1alpha1.BenchmarkRunSpec) {
		return func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Placement.Tolerations = []corev1.Toleration{toleration}
		}
	}
	cases := map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRunSpec)
		says []string
	}{
		"an effect that Argo would evaluate": {toleration(corev1.Toleration{Key: "a", Effect: "{{=1+1}}"}), []string{"spec.placement.tolerations", "effect is NoSchedule"}},
		"an unknown operator":                {toleration(corev1.Toleration{Key: "a", Operator: "{{=1}}"}), []string{"spec.placement.tolerations", "operator is Exists or Equal"}},
		"a toleration of everything":         {toleration(corev1.Toleration{Operator: "Exists"}), []string{"spec.placement.tolerations", "key names a taint"}},
		"a toleration of a leased node":      {toleration(corev1.Toleration{Key: "assay.dev/leased", Operator: "Exists"}), []string{"spec.placement.tolerations", "assay.dev/leased"}},
		"more cells than there may be, of builds": {
			builds(16, 64, 5), []string{"spec", "more than 4096 cells", "fewer builds"},
		},
		"more combinations than there may be": {
			axes(3, 40), []string{"spec.sweep", "more than 10000 combinations", "use fewer values"},
		},
	}
	w := newNamespace(t, nil)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := w.run.DeepCopy()
			run.Name = "refused"
			tc.edit(&run.Spec)
			err := admin.Create(w.ctx, run)
			if !apierrors.IsInvalid(err) {
				t.Fatalf("error %v, want one that it is invalid", err)
			}
			for _, text := range tc.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q does not contain %q", err, text)
				}
			}
		})
	}
}

// The API server's limit is not lower than the operator's.
func TestLimits_MaximumOfBuildsIsAccepted(t *testing.T) {
	t.Parallel()
	w := newNamespace(t, nil)
	for name, edit := range map[string]func(*assayv1alpha1.BenchmarkRunSpec){
		"4096 cells": builds(16, 64, 4),
		"more that exclude makes fewer": func(spec *assayv1alpha1.BenchmarkRunSpec) {
			builds(16, 64, 5)(spec)
			spec.Sweep.Exclude = []assayv1alpha1.ParameterValues{{"a": "1"}}
		},
		"values side by side": func(spec *assayv1alpha1.BenchmarkRunSpec) {
			builds(16, 64, 4)(spec)
			spec.Sweep.Axes = append(spec.Sweep.Axes, assayv1alpha1.SweepAxis{Name: "b", Values: spec.Sweep.Axes[0].Values})
			spec.Sweep.Mode = assayv1alpha1.ZipSweep
		},
		"no sweep": func(spec *assayv1alpha1.BenchmarkRunSpec) {
			builds(16, 64, 4)(spec)
			spec.Sweep = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := w.run.DeepCopy()
			run.Name = "taken"
			edit(&run.Spec)
			if err := admin.Create(w.ctx, run, client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLimits_TooLargeRunIsRejectedWithRemedy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		var values []string
		for i := range 100 {
			values = append(values, fmt.Sprint(i))
		}
		spec.Sweep.Axes[0].Values, spec.Sweep.Axes[1].Values = values, values
		// An exclusion, which only the operator counts.
		spec.Sweep.Exclude = []assayv1alpha1.ParameterValues{{"batchSize": "1"}}
		spec.Gates = spec.Gates[:1]
	})
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonInvalidExperiment,
		"spec.sweep", "9900 points of 3 arms", "29700 cells", "at most 4096", "use fewer values")
}

func TestRun_ThatCrashedTheOperatorIsQuarantined(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonTemplateNotFound)
	// The notes of two operators that were killed while expanding it.
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"acceptanceTries":2}}`))
	w.must(admin.Status().Patch(w.ctx, w.get(), patch))
	w.must(admin.Create(w.ctx, w.template))
	w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonSetAside, "2 times", "more memory")
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonSetAside)
}

func TestRun_AcceptedLeavesNoNoteOfAttempt(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.until("the note is gone", func() error {
		if tries := w.get().Status.AcceptanceTries; tries != 0 {
			return fmt.Errorf("acceptanceTries is %d", tries)
		}
		return nil
	})
}

func TestRun_ForeignConfigMapEndsItBeforeItTakesANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "scan-w000"},
		Data: map[string]string{"precious": "yes"}}
	w.must(admin.Create(w.ctx, theirs))
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	run := w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonExecutionFailed,
		"ConfigMap scan-w000", w.namespace, "not this run's", "delete or rename it")
	if run.Status.StartTime != nil || run.Status.Wave != nil {
		t.Errorf("it started: %+v", run.Status)
	}
	var leases coordinationv1.LeaseList
	w.must(admin.List(w.ctx, &leases, client.InNamespace(w.operator.system)))
	for _, l := range leases.Items {
		if strings.HasPrefix(l.Name, "node") || l.Labels[executor.ManagedByLabel] != "" {
			t.Errorf("it took a lease: %s held by %v", l.Name, l.Spec.HolderIdentity)
		}
	}
	var configMap corev1.ConfigMap
	w.must(admin.Get(w.ctx, client.ObjectKeyFromObject(theirs), &configMap))
	if len(configMap.Data) != 1 || configMap.Data["precious"] != "yes" || configMap.Immutable != nil || len(configMap.OwnerReferences) > 0 {
		t.Errorf("it was changed: %+v", configMap)
	}
}

// The garbage collector may delete the ConfigMap of an earlier run after the run was created again.
func TestRun_ConfigMapOfAnEarlierRunDelaysItOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "scan-w000"}}
	theirs.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: assayv1alpha1.GroupVersion.String(), Kind: "BenchmarkRun", Name: "scan", UID: "of-an-earlier-run",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	w.must(admin.Create(w.ctx, theirs))
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonWriteFailed, "ConfigMap scan-w000")
	w.must(admin.Delete(w.ctx, theirs))
	w.until("the run goes on once the name is free", func() error { _, err := w.getWorkflow("scan-w000"); return err })
}

// A webhook or a policy of the cluster may refuse every Workflow of a namespace.
func TestRun_DeniedWorkflowEndsItBeforeItTakesANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	name := "deny-" + w.namespace
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{"argoproj.io"}, APIVersions: []string{"*"}, Resources: []string{"workflows"}}}}}},
		MatchConditions: []admissionv1.MatchCondition{{Name: "here", Expression: "request.namespace == '" + w.namespace + "'"}},
		Validations:     []admissionv1.Validation{{Expression: "false", Message: "workflows are not allowed here"}},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	for _, object := range []client.Object{policy, binding} {
		w.must(admin.Create(w.ctx, object))
		t.Cleanup(func() { _ = admin.Delete(context.Background(), object) })
	}
	flow := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"entrypoint": "a"}}}
	flow.SetGroupVersionKind(argo.GroupVersion.WithKind("Workflow"))
	flow.SetNamespace(w.namespace)
	flow.SetName("probe")
	w.until("the policy holds", func() error {
		if err := admin.Create(w.ctx, flow.DeepCopy(), client.DryRunAll); err == nil {
			return errors.New("a workflow is admitted")
		}
		return nil
	})
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	run := w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonExecutionFailed,
		"workflows are not allowed here")
	if len(run.Status.Leases) > 0 || run.Status.Wave != nil {
		t.Errorf("it started: %+v", run.Status)
	}
}

func TestRun_EndedStaysEnded(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	stale := w.get()
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { cancel := true; spec.Cancel = &cancel })
	w.argoSays("scan-w000", "Failed", "stopped")
	w.until("the run has ended", func() error {
		if phase := w.get().Status.Phase; phase != assayv1alpha1.PhaseCancelled {
			return fmt.Errorf("phase %s", phase)
		}
		return nil
	})

	t.Run("a stale leader's status is a conflict", func(t *testing.T) {
		applier := &apply.Applier{Client: admin, Live: admin}
		status := stale.Status.DeepCopy()
		status.Phase = assayv1alpha1.PhaseRunning
		if _, err := applier.Status(w.ctx, stale, status); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want a conflict", err)
		}
	})
	for name, patch := range map[string]string{
		"the phase":       `{"status":{"phase":"Running"}}`,
		"a removed phase": `{"status":{"phase":null}}`,
		"the condition":   `{"status":{"conditions":[]}}`,
		"the verdict":     `{"status":{"verdict":"Go"}}`,
		"the end":         `{"status":{"completionTime":null}}`,
	} {
		t.Run("a forced write without a version is refused: "+name, func(t *testing.T) {
			err := admin.Status().Patch(w.ctx, w.get(), client.RawPatch(types.MergePatchType, []byte(patch)))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the run has ended") {
				t.Errorf("error %v, want that the run has ended", err)
			}
		})
	}
	if run := w.get(); run.Status.Phase != assayv1alpha1.PhaseCancelled ||
		!meta.IsStatusConditionTrue(run.Status.Conditions, assayv1alpha1.ConditionFailed) {
		t.Errorf("the run was turned back: %+v", run.Status)
	}
}

// A client with a key of the namespace writes another analysis before the platform's, between the end of the analysis and its reading, and
// after it was accepted. At no time is its verdict in the status.
func TestRun_ReplacedAnalysisIsNeverAccepted(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	forge := func() {
		w.must(w.ledger().Replace(w.ctx, ledger.AnalysisKey(0), []byte(`{"verdict": "Go", "best": "forged"}`)))
		w.must(w.ledger().Replace(w.ctx, ledger.HTMLKey(0), []byte("<script>alert(1)</script>")))
	}
	honest := func(when string) {
		t.Helper()
		if status := w.get().Status; status.Best == "forged" || status.Verdict != "" && status.Analysis == nil {
			t.Fatalf("%s: verdict %q of %q", when, status.Verdict, status.Best)
		}
	}
	w.runBlocks(0, 4)
	forge()
	w.pass(time.Minute)
	w.until("the attempts are counted", func() error {
		if done := w.get().Status.Trials.Done; done == 0 {
			return fmt.Errorf("%d trials are done", done)
		}
		return nil
	})
	honest("before the analysis")
	written := w.writeFirstAnalysis()
	forge()
	w.analysisPod(written)
	w.argoSays("scan-w000", "Succeeded", "")
	w.until("the wave is analysed again", func() error { _, err := w.getWorkflow("scan-w000-a1"); return err })
	honest("between the analysis and its reading")
	w.analyze()
	w.argoSays("scan-w000-a1", "Succeeded", "")
	run := w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	accepted := *run.Status.Analysis
	if list, err := w.ledger().Get(w.ctx, ledger.SealKey(0)); err != nil || accepted.EvidenceSHA256 != record.SHA256(list) {
		t.Errorf("the list of the attempts was accepted with sum %q, and has another: %v", accepted.EvidenceSHA256, err)
	}
	forge()
	w.must(w.ledger().Replace(w.ctx, ledger.SealKey(0), []byte("")))
	w.pass(time.Minute)
	honest("after acceptance")
	if got := w.get().Status; *got.Analysis != accepted || got.Verdict != run.Status.Verdict {
		t.Errorf("the status changed: %+v", got)
	}
	for _, key := range []string{ledger.AnalysisKey(0), ledger.HTMLKey(0), ledger.SealKey(0)} {
		if _, err := observe.JudgedStore(s, w.get()).Get(w.ctx, key); !errors.Is(err, ledger.ErrReplaced) {
			t.Errorf("the replaced %s is read: %v", key, err)
		}
	}
}

func TestRun_RepeatedReplacementEndsItWithTheCause(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.runBlocks(0, 4)
	// It is written once: while it stands there, the operator may accept it from any of the pods.
	written := w.writeFirstAnalysis()
	w.must(w.ledger().Replace(w.ctx, ledger.AnalysisKey(0), []byte(`{"verdict": "Go", "best": "forged"}`)))
	for _, name := range []string{"scan-w000", "scan-w000-a1", "scan-w000-a2", "scan-w000-a3"} {
		w.until("workflow "+name+" exists", func() error { _, err := w.getWorkflow(name); return err })
		w.analysisPod(written)
		w.argoSays(name, "Succeeded", "")
	}
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonAnalysisFailed,
		"analysis/000/analysis.json", "a client with a key of the namespace wrote it")
}
