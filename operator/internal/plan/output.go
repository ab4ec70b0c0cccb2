package plan

import (
	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// output tells the runner where the result is and, when another tool writes it, which of its figures are the metrics.
func output(template *assayv1alpha1.BenchmarkTemplateSpec) record.Output {
	out := record.Output{Format: string(template.Output.Format), Path: template.Output.Path}
	if template.Output.Format == assayv1alpha1.AssayResult || template.Output.Format == assayv1alpha1.NoOutput {
		return out
	}
	for _, metric := range template.Metrics {
		source := record.MetricSource{Name: metric.Name, Unit: metric.Unit}
		if from := metric.From; from != nil {
			source.Benchmark, source.Field, source.FieldUnit = from.Benchmark, from.Field, from.Unit
		}
		out.Metrics = append(out.Metrics, source)
	}
	return out
}
