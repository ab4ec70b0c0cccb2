package schedule

import (
	"cmp"
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Observed is what is known at one moment. The fields that Needs names are filled in only when a decision asks for them.
type Observed struct {
	Schedule *assayv1alpha1.BenchmarkSchedule
	// History is where the history of the namespace lies.
	History string
	// Rival is an older schedule of the same series; empty where there is none.
	Rival string
	// Runs are those that the schedule owns, as the API server has them: what was created a moment ago is among them.
	Runs []Run
	// Revisions are those that were recorded of the series.
	Revisions []Recorded

	// Past is what the history knows of the series.
	Past *Past
	// Image is what the source's reference names.
	Image *Image
	// Confirmation is the confirming run that is due; one without a change is none.
	Confirmation *Confirmation
	// Search is what the search for the culprits of a change waits for; one without a change is none.
	Search *Search
}

// Needs is what a decision cannot be made without.
type Needs string

// Needs.
const (
	NeedsNothing      Needs = ""
	NeedsPast         Needs = "Past"
	NeedsImage        Needs = "Image"
	NeedsConfirmation Needs = "Confirmation"
	NeedsSearch       Needs = "Search"
)

// Version is an object as it was read. What was decided on one is written to no other.
type Version struct{ Name, UID, ResourceVersion string }

// Run is a run of the schedule.
type Run struct {
	Version
	Sequence int64
	// Ended reports whether it will change no more, and Succeeded whether it ended with an analysis.
	Ended, Succeeded bool
	// Cancelled reports whether it was asked to end, and Deleting whether it was deleted.
	Cancelled, Deleting bool
}

// ReadsRevisions reports whether a schedule looks at recorded revisions: to measure them, or for those between the sides of a change.
func ReadsRevisions(s *assayv1alpha1.BenchmarkSchedule) bool {
	return s.Spec.Source.Type == assayv1alpha1.RevisionSource || s.Spec.OnChange != nil && s.Spec.OnChange.Locate != nil
}

// Recorded is a BenchmarkRevision.
type Recorded struct {
	Version
	assayv1alpha1.Revision
	// CreatedAt is when the API server was given it, to the second, and ReportedAt when it was reported, if that was said.
	CreatedAt, ReportedAt time.Time
	// Sequence is the number of the run that measured it or passed it over; 0 until then.
	Sequence int64
}

// inOrder is the order in which revisions were recorded.
func inOrder(a, b Recorded) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ReportedAt.Compare(b.ReportedAt), cmp.Compare(a.Name, b.Name))
}

// Past is what the history knows of a series: what a schedule that was created anew goes on from.
type Past struct {
	// Sequence is the highest number there is.
	Sequence int64
	// Anchor is what the newest point was compared with, and Predecessor the revision of the newest point; nil where there is none, or
	// where its image is not known.
	Anchor, Predecessor *assayv1alpha1.Revision
}

// Image is what a registry answered.
type Image struct {
	assayv1alpha1.Revision
	// Vanished is why there is no such image; Problem is why nothing is known of it.
	Vanished, Problem string
}

// Confirmation is a confirming run that a suspicion asks for.
type Confirmation struct {
	Change string
	Arms   []assayv1alpha1.ScheduledArm
}

// Search is what the search for the culprits of a change waits for: a wave, or, without arms, to be begun or ended.
type Search struct {
	Change string
	// Wave is the number of the wave, from 1.
	Wave, Blocks int32
	Arms         []assayv1alpha1.ScheduledArm
}

// Recorded are the recorded revisions, in their order.
func (o *Observed) Recorded() []Recorded { return o.revisions(func(Recorded) bool { return true }) }

// pending are the recorded revisions that were neither measured nor passed over, the oldest first.
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
