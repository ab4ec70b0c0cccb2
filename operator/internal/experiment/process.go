package experiment

import (
	"fmt"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// What the runner reads of every process are metrics like any other: gates, predictions, constraints and columns name them,
// and the results show those that something names. A program need not report anything for it.

// shownAlways are shown of a template that has no metrics of its own.
var shownAlways = []string{"process.wallTime", "process.cpuTime", "process.peakMemory"}

// processMetric is a metric that the runner reads; nil if it reads none of that name of the template's processes.
func processMetric(template *assayv1alpha1.BenchmarkTemplateSpec, name string) *assayv1alpha1.Metric {
	role, quantity := record.FindProcessQuantity(name)
	if quantity == nil || role != "" && !slices.ContainsFunc(template.Roles, func(r assayv1alpha1.Role) bool { return r.Name == role && !r.Result }) {
		return nil
	}
	return &assayv1alpha1.Metric{
		Name: name, Unit: quantity.Unit, Direction: assayv1alpha1.LowerIsBetter, Statistic: assayv1alpha1.StatisticValue, Description: quantity.Description,
	}
}

// processMetricNames are those of the template's processes.
func processMetricNames(template *assayv1alpha1.BenchmarkTemplateSpec) []string {
	var out []string
	for _, quantity := range record.ProcessQuantities {
		if quantity.OfResult {
			out = append(out, record.ProcessPrefix+quantity.Name)
		}
	}
	for _, role := range template.Roles {
		for _, quantity := range record.ProcessQuantities {
			if quantity.OfRoles && !role.Result {
				out = append(out, record.ProcessPrefix+role.Name+"."+quantity.Name)
			}
		}
	}
	return out
}

// Metrics are those that results show: the template's, and of what the runner reads those that the run names.
func (e *Experiment) Metrics() []*assayv1alpha1.Metric {
	out := make([]*assayv1alpha1.Metric, 0, len(e.Template.Metrics))
	for i := range e.Template.Metrics {
		out = append(out, &e.Template.Metrics[i])
	}
	named := namedMetrics(&e.Spec)
	for _, name := range processMetricNames(&e.Template) {
		if slices.Contains(named, name) || len(e.Template.Metrics) == 0 && slices.Contains(shownAlways, name) {
			out = append(out, processMetric(&e.Template, name))
		}
	}
	return out
}

// namedMetrics are those that something in the run asks for.
func namedMetrics(spec *assayv1alpha1.BenchmarkRunSpec) []string {
	var out []string
	for _, gate := range spec.Gates {
		out = append(out, gate.Metric)
	}
	for _, prediction := range spec.Predictions {
		out = append(out, prediction.Metric)
	}
	if spec.Search != nil {
		out = append(out, spec.Search.Maximize)
		for _, constraint := range spec.Search.SubjectTo {
			out = append(out, constraint.Metric)
		}
	}
	if spec.Report != nil {
		for _, table := range spec.Report.Tables {
			out = append(out, table.Total)
			for _, column := range table.Columns {
				out = append(out, column.Metric)
			}
		}
	}
	return out
}

// checkMetricNames keeps the names of what the runner reads for the runner.
func checkMetricNames(template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	for i, metric := range template.Metrics {
		if strings.HasPrefix(metric.Name, record.ProcessPrefix) {
			problems.add(fmt.Sprintf("template.metrics[%d].name", i), "metric %q has a name that begins with %s, which is for what the runner reads of every process: remove the metric, as gates can name it without, or rename it", metric.Name, record.ProcessPrefix)
		}
	}
	switch {
	case template.Output.Format == assayv1alpha1.NoOutput && len(template.Metrics) > 0:
		problems.add("template.metrics", "with output.format None the program reports nothing, and %d metrics are named: remove them, and name %s and the like in gates", len(template.Metrics), shownAlways[0])
	case template.Output.Format != assayv1alpha1.NoOutput && template.Output.Format != assayv1alpha1.AssayResult && len(template.Metrics) == 0:
		problems.add("template.metrics", "output of format %s is read for metrics and the template names none: name one, or set output.format None, with which only the process is measured", template.Output.Format)
	}
}
