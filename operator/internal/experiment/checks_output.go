package experiment

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/record"
)

// checkOutput reports outputs that cannot be read.
func checkOutput(template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	output := template.Output
	if slices.Contains(strings.Split(output.Path, "/"), "..") {
		problems.add("template.output.path", "invalid path %q: it contains ..; write the path without it", output.Path)
	}
	if output.Format == assayv1alpha1.CriterionOutput && path.IsAbs(output.Path) {
		problems.add("template.output.path", "Criterion's folder must be of this trial, so its path is relative to the trial's own folder: "+
			"write criterion, and set CRITERION_HOME to the same")
	}
	if output.Format == assayv1alpha1.NoOutput && output.Path != "" {
		problems.add("template.output.path", "with output.format None no output is read: remove path, or set the format of the file")
	}
	for i, metric := range template.Metrics {
		field := fmt.Sprintf("template.metrics[%d].from", i)
		from := ptr.Deref(metric.From, assayv1alpha1.MetricSource{})
		for _, match := range reference.FindAllStringSubmatch(from.Benchmark, -1) {
			if findParameter(template, match[1]) == nil {
				problems.add(field+".benchmark", "%s", noParameter(template, match[1]))
			}
		}
		switch {
		case output.Format == assayv1alpha1.K6Output && from.Benchmark == "":
			problems.add(field+".benchmark", "k6 has many metrics: name one, such as http_req_duration")
		case output.Format == assayv1alpha1.CSVOutput && from.Benchmark != "" && !strings.Contains(from.Benchmark, "="):
			problems.add(field+".benchmark", "invalid benchmark %q: it selects no rows; write column=value", from.Benchmark)
		}
	}
}

// hasSamples reports whether the tool reports the samples of a metric, so that percentiles can be computed.
func hasSamples(output record.Output, metric string) bool {
	i := slices.IndexFunc(output.Metrics, func(of record.MetricSource) bool { return of.Name == metric })
	if i < 0 {
		return true // Reported by the program itself, or one value per trial.
	}
	from := format.From{Benchmark: output.Metrics[i].Benchmark, Field: output.Metrics[i].Field}
	return format.Named(output.Format).HasSamples(from, output.Path == "")
}

// checkSummaries rejects percentiles of metrics with one number per trial, because a percentile of summaries is not a percentile of the
// samples.
func checkSummaries(spec *assayv1alpha1.BenchmarkRunSpec, plan *Plan, problems *Invalid) {
	check := func(field, name string, statistic assayv1alpha1.Statistic) {
		if output := plan.Workload.Output; strings.HasPrefix(string(statistic), "p") && !hasSamples(output, name) {
			problems.add(field, "%s of metric %q cannot be computed, because %s gives one figure per trial and no samples: take the tool's own "+
				"percentile in from.field, with statistic value", statistic, name, output.Format)
		}
	}
	for i, metric := range plan.Metrics {
		check(fmt.Sprintf("template.metrics[%d].statistic", i), metric.Name, assayv1alpha1.Statistic(metric.Statistic))
	}
	for i, gate := range spec.Gates {
		check(fmt.Sprintf("spec.gates[%d].statistic", i), gate.Metric, gate.Statistic)
	}
	for i, constraint := range ptr.Deref(spec.Search, assayv1alpha1.Search{}).SubjectTo {
		check(fmt.Sprintf("spec.search.subjectTo[%d].statistic", i), constraint.Metric, constraint.Statistic)
	}
}
