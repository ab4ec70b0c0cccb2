package experiment

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// Hints propose other gates where the ones written have a known limit. The run is valid without them.
func (e *Experiment) Hints() []string {
	var out []string
	for _, gate := range e.Plan.Gates {
		metric := e.Metric(gate.Metric)
		if metric == nil || !gate.Op.OfRatio() || !mayBeZero(metric) {
			continue
		}
		op := DifferenceAtMost
		if metric.Direction == HigherIsBetter {
			op = DifferenceAtLeast
		}
		out = append(out, fmt.Sprintf("gate %s takes a ratio of %s, a count that may be 0, and against a baseline of 0 any count is an infinite "+
			"ratio: to bound the change in %s, use op %s with a bound such as \"0\"", gate.Name, metric.Name, metric.Unit, op))
	}
	return out
}

// mayBeZero reports whether a metric counts. A time or a rate is above 0 in any program that does its work, and so is the memory of a
// process.
func mayBeZero(metric *Metric) bool {
	clock, _ := ByClock(metric.Unit)
	return !clock && !(metric.Unit == "By" && strings.HasPrefix(metric.Name, record.ProcessPrefix))
}
