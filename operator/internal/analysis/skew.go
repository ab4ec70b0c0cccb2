package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/record"
)

// No verdict rests on clocks of different machines agreeing: whether a lease was in force is for the order of writes in the ledger to
// say, blocks are compared with themselves, and in series with those on their own node. A clock that is wrong is named, because people
// read times.

// clockLimit is by how much a clock may be off without a word: beyond what NTP leaves by far, and within what people notice.
const clockLimit = 2 * time.Second

// clockError is the most that an attempt's clock is known to be ahead by.
func clockError(attempt *record.Attempt) time.Duration {
	if attempt.Kept == nil || attempt.Kept.Clock == nil {
		return 0
	}
	return duration(attempt.Kept.Clock.AheadSeconds + attempt.Kept.Clock.UncertaintySeconds)
}

func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// NodeClock is a node's clock beside that of the store, at the start of a block.
type NodeClock struct {
	AheadSeconds       float64 `json:"aheadSeconds"`
	UncertaintySeconds float64 `json:"uncertaintySeconds"`
}

// beyond is by how much the clock is off for sure.
func (c NodeClock) beyond() float64 { return math.Abs(c.AheadSeconds) - c.UncertaintySeconds }

// clocksOf are the readings of each node that are off most.
func clocksOf(attempts []*record.Attempt) map[string]*NodeClock {
	out := map[string]*NodeClock{}
	for _, attempt := range attempts {
		node := nodeOf(attempt)
		if attempt.Kept == nil || attempt.Kept.Clock == nil || node == "" {
			continue
		}
		read := NodeClock(*attempt.Kept.Clock)
		if out[node] == nil || read.beyond() > out[node].beyond() {
			out[node] = &read
		}
	}
	return out
}

func clockWarnings(clocks map[string]*NodeClock) []string {
	var out []string
	for _, node := range slices.Sorted(maps.Keys(clocks)) {
		clock := clocks[node]
		if duration(clock.beyond()) <= clockLimit {
			continue
		}
		how := "ahead of"
		if clock.AheadSeconds < 0 {
			how = "behind"
		}
		out = append(out, fmt.Sprintf("the clock of node %s is %s ± %s %s that of the object store, more than the %s allowed: no verdict "+
			"rests on it, and the "+
			"times of its trials are wrong by as much; set it, for example with chrony", node,
			duration(math.Abs(clock.AheadSeconds)).Round(time.Millisecond),
			duration(clock.UncertaintySeconds).Round(time.Millisecond), how, clockLimit))
	}
	return out
}
