package experiment

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

func TestRead_MetricSourcesOfToolOutput(t *testing.T) {
	template := &assayv1alpha1.BenchmarkTemplateSpec{
		Output: assayv1alpha1.Output{Format: assayv1alpha1.CriterionOutput, Path: "criterion"},
		Metrics: []assayv1alpha1.Metric{
			{Name: "latency", Unit: "s", From: &assayv1alpha1.MetricSource{Benchmark: "find/binary", Field: "slope", Unit: "ns"}},
			{Name: "usual", Unit: "s"},
		},
	}
	want := record.Output{Format: "Criterion", Path: "criterion", Metrics: []record.MetricSource{
		{Name: "latency", Unit: "s", Benchmark: "find/binary", Field: "slope", FieldUnit: "ns"},
		{Name: "usual", Unit: "s"},
	}}
	if diff := cmp.Diff(want, readOutput(template)); diff != "" {
		t.Error(diff)
	}
	template.Output = assayv1alpha1.Output{Format: assayv1alpha1.AssayResult}
	if got := readOutput(template); got.Metrics != nil {
		t.Errorf("an AssayResult names its metrics itself, and the wave has %v", got.Metrics)
	}
}
