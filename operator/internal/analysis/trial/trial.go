// Package trial knows what one attempt says of itself: what it ran, where and when, and its one number for a metric.
package trial

import (
	"strings"
	"time"

	"assay.dev/assay/operator/internal/record"
)

// NodeOf is the node that ran an attempt: the one leased for its block, or the one that the runner was given; empty when unknown.
func NodeOf(attempt *record.Attempt) string {
	if attempt.Lease != nil {
		return attempt.Lease.Node
	}
	name, _ := attempt.Environment.Soft["nodeName"].(string)
	return name
}

// Executor is the pod or local process that ran an attempt.
func Executor(attempt *record.Attempt) string {
	return strings.TrimSuffix(attempt.ID, "/"+attempt.Trial)
}

// ClockError is the most that an attempt's clock is known to be ahead by.
func ClockError(attempt *record.Attempt) time.Duration {
	if attempt.Kept == nil || attempt.Kept.Clock == nil {
		return 0
	}
	return Seconds(attempt.Kept.Clock.AheadSeconds + attempt.Kept.Clock.UncertaintySeconds)
}

// Seconds is a number of seconds as a duration, or the longest one where it is longer.
func Seconds(s float64) time.Duration {
	return time.Duration(max(-longest, min(longest, s*float64(time.Second))))
}

// longest is about the longest duration there is, as a number that a duration can hold.
const longest = float64(1 << 62)

// Started reports whether a process ran, whatever the attempt's outcome says.
func Started(attempt *record.Attempt) bool {
	ended := attempt.Result != nil || attempt.Signal != nil || attempt.ExitCode != nil && *attempt.ExitCode != 0
	return attempt.Outcome != record.NotStarted || ended
}

// EndOf is when an attempt ended, by the clock of its start.
func EndOf(attempt *record.Attempt) time.Time {
	return attempt.StartedAt.Add(Seconds(attempt.DurationSeconds))
}
