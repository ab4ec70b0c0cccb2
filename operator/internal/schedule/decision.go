package schedule

import (
	"fmt"
	"strings"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Decision is what happens next, and how the schedule stands meanwhile.
type Decision struct {
	// Needs is what has to be observed first. Nothing else is decided then.
	Needs Needs
	// Action is what to do; nil is nothing.
	Action Action
	// Next is given its number. The status has it before anything is done about it.
	Next *assayv1alpha1.ScheduledRun
	// Head is the revision that Next takes; nil where it takes none.
	Head *assayv1alpha1.Revision
	// Dealt is the due time that needs nothing more, and Missed how many passed before it that nothing was done about.
	Dealt  time.Time
	Missed int64
	// Due is the next due time; zero where there is none.
	Due time.Time
	// Scheduled, Reason and Message are the schedule's condition of that name.
	Scheduled       bool
	Reason, Message string
	// After is when to look again even if nothing changed. 0 is at once where something was decided, and not at all otherwise.
	After time.Duration
}

// LookAgain is when to look again even if nothing changed, if at all.
func (d Decision) LookAgain() (after time.Duration, again bool) {
	return d.After, d.After > 0 || d.decides()
}

// decides reports whether there is anything to do or to write down, and not only to wait.
func (d Decision) decides() bool { return d.Action != nil || d.Next != nil || !d.Dealt.IsZero() }

// Action is one thing to do. Each can be repeated after it was interrupted anywhere.
type Action interface{ fmt.Stringer }

// Start creates the run of status.next, and marks the revisions that it measures or passes over.
type Start struct {
	Run  *assayv1alpha1.BenchmarkRun
	Next assayv1alpha1.ScheduledRun
	Mark []Mark
}

// Mark says of a recorded revision which run took it or passed it over.
type Mark struct {
	Of       Version
	Sequence int64
	Measured bool
}

// Record puts what a run measured into the history.
type Record struct{ Run assayv1alpha1.ScheduledRun }

// RecordGap puts a gap into the history: a due time, or a run, that measured nothing.
type RecordGap struct{ Run assayv1alpha1.ScheduledRun }

// Locate begins or ends the search for the culprits of a change. Revisions are those that were recorded, in their order.
type Locate struct {
	Change    string
	Revisions []Recorded
}

// Cancel asks a run to end.
type Cancel struct{ Run Run }

// Delete deletes runs that the history has.
type Delete struct{ Runs []Version }

// Forget deletes recorded revisions.
type Forget struct{ Revisions []Version }

func (a Start) String() string { return "create BenchmarkRun " + a.Run.Name }

func (a Record) String() string { return "record what " + a.Run.Name + " measured" }

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

func (a Forget) String() string { return fmt.Sprintf("forget %d recorded revisions", len(a.Revisions)) }
