package schedule

import (
	"cmp"
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Observed is a snapshot of the observations. Fields named by Needs are set only after a decision requested them.
type Observed struct {
	Schedule *assayv1alpha1.BenchmarkSchedule
	// History is the location of the namespace's history.
	History string
	// Rival is an older schedule of the same series, or "".
	Rival string
	// Runs are the runs owned by the schedule, read from the API server instead of a cache, so that runs created a moment ago are
	// included.
	Runs []Run
	// Revisions are the recorded revisions of the series.
	Revisions []Recorded

	// Past is the state of the series in the history.
	Past *Past
	// Image is the image that the source's reference resolves to.
	Image *Image
	// Confirmation is the due confirming run; its change is empty if none is due.
	Confirmation *Confirmation
	// Search is the next step of the search for the culprits of a change; its change is empty if none is due.
	Search *Search
}

// Needs names a missing observation.
type Needs string

// Values of Needs.
const (
	NeedsNothing      Needs = ""
	NeedsPast         Needs = "Past"
	NeedsImage        Needs = "Image"
	NeedsConfirmation Needs = "Confirmation"
	NeedsSearch       Needs = "Search"
)

// Version identifies an object as it was read, for optimistic concurrency.
type Version struct{ Name, UID, ResourceVersion string }

// Run is a run of the schedule.
type Run struct {
	Version
	Sequence int64
	// Ended reports whether the run is finished, and Succeeded whether it has an analysis.
	Ended, Succeeded bool
	// Cancelled reports whether cancellation was requested, and Deleting whether it has a deletion timestamp.
	Cancelled, Deleting bool
}

// ReadsRevisions reports whether a schedule uses recorded revisions, as a source or to locate changes.
func ReadsRevisions(s *assayv1alpha1.BenchmarkSchedule) bool {
	return s.Spec.Source.Type == assayv1alpha1.RevisionSource || s.Spec.OnChange != nil && s.Spec.OnChange.Locate != nil
}

// Recorded is a BenchmarkRevision.
type Recorded struct {
	Version
	assayv1alpha1.Revision
	// CreatedAt is the creation timestamp, and ReportedAt the time of the report, if set.
	CreatedAt, ReportedAt time.Time
	// Sequence is the number of the run that measured or skipped it; 0 if pending.
	Sequence int64
}

// inOrder is the order in which revisions were recorded.
func inOrder(a, b Recorded) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ReportedAt.Compare(b.ReportedAt), cmp.Compare(a.Name, b.Name))
}

// Past is the state of a series in the history, from which a recreated schedule continues.
type Past struct {
	// Sequence is the highest number in use.
	Sequence int64
	// Anchor is the anchor of the newest point, and Predecessor the revision of the newest point; nil without one or if its image is
	// unknown.
	Anchor, Predecessor *assayv1alpha1.Revision
}

// Image is the response of a registry.
type Image struct {
	assayv1alpha1.Revision
	// Vanished is the reason if the image does not exist; Problem is the reason if that is unknown.
	Vanished, Problem string
}

// Confirmation is the confirming run of a suspicion.
type Confirmation struct {
	Change string
	Arms   []assayv1alpha1.ScheduledArm
}

// Search is the next step of the search for the culprits of a change: a wave, or, without arms, its start or end.
type Search struct {
	Change string
	// Wave is the number of the wave, from 1.
	Wave, Blocks int32
	Arms         []assayv1alpha1.ScheduledArm
}

// Recorded returns the recorded revisions, in order.
func (o *Observed) Recorded() []Recorded { return o.revisions(func(Recorded) bool { return true }) }

// pending returns the recorded revisions that were neither measured nor skipped, oldest first.
func (o *Observed) pending() []Recorded {
	return o.revisions(func(r Recorded) bool { return r.Sequence == 0 })
}

func (o *Observed) revisions(wanted func(Recorded) bool) []Recorded {
	out := slices.DeleteFunc(slices.Clone(o.Revisions), func(r Recorded) bool { return !wanted(r) })
	slices.SortFunc(out, inOrder)
	return out
}

func (o *Observed) run(sequence int64) *Run {
	i := slices.IndexFunc(o.Runs, func(r Run) bool { return r.Sequence == sequence })
	if i < 0 {
		return nil
	}
	return &o.Runs[i]
}
