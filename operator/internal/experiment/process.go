package experiment

import (
	"fmt"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// What the runner reads of every process are metrics like any other: gates, predictions, constraints and columns name them,
// and the results show those that something names. A program need not report anything for it.

// shownAlways are shown of a template that has no metrics of its own.
var shownAlways = []string{"process.wallTime", "process.cpuTime", "process.peakMemory"}

// metric finds a metric by name: one of the template, or of what the runner reads of every process.
func (p *Plan) metric(name string) *Metric {
	if i := slices.IndexFunc(p.Metrics, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return &p.Metrics[i]
	}
	return p.processMetric(name)
}

// NoMetric refuses a metric that neither the template has nor the runner reads.
func (p *Plan) NoMetric(name string) string {
	return fmt.Sprintf("the template has no metric %q: %s", name, suggest.Allowed(name, p.metricNames()))
}

// metricNames are those of the template's metrics, and then of what the runner reads.
func (p *Plan) metricNames() []string {
	return append(namesOf(p.Metrics, func(m Metric) string { return m.Name }), p.processMetricNames()...)
}

// processMetric is a metric that the runner reads; nil if it reads none of that name of the template's processes.
func (p *Plan) processMetric(name string) *Metric {
	role, quantity := record.FindProcessQuantity(name)
	if quantity == nil || role != "" &&
		!slices.ContainsFunc(p.Workload.Roles, func(r record.Role) bool { return r.Name == role && !r.Result }) {
		return nil
	}
	return &Metric{Name: name, Unit: quantity.Unit, Direction: LowerIsBetter, Statistic: StatisticValue}
}

// processMetricNames are those of the template's processes.
func (p *Plan) processMetricNames() []string {
	var out []string
	for _, quantity := range record.ProcessQuantities {
		if quantity.OfResult {
			out = append(out, record.ProcessPrefix+quantity.Name)
		}
	}
	for _, role := range p.Workload.Roles {
		for _, quantity := range record.ProcessQuantities {
			if quantity.OfRoles && !role.Result {
				out = append(out, record.ProcessPrefix+role.Name+"."+quantity.Name)
			}
		}
	}
	return out
}

// Metrics are those that results show: the template's, and of what the runner reads those that the run names.
func (e *Experiment) Metrics() []*Metric {
	p := &e.Plan
	out := make([]*Metric, 0, len(p.Metrics))
	for i := range p.Metrics {
		out = append(out, &p.Metrics[i])
	}
	named := p.namedMetrics()
	for _, name := range p.processMetricNames() {
		if slices.Contains(named, name) || len(p.Metrics) == 0 && slices.Contains(shownAlways, name) {
			out = append(out, p.processMetric(name))
		}
	}
	return out
}

// namedMetrics are those that something in the run asks for.
func (p *Plan) namedMetrics() []string {
	var out []string
	for _, gate := range p.Gates {
		out = append(out, gate.Metric)
	}
	for _, prediction := range p.Predictions {
		out = append(out, prediction.Metric)
	}
	if p.Search != nil {
		out = append(out, p.Search.Maximize)
		for _, constraint := range p.Search.SubjectTo {
			out = append(out, constraint.Metric)
		}
	}
	for _, table := range p.Tables {
		out = append(out, table.Total)
		for _, column := range table.Columns {
			out = append(out, column.Metric)
		}
	}
	return out
}

// checkMetricNames keeps the names of what the runner reads for the runner.
func checkMetricNames(template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	for i, metric := range template.Metrics {
		if strings.HasPrefix(metric.Name, record.ProcessPrefix) {
			problems.add(fmt.Sprintf("template.metrics[%d].name", i), "metric %q has a name that begins with %s, which is for what the runner "+
				"reads of every process: remove the metric, as gates can name it without, or rename it", metric.Name, record.ProcessPrefix)
		}
	}
	switch {
	case template.Output.Format == assayv1alpha1.NoOutput && len(template.Metrics) > 0:
		problems.add("template.metrics", "with output.format None the program reports nothing, and %d metrics are named: remove them, and name "+
			"%s and the like in gates", len(template.Metrics), shownAlways[0])
	case template.Output.Format != assayv1alpha1.NoOutput && template.Output.Format != assayv1alpha1.AssayResult && len(template.Metrics) == 0:
		problems.add("template.metrics", "output of format %s is read for metrics and the template names none: name one, or set output.format "+
			"None, with which only the process is measured", template.Output.Format)
	}
}
