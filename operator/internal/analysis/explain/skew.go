package explain

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// No verdict requires synchronized clocks. The order of writes in the ledger determines whether a lease was in force, arms are compared
// within blocks, and series contain blocks of one node. A wrong clock is reported, because users read times.

// clockLimit is the largest clock offset without a warning. It is far beyond the offset that NTP leaves, and small enough to find
// offsets that people notice.
const clockLimit = 2 * time.Second

// beyond returns the smallest offset of the clock that its uncertainty allows.
func beyond(c analysis.NodeClock) float64 { return math.Abs(c.AheadSeconds) - c.UncertaintySeconds }

// clocksOf returns the clock reading with the largest offset of each node.
func clocksOf(attempts []*record.Attempt) map[string]*analysis.NodeClock {
	out := map[string]*analysis.NodeClock{}
	for _, attempt := range attempts {
		node := trial.NodeOf(attempt)
		if attempt.Kept == nil || attempt.Kept.Clock == nil || node == "" {
			continue
		}
		read := analysis.NodeClock(*attempt.Kept.Clock)
		if out[node] == nil || beyond(read) > beyond(*out[node]) {
			out[node] = &read
		}
	}
	return out
}

func clockWarnings(clocks map[string]*analysis.NodeClock) []string {
	var out []string
	for _, node := range slices.Sorted(maps.Keys(clocks)) {
		clock := clocks[node]
		if trial.Seconds(beyond(*clock)) <= clockLimit {
			continue
		}
		how := "ahead of"
		if clock.AheadSeconds < 0 {
			how = "behind"
		}
		out = append(out, fmt.Sprintf("the clock of node %s is %s ± %s %s that of the object store, more than the %s allowed: no verdict "+
			"rests on it, and the "+
			"times of its trials are wrong by as much; set it, for example with chrony", node,
			quantity.Duration(trial.Seconds(math.Abs(clock.AheadSeconds)), time.Millisecond),
			quantity.Duration(trial.Seconds(clock.UncertaintySeconds), time.Millisecond), how, clockLimit))
	}
	return out
}
