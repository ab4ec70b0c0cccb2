package experiment

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// The process metrics of the runner are used like the template's: gates, predictions, constraints and columns may name them, and results
// show those that are named. A program need not report anything for them.

// shownAlways are the process metrics to show for a template without metrics.
var shownAlways = []string{"process.wallTime", "process.cpuTime", "process.peakMemory"}

// metric returns the metric of a name, from the template or from the process metrics of the runner; nil without one.
func (p *Plan) metric(name string) *Metric {
	if i := slices.IndexFunc(p.Metrics, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return &p.Metrics[i]
	}
	return p.processMetric(name)
}

// NoMetric is the message for a metric that neither the template nor the runner provides.
func (p *Plan) NoMetric(name string) string {
	return fmt.Sprintf("the template has no metric %q: %s", name, suggest.Allowed(name, p.metricNames()))
}

// metricNames returns the names of the template's metrics, then of the process metrics.
func (p *Plan) metricNames() []string {
	return append(NamesOf(p.Metrics, func(m Metric) string { return m.Name }), p.processMetricNames()...)
}

// processMetric returns the process metric of a name; nil if the template has no such process or metric.
func (p *Plan) processMetric(name string) *Metric {
	role, quantity := record.FindProcessQuantity(name)
	if quantity == nil || role != "" &&
		!slices.ContainsFunc(p.Workload.Roles, func(r record.Role) bool { return r.Name == role && !r.Result }) {
		return nil
	}
	return &Metric{Name: name, Unit: quantity.Unit, Direction: LowerIsBetter, Statistic: StatisticValue}
}

// processMetricNames returns the names of the metrics of the template's processes.
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

// Metrics returns the metrics to show: the template's, and the process metrics that the run names.
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

// namedMetrics returns the metrics that any field of the run names.
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
