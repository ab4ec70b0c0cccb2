package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor/argo"
)

type values = assayv1alpha1.ParameterValues

func TestInvalidExperiments_AreRejectedByField(t *testing.T) {
	t.Parallel()
	integer := func(template *assayv1alpha1.BenchmarkTemplateSpec, name string) *assayv1alpha1.Parameter {
		for i := range template.Parameters {
			if template.Parameters[i].Name == name {
				return &template.Parameters[i]
			}
		}
		return &assayv1alpha1.Parameter{}
	}
	cases := map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)
		want []string
	}{
		"a parameter that the template does not have": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Parameters = values{"rows": "1"}
			},
			[]string{"spec.parameters.rows"},
		},
		"a value out of bounds": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
				integer(template, "iterations").Maximum = ptr.To(quantity("100"))
				spec.Parameters = values{"iterations": "101"}
			},
			[]string{"iterations", "101", "maximum 100"},
		},
		"a value of the wrong type": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Parameters = values{"iterations": "many"}
			},
			[]string{"iterations", "many", "allowed are integers"},
		},
		"a sweep that gives the same point twice": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Sweep.Include = []values{{"batchSize": "1", "pendingDelta": "0"}}
			},
			[]string{"spec.sweep", "batchSize=1,pendingDelta=0", "appears twice"},
		},
		"a sweep that leaves no point": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Sweep.Exclude = []values{{"batchSize": "1"}, {"batchSize": "8"}}
			},
			[]string{"spec.sweep"},
		},
		"more trials than the budget": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Budget.Trials = 191
			},
			[]string{"spec.budget.trials", "192 trials and the budget is 191"},
		},
		"gates on a metric, a point and an arm that do not exist, all at once": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Gates = []assayv1alpha1.Gate{
					{Name: "a", Metric: "bandwidth", Op: assayv1alpha1.RatioAtLeast, Bound: "2"},
					{Name: "b", Metric: "latency", At: values{"batchSize": "7"}, Op: assayv1alpha1.RatioAtLeast, Bound: "2"},
					{Name: "c", Metric: "latency", Candidate: "fastest", Op: assayv1alpha1.RatioAtLeast, Bound: "2"},
				}
			},
			[]string{"spec.gates[0].metric", "bandwidth", "spec.gates[1].at", "batchSize=7", "spec.gates[2].candidate", "fastest"},
		},
		"a percentile that can never have enough samples": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Gates = []assayv1alpha1.Gate{{Name: "tail", Metric: "latency", Statistic: assayv1alpha1.StatisticP99,
					Op: assayv1alpha1.RatioAtMost, Bound: "1"}}
			},
			[]string{"spec.gates[0].statistic", "at least 1000 samples"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.edit)
			w.must(admin.Create(w.ctx, w.template))
			w.must(admin.Create(w.ctx, w.run))
			run := w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonInvalidExperiment, tc.want...)
			w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonInvalidExperiment, tc.want...)
			if run.Status.Phase != assayv1alpha1.PhaseFailed {
				t.Errorf("phase %s", run.Status.Phase)
			}
			if _, err := w.getWorkflow("scan-w000"); err == nil {
				t.Error("a workflow was started")
			}
			if keys, err := w.ledger().List(w.ctx, ""); err != nil || len(keys) > 0 {
				t.Errorf("the ledger has %v (%v)", keys, err)
			}
			w.untilEvent(assayv1alpha1.ReasonInvalidExperiment, tc.want[0])
		})
	}
}

func TestRun_WaitsForMissingTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonTemplateNotFound, `"pir-scan"`, "create it")
	w.must(admin.Create(w.ctx, w.template))
	w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionTrue, assayv1alpha1.ReasonAccepted)
}

func TestRun_NamesUnsuitableNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.CPUs = 16
		spec.Placement.NodeSelector["disk"] = "nvme"
	})
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonNoNodeMatches, "disk=nvme",
		"matches none of")
	w.untilEvent(assayv1alpha1.ReasonNoNodeMatches, "disk=nvme")

	node := &corev1.Node{}
	w.must(admin.Get(w.ctx, key("", w.namespace+"-node-a"), node))
	node.Labels["disk"] = "nvme"
	w.must(admin.Update(w.ctx, node))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonNoNodeMatches, "has 4 of cpu",
		"takes 16050m")

	node.Status.Allocatable[corev1.ResourceCPU] = quantity("32")
	w.must(admin.Status().Update(w.ctx, node))
	w.until("it starts", func() error { _, err := w.getWorkflow("scan-w000"); return err })
}

func TestRun_EndsWhenImageCannotBePulled(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", Image: "pir-scan:test",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}},
	}}})
	w.untilEvent(assayv1alpha1.ReasonImageNotPulled, "pir-scan:test")
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonImageNotPulled, `"pir-scan:test"`,
		"correct the image")
	w.untilWorkflow("is terminated", func(spec argo.Spec) bool { return spec.Shutdown == argo.Terminate })
}

func TestRun_WaitsForUnscheduledPod(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	pod := w.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient cpu.",
	}}})
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonWaitingForNode, "Insufficient cpu")
	w.setPod(pod, corev1.PodStatus{Phase: corev1.PodRunning})
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning)
}

func TestRun_EndsWhenWorkflowMeasuresNothing(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.argoSays("scan-w000", "Error", `serviceaccount "assay-executor" not found`)
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonExecutionFailed,
		`serviceaccount "assay-executor" not found`)
}
