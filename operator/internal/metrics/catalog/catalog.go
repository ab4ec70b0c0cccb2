// Package catalog describes every metric of the operator: its name, type, unit, labels, meaning and bound. The metrics are
// made from it and docs/reference/metrics.md is written from it, so the two cannot differ.
package catalog

// Type is a Prometheus type.
type Type string

// Types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric describes one.
type Metric struct {
	Name string
	Type Type
	// Unit of the values; empty for a count, and "as labelled" where the label unit says it.
	Unit string
	// Labels in the order in which values are given.
	Labels []string
	// Help is one sentence without a full stop.
	Help string
	// Buckets of a histogram: their upper ends.
	Buckets []float64
	// When reports what must have happened before there is a series; empty is always.
	When string
}

// Group is what belongs together.
type Group struct {
	Title, Intro string
	// Bound is how many series there can be.
	Bound   string
	Metrics []Metric
}

// Label describes one.
type Label struct{ Name, Meaning string }

// Bounds of what is shown. The first two are defaults of the flags --metrics-runs and --metrics-series-per-run.
const (
	Runs         = 100
	SeriesPerRun = 2000
	// Series is how many series all runs' results have together.
	Series = 50000
)

// AsLabelled is the unit of what a workload reports.
const AsLabelled = "as labelled"

// Find returns the metric with a name, and panics if there is none: every metric is described.
func Find(name string) Metric {
	for _, group := range Groups {
		for _, metric := range group.Metrics {
			if metric.Name == name {
				return metric
			}
		}
	}
	panic("metric " + name + " is not in the catalog")
}
