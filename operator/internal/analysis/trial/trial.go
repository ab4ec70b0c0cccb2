// Package trial reads a single attempt: its program, its node, its times, and its statistic of a metric.
package trial

import (
	"strings"
	"time"

	"assay.dev/assay/operator/internal/record"
)

// NodeOf returns the node that ran an attempt: that of its lease, or else the one that the runner was given; empty if unknown.
func NodeOf(attempt *record.Attempt) string {
	if attempt.Lease != nil {
		return attempt.Lease.Node
	}
	name, _ := attempt.Environment.Soft["nodeName"].(string)
	return name
}

// Executor returns the name of the pod or local process that ran an attempt.
func Executor(attempt *record.Attempt) string {
	return strings.TrimSuffix(attempt.ID, "/"+attempt.Trial)
}

// ClockError returns the measured upper bound of the time by which an attempt's clock is ahead; 0 if it was not measured.
func ClockError(attempt *record.Attempt) time.Duration {
	if attempt.Kept == nil || attempt.Kept.Clock == nil {
		return 0
	}
	return Seconds(attempt.Kept.Clock.AheadSeconds + attempt.Kept.Clock.UncertaintySeconds)
}

// Seconds converts seconds to a duration, limited to the range of durations.
func Seconds(s float64) time.Duration {
	return time.Duration(max(-longest, min(longest, s*float64(time.Second))))
}

// longest is about the longest duration, as a number that converts without overflow.
const longest = float64(1 << 62)

// Started reports whether a process ran. An attempt with the outcome NotStarted and a result, a signal or an exit code did start.
func Started(attempt *record.Attempt) bool {
	ended := attempt.Result != nil || attempt.Signal != nil || attempt.ExitCode != nil && *attempt.ExitCode != 0
	return attempt.Outcome != record.NotStarted || ended
}

// EndOf returns the end of an attempt by the clock of its start.
func EndOf(attempt *record.Attempt) time.Time {
	return attempt.StartedAt.Add(Seconds(attempt.DurationSeconds))
}
