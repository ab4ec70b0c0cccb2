package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

type values = assayv1alpha1.ParameterValues

// smallScan is a run of the PIR kernel that takes seconds a block: 4 MiB matrix, two arms, one gate.
func smallScan(name string, blocks int32) *assayv1alpha1.BenchmarkRun {
	return &assayv1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: assayv1alpha1.BenchmarkRunSpec{
			TemplateRef: &assayv1alpha1.TemplateReference{Name: "pir-scan"},
			Parameters:  values{"rows": "16384", "iterations": "5", "warmupIterations": "1"},
			Sweep:       &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1", "8"}}}},
			Arms: []assayv1alpha1.Arm{
				{Name: "loop", Baseline: true, Parameters: values{"strategy": "loop"}},
				{Name: "fused-m4r", Parameters: values{"strategy": "fused-m4r"}},
			},
			Design: assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: blocks, Max: blocks}},
			// These tests count trials even if the machine does other work.
			Environment: &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationWarn},
			// Nor does a verdict say how fast the machine was: no interval of a few blocks reaches a hundredth of the loop.
			Gates: []assayv1alpha1.Gate{
				{Name: "gain-at-8", Metric: "throughput", At: values{"batchSize": "8"}, Op: assayv1alpha1.RatioAtLeast, Bound: "0.01"},
				{Name: "parity", Op: assayv1alpha1.ParityEqual},
			},
		},
	}
}

// wins reports an error unless the candidate is Go and the best, by times that were really measured. A machine that does other work as well
// widens intervals, so that the run may end Inconclusive: it may not turn a verdict over.
func wins(t *testing.T, run *assayv1alpha1.BenchmarkRun, candidate, because string) {
	t.Helper()
	switch {
	case run.Status.Verdict == assayv1alpha1.VerdictGo && run.Status.Best == candidate:
	case run.Status.Verdict == assayv1alpha1.VerdictInconclusive && run.Status.Best == "":
		t.Logf("the machine is too noisy to say that %s: %s", because, conditions(run))
	default:
		t.Errorf("verdict %s, best %q; %s: %s", run.Status.Verdict, run.Status.Best, because, conditions(run))
	}
}

// inline gives the run an inline template, made from the shipped program with other arguments.
func inline(run *assayv1alpha1.BenchmarkRun, edit func(*assayv1alpha1.BenchmarkTemplateSpec)) *assayv1alpha1.BenchmarkRun {
	run.Spec.TemplateRef = nil
	run.Spec.Template = &assayv1alpha1.BenchmarkTemplateSpec{
		Image:      "assay.dev/assay-scan:0.1.0",
		Command:    []string{"/scan-pir", "run"},
		Parameters: []assayv1alpha1.Parameter{{Name: "rows"}, {Name: "iterations"}, {Name: "warmupIterations"}, {Name: "batchSize"}, {Name: "strategy"}},
		Metrics:    []assayv1alpha1.Metric{{Name: "throughput", Unit: "queries/s", Direction: assayv1alpha1.HigherIsBetter, Statistic: assayv1alpha1.StatisticValue}},
	}
	edit(run.Spec.Template)
	return run
}
