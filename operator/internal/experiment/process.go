package experiment

import (
	"fmt"
	"slices"

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
	return append(NamesOf(p.Metrics, func(m Metric) string { return m.Name }), p.processMetricNames()...)
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
