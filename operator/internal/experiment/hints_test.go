package experiment

import (
	"strings"
	"testing"
)

func TestHints_DifferencesForRatiosOfCounts(t *testing.T) {
	bound := 1.0
	for name, c := range map[string]struct {
		unit      string
		metric    string
		direction Direction
		op        Op
		want      string
	}{
		"a count":                    {"allocs", "allocs", LowerIsBetter, RatioAtMost, "use op DifferenceAtMost"},
		"a count that should rise":   {"hits", "hits", HigherIsBetter, RatioAtLeast, "use op DifferenceAtLeast"},
		"a size":                     {"By", "allocated", LowerIsBetter, RatioAtMost, "the change in By"},
		"a plain number":             {"1", "errors", LowerIsBetter, RatioAtMost, "use op DifferenceAtMost"},
		"a time":                     {"s", "latency", LowerIsBetter, RatioAtMost, ""},
		"a rate":                     {"queries/s", "throughput", HigherIsBetter, RatioAtLeast, ""},
		"a difference of a count":    {"allocs", "allocs", LowerIsBetter, DifferenceAtMost, ""},
		"a level of a count":         {"allocs", "allocs", LowerIsBetter, AtMost, ""},
		"the faults of a process":    {"1", "process.majorFaults", LowerIsBetter, RatioAtMost, "use op DifferenceAtMost"},
		"the memory of a process":    {"By", "process.peakMemory", LowerIsBetter, RatioAtMost, ""},
		"outputs, without a metric":  {"1", "", LowerIsBetter, ParityEqual, ""},
		"trials that have to finish": {"1", "", LowerIsBetter, Completes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			exp := &Experiment{Plan: Plan{
				Metrics: []Metric{{Name: c.metric, Unit: c.unit, Direction: c.direction}},
				Gates:   []Gate{{Name: "g", Condition: Condition{Metric: c.metric, Op: c.op, Bound: &bound}}},
			}}
			got := strings.Join(exp.Hints(), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
