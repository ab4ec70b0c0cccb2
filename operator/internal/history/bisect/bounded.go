package bisect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
)

// Bounded is an unattended search with its budget and the outcomes of its runs. Adding an outcome is idempotent.
type Bounded struct {
	Search Search `json:"search"`
	Bounds Bounds `json:"bounds"`
	// Began is the start time.
	Began time.Time `json:"began"`
	// Lost lists the runs without a result.
	Lost []Lost `json:"lost,omitempty"`
	// Gone maps revisions whose images could not be pulled to the reasons.
	Gone map[string]string `json:"gone,omitempty"`
	// Stopped is the reason for ending early; empty otherwise.
	Stopped string `json:"stopped,omitempty"`
	// Answer is set after notification.
	Answer *Answer `json:"answer,omitempty"`
}

// Bounds is the budget of a search.
type Bounds struct {
	Waves int `json:"waves"`
	// Runs is the maximum number of runs, failed ones included.
	Runs int `json:"runs"`
	// Within is the period after Began in which runs may start.
	Within time.Duration `json:"within"`
}

// Lost is a run without a result.
type Lost struct {
	// Sequence is the run's number in its schedule.
	Sequence int64  `json:"sequence"`
	Why      string `json:"why"`
}

// Open starts the search for the culprits of a confirmed change. Even if both sides are neighbours, one wave is measured, because the
// confirming run may have used later revisions. A search that is impossible is returned stopped, with the reason. Open returns nil if the
// series has no points on both sides of the change, because they may follow. Recorded lists revisions in the order of their creation.
func Open(c *change.Change, all []*series.Series, recorded []points.Revision, bounds Bounds, now time.Time) *Bounded {
	ends, err := EndsOf(c, all)
	if err != nil {
		return nil
	}
	revisions := ends.between(recorded)
	out := &Bounded{
		Search: Search{Key: ends.Key, Revisions: revisions, Question: ends.Question(len(revisions)), Change: c.ID},
		Bounds: bounds, Began: now,
	}
	out.allow()
	err = ends.Same()
	for _, r := range []points.Revision{ends.Good, ends.Bad} {
		if err == nil && !assayv1alpha1.Revision(r).WellFormed() {
			err = fmt.Errorf("image of revision %s: found %q; only an image with a digest can be measured again", r.Revision, r.Image)
		}
	}
	if err = cmp.Or(err, out.Search.Check()); err != nil {
		out.Stop(err.Error())
	}
	return out
}

// between returns the revisions from one end to the other without duplicates. They are taken from the recorded ones if these contain both
// ends in order, otherwise from the points of the series.
func (e *Ends) between(recorded []points.Revision) []points.Revision {
	at := func(of points.Revision) int {
		return slices.IndexFunc(recorded, func(r points.Revision) bool { return r.Revision == of.Revision })
	}
	inside := e.Inside
	if good, bad := at(e.Good), at(e.Bad); good >= 0 && bad > good {
		inside = recorded[good+1 : bad]
	}
	// Use the measured ends, because a revision that was recorded again may have another image.
	out, seen := []points.Revision{e.Good}, map[string]bool{e.Good.Revision: true, e.Bad.Revision: true}
	for _, r := range inside {
		if !seen[r.Revision] && assayv1alpha1.Revision(r).WellFormed() {
			seen[r.Revision] = true
			out = append(out, r)
		}
	}
	return append(out, e.Bad)
}

// allow limits the remaining waves to the remaining runs, since each lost run uses up one.
func (b *Bounded) allow() {
	b.Search.Question.Waves = min(b.Bounds.Waves, b.Bounds.Runs-len(b.Lost))
}

// Number returns the number of the next wave, from 1.
func (b *Bounded) Number() int { return len(b.Search.Done) + 1 }

// Late returns why no further run may start at the given time, or "".
func (b *Bounded) Late(now time.Time) string {
	if now.Sub(b.Began) <= b.Bounds.Within {
		return ""
	}
	return fmt.Sprintf("its time limit has passed (started %s, allowed %s)", b.Began.UTC().Format(time.RFC3339), b.Bounds.Within)
}

// Stop ends the search with its present result.
func (b *Bounded) Stop(why string) {
	if b.Search.Next().Wave != nil {
		b.Stopped, b.Search.Question.Waves = why, len(b.Search.Done)
	}
}

// Measured records the run of the next wave. arms names the arms that the run had.
func (b *Bounded) Measured(arms []string, exp *experiment.Experiment, found *analysis.Analysis, ledger string) error {
	wave := b.Search.Next().Wave
	if wave == nil {
		return errors.New("the search has ended and expects no run")
	}
	failed := map[int]string{}
	for _, r := range wave.Revisions {
		if !slices.Contains(arms, Arm(r)) {
			failed[r] = cmp.Or(b.Gone[b.Search.Revisions[r].Revision], "its image was deleted")
		}
	}
	return b.Search.Add(Ran{Wave: wave, Failed: failed, Experiment: exp, Analysis: found, Ledger: ledger})
}

// Lose records a run without a result.
func (b *Bounded) Lose(sequence int64, why string) {
	if b.Stopped != "" || slices.ContainsFunc(b.Lost, func(l Lost) bool { return l.Sequence == sequence }) {
		return
	}
	b.Lost = append(b.Lost, Lost{sequence, why})
	b.allow()
}

// PassOver excludes a revision from later waves. An end of the history is not excluded, because the search requires both; it is requested
// again.
func (b *Bounded) PassOver(revision, why string) {
	ends := []string{b.Search.Revisions[0].Revision, b.Search.Revisions[len(b.Search.Revisions)-1].Revision}
	if slices.Contains(ends, revision) {
		return
	}
	if b.Gone == nil {
		b.Gone = map[string]string{}
	}
	b.Gone[revision] = why
}

// Result returns the answer of a completed search, with the reason why it is incomplete.
func (b *Bounded) Result() (*Answer, error) {
	out, err := b.Search.Answer()
	if err != nil {
		return nil, err
	}
	if len(out.Culprits) == 0 {
		switch {
		case b.Stopped != "":
			out.Why = b.Stopped
		case len(b.Lost) > 0 && len(b.Lost)+len(b.Search.Done) >= b.Bounds.Runs:
			out.Why = fmt.Sprintf("the limit of %d runs was reached, and %d of them had no result; reason of the last one: %s",
				b.Bounds.Runs, len(b.Lost),
				b.Lost[len(b.Lost)-1].Why)
		}
	}
	return out, nil
}
