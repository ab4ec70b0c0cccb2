// Package catalog describes every metric of the operator: name, type, unit, labels, meaning and bound. Both the metrics and
// docs/reference/metrics.md are generated from it, which ensures that they agree.
package catalog

// Type is a Prometheus type.
type Type string

// Types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric describes a metric.
type Metric struct {
	Name string
	Type Type
	// Unit of the values; empty for a count, and "as labelled" if the label unit contains it.
	Unit string
	// Labels in the order of their values.
	Labels []string
	// Help is one sentence without a full stop.
	Help string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	// When is the condition for the series to exist; empty means always.
	When string
}

// Group is a section of related metrics.
type Group struct {
	Title, Intro string
	// Bound describes the maximum number of series.
	Bound   string
	Metrics []Metric
}

// Label describes a label.
type Label struct{ Name, Meaning string }

// Limits of exported series. The first two are defaults of the flags --metrics-runs and --metrics-series-per-run.
const (
	Runs         = 100
	SeriesPerRun = 2000
	// Series is the limit for the results of all runs together.
	Series = 50000
)

// AsLabelled is the unit of metrics that a workload reports.
const AsLabelled = "as labelled"

// Find returns the metric with a name, and panics if the catalog lacks it.
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
