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

// Bounded is a search that nobody watches: what it may cost is a part of it, and so is what became of every run of it. It is the same
// after something was added to it twice.
type Bounded struct {
	Search Search `json:"search"`
	Bounds Bounds `json:"bounds"`
	// Began is when it was opened.
	Began time.Time `json:"began"`
	// Lost are the runs that measured nothing.
	Lost []Lost `json:"lost,omitempty"`
	// Gone are the revisions that no node could get, with the reasons.
	Gone map[string]string `json:"gone,omitempty"`
	// Stopped is why it ended before it was through; empty where it was.
	Stopped string `json:"stopped,omitempty"`
	// Answer is what it found, once people were told.
	Answer *Answer `json:"answer,omitempty"`
}

// Bounds are what a search may cost.
type Bounds struct {
	Waves int `json:"waves"`
	// Runs is how many there may be in all, those included that measured nothing.
	Runs int `json:"runs"`
	// Within is how long after its beginning it starts runs.
	Within time.Duration `json:"within"`
}

// Lost is a run that measured nothing.
type Lost struct {
	// Sequence is its number among the runs of its schedule.
	Sequence int64  `json:"sequence"`
	Why      string `json:"why"`
}

// Open begins the search for the culprits of a change that was confirmed: one wave where its sides are neighbours, since what confirmed it
// may have measured later revisions. A search that cannot be made is stopped from its beginning and says why. It is nil where the series
// has no points on both sides of the change, because they may come. Recorded are revisions in the order in which they were made.
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
			err = fmt.Errorf("image of revision %s: found %q, which cannot be measured again: name one by its digest", r.Revision, r.Image)
		}
	}
	if err = cmp.Or(err, out.Search.Check()); err != nil {
		out.Stop(err.Error())
	}
	return out
}

// between are the revisions from one end to the other: those that were recorded where they have both ends in their order, else those that
// the series has points of. Each is there once.
func (e *Ends) between(recorded []points.Revision) []points.Revision {
	at := func(of points.Revision) int {
		return slices.IndexFunc(recorded, func(r points.Revision) bool { return r.Revision == of.Revision })
	}
	inside := e.Inside
	if good, bad := at(e.Good), at(e.Bad); good >= 0 && bad > good {
		inside = recorded[good+1 : bad]
	}
	// The ends are what was measured: a revision that was recorded again may have another image.
	out, seen := []points.Revision{e.Good}, map[string]bool{e.Good.Revision: true, e.Bad.Revision: true}
	for _, r := range inside {
		if !seen[r.Revision] && assayv1alpha1.Revision(r).WellFormed() {
			seen[r.Revision] = true
			out = append(out, r)
		}
	}
	return append(out, e.Bad)
}

// allow has the search end in time for the runs that are left: each one that was lost is a wave less where there are few.
func (b *Bounded) allow() {
	b.Search.Question.Waves = min(b.Bounds.Waves, b.Bounds.Runs-len(b.Lost))
}

// Number is that of the wave that comes next, from 1.
func (b *Bounded) Number() int { return len(b.Search.Done) + 1 }

// Late is why no run starts any more at a moment; empty where one may.
func (b *Bounded) Late(now time.Time) string {
	if now.Sub(b.Began) <= b.Bounds.Within {
		return ""
	}
	return fmt.Sprintf("it began at %s and was allowed %s", b.Began.UTC().Format(time.RFC3339), b.Bounds.Within)
}

// Stop ends the search with what it has found.
func (b *Bounded) Stop(why string) {
	if b.Search.Next().Wave != nil {
		b.Stopped, b.Search.Question.Waves = why, len(b.Search.Done)
	}
}

// Measured adds what a run measured of the wave that comes next. Of the revisions of the wave it had those whose arms are named.
func (b *Bounded) Measured(arms []string, exp *experiment.Experiment, found *analysis.Analysis, ledger string) error {
	wave := b.Search.Next().Wave
	if wave == nil {
		return errors.New("the search has ended, and waits for no run")
	}
	failed := map[int]string{}
	for _, r := range wave.Revisions {
		if !slices.Contains(arms, Arm(r)) {
			failed[r] = cmp.Or(b.Gone[b.Search.Revisions[r].Revision], "its image is gone")
		}
	}
	return b.Search.Add(Ran{Wave: wave, Failed: failed, Experiment: exp, Analysis: found, Ledger: ledger})
}

// Lose counts a run that measured nothing.
func (b *Bounded) Lose(sequence int64, why string) {
	if b.Stopped != "" || slices.ContainsFunc(b.Lost, func(l Lost) bool { return l.Sequence == sequence }) {
		return
	}
	b.Lost = append(b.Lost, Lost{sequence, why})
	b.allow()
}

// PassOver leaves a revision out of the waves to come. Without an end of its history a search is over, so that an end stays, and is asked
// for again.
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

// Result is the answer of a search that has ended, and why there is no more of it.
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
			out.Why = fmt.Sprintf("%d runs were allowed, and %d of them measured nothing: the last one because: %s", b.Bounds.Runs, len(b.Lost),
				b.Lost[len(b.Lost)-1].Why)
		}
	}
	return out, nil
}
