package schedule

import (
	"fmt"
	"strings"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Decision is the next action, and the resulting condition of the schedule.
type Decision struct {
	// Needs is an observation that is required first. All other fields are empty then.
	Needs Needs
	// Action to execute; may be nil.
	Action Action
	// Next is the run that gets a number. It is stored in the status before any action.
	Next *assayv1alpha1.ScheduledRun
	// Head is the revision that Next measures; nil if it measures none.
	Head *assayv1alpha1.Revision
	// Dealt is the newest due time that is handled, and Missed the number of due times before it without a run.
	Dealt  time.Time
	Missed int64
	// Due is the next due time; zero if the schedule has no further one.
	Due time.Time
	// Scheduled, Reason and Message describe the schedule's condition of that name.
	Scheduled       bool
	Reason, Message string
	// After is the requeue interval. 0 requeues at once after a decision, and disables the requeue otherwise.
	After time.Duration
}

// RequeueAfter returns the requeue interval, and whether to requeue.
func (d Decision) RequeueAfter() (after time.Duration, again bool) {
	return d.After, d.After > 0 || d.decides()
}

// decides reports whether there is an action to execute or a status to store.
func (d Decision) decides() bool { return d.Action != nil || d.Next != nil || !d.Dealt.IsZero() }

// Action is an idempotent action.
type Action interface{ fmt.Stringer }

// Start creates the run of status.next, and marks the revisions that it measures or skips.
type Start struct {
	Run  *assayv1alpha1.BenchmarkRun
	Next assayv1alpha1.ScheduledRun
	Mark []Mark
}

// Mark stores in a recorded revision which run measured or skipped it.
type Mark struct {
	Of       Version
	Sequence int64
	Measured bool
}

// Record adds a run to the history.
type Record struct{ Run assayv1alpha1.ScheduledRun }

// RecordGap adds a gap to the history, for a due time or a run without measurements.
type RecordGap struct{ Run assayv1alpha1.ScheduledRun }

// Locate starts or ends the search for the culprits of a change. Revisions are the recorded ones, in order.
type Locate struct {
	Change    string
	Revisions []Recorded
}

// Cancel requests the cancellation of a run.
type Cancel struct{ Run Run }

// Delete deletes recorded runs.
type Delete struct{ Runs []Version }

// Forget deletes recorded revisions.
type Forget struct{ Revisions []Version }

func (a Start) String() string { return "create BenchmarkRun " + a.Run.Name }

func (a Record) String() string { return "record the result of " + a.Run.Name }

func (a RecordGap) String() string { return fmt.Sprintf("record a gap as number %d", a.Run.Sequence) }

func (a Locate) String() string { return "search the culprits of change " + a.Change }

func (a Cancel) String() string { return "cancel " + a.Run.Name }

func (a Delete) String() string {
	var names []string
	for _, run := range a.Runs {
		names = append(names, run.Name)
	}
	return "delete " + strings.Join(names, ", ")
}

func (a Forget) String() string { return fmt.Sprintf("delete %d recorded revisions", len(a.Revisions)) }
