package experiment

import (
	"cmp"
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
	checkSettings(output, problems)
	for i, metric := range template.Metrics {
		field := fmt.Sprintf("template.metrics[%d].from", i)
		from := ptr.Deref(metric.From, assayv1alpha1.MetricSource{})
		for _, match := range reference.FindAllStringSubmatch(from.Benchmark, -1) {
			if findParameter(template, match[1]) == nil {
				problems.add(field+".benchmark", "%s", noParameter(template, match[1]))
			}
		}
		if format.Named(string(output.Format)).NoUnits && from.Unit == "" && hasScale(metric.Unit) {
			problems.add(field+".unit", "missing, and %s does not state units: write the unit in which the program writes %s, such as %s",
				output.Format, metric.Name, metric.Unit)
		}
		if from.Unit != "" && !convertible(from.Unit, metric.Unit) {
			problems.add(field+".unit", "invalid unit %q: figures in it cannot be converted to %q, the unit of metric %q; allowed are %s", from.Unit,
				metric.Unit, metric.Name, sourceUnits(metric.Unit))
		}
		checkPath(field, output.Format, from, problems)
		switch {
		case output.Format == assayv1alpha1.K6Output && from.Benchmark == "":
			problems.add(field+".benchmark", "k6 has many metrics: name one, such as http_req_duration")
		case output.Format == assayv1alpha1.CSVOutput && from.Benchmark != "" && from.Benchmark != "*" && !strings.Contains(from.Benchmark, "="):
			problems.add(field+".benchmark", "invalid benchmark %q: it selects no rows; write column=value, or * for all", from.Benchmark)
		}
	}
}

// checkSettings reports settings of another format, and those that contradict each other.
func checkSettings(output assayv1alpha1.Output, problems *Invalid) {
	if csv := output.CSV; csv != nil {
		decimal := cmp.Or(csv.DecimalMark, ".")
		switch {
		case output.Format != assayv1alpha1.CSVOutput:
			problems.add("template.output.csv", "invalid for format %s: remove it, or set output.format to CSV", output.Format)
		case csv.ThousandsMark == decimal:
			problems.add("template.output.csv.thousandsMark", "invalid mark %q, which is the decimal mark too: change one", csv.ThousandsMark)
		case csv.Comment != "" && csv.Comment == cmp.Or(csv.Separator, ","):
			problems.add("template.output.csv.comment", "invalid character %q, which is the separator too: change one", csv.Comment)
		}
		marks := [][2]string{
			{"separator", csv.Separator}, {"decimalMark", csv.DecimalMark}, {"thousandsMark", csv.ThousandsMark}, {"comment", csv.Comment},
		}
		for _, mark := range marks {
			if len(mark[1]) > 1 || strings.ContainsAny(mark[1], "\"\r\n0123456789") {
				problems.add("template.output.csv."+mark[0], "invalid character %q: write one of ASCII that is no quote, digit or line break", mark[1])
			}
		}
	}
	if json := output.JSON; json != nil {
		_, err := format.SingleValue(json.ErrorPath)
		switch {
		case output.Format != assayv1alpha1.JSONOutput:
			problems.add("template.output.json", "invalid for format %s: remove it, or set output.format to JSON", output.Format)
		case json.ErrorPath != "" && err != nil:
			problems.add("template.output.json.errorPath", "invalid JSONPath %q: %v", json.ErrorPath, err)
		}
	}
}

// checkPath reports metrics that are selected by a path in another format, or otherwise in JSON.
func checkPath(field string, of assayv1alpha1.OutputFormat, from assayv1alpha1.MetricSource, problems *Invalid) {
	if of != assayv1alpha1.JSONOutput {
		if from.Path != "" {
			problems.add(field+".path", "invalid for format %s, whose figures have names: write from.field, or set output.format to JSON", of)
		}
		return
	}
	_, err := format.SingleValue(from.Path)
	switch {
	case from.Benchmark != "" || from.Field != "":
		problems.add(field, "invalid for format JSON, whose figures have no names: remove benchmark and field, and write path, such as $.p99")
	case from.Path == "":
		problems.add(field+".path", "missing: write the JSONPath of the figure, such as $.summary.p99 or $.runs[*].seconds")
	case err != nil:
		problems.add(field+".path", "invalid JSONPath %q: %v", from.Path, err)
	}
}

// hasScale reports whether figures of this unit are written with several factors, such as s and ms, so that their unit must be known.
func hasScale(unit string) bool {
	is, rate := ByClock(unit)
	return is && !rate || unit == "%" || strings.HasSuffix(strings.TrimSuffix(unit, "/s"), "By")
}

// hasSamples reports whether the tool reports the samples of a metric, so that percentiles can be computed.
func hasSamples(output record.Output, metric string) bool {
	i := slices.IndexFunc(output.Metrics, func(of record.MetricSource) bool { return of.Name == metric })
	if i < 0 {
		return true // Reported by the program itself, or one value per trial.
	}
	from := format.From{Benchmark: output.Metrics[i].Benchmark, Field: output.Metrics[i].Field, Path: output.Metrics[i].Path}
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
