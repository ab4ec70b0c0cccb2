// Package watch is the policy by which a series is followed: after every point it reports what is suspected, which confirming run is due,
// and what such a run decided. The rehearsals count how often it is wrong.
package watch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/detect"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/quantity"
)

// Policy is how a schedule watches its series.
type Policy struct {
	Online       detect.Online
	Offline      detect.Offline
	Confirmation change.Confirmation
	// Sides is how many revisions a confirming run takes from each side of a change, where there are as many.
	Sides int
}

// Default promises less than one false alert in a hundred years of nights: a suspicion in a hundred nights by accident, and one in a
// thousand of these confirmed. What differs between builds is estimated, so that the rehearsals have to show it.
func Default() Policy {
	const runLength = 100
	confirmation := change.Confirmation{Alpha: 0.001, Runs: 4, Searched: runLength}
	return Policy{detect.Online{RunLength: runLength}, detect.Offline{Alpha: 0.01}, confirmation, 6}
}

// ConfirmingBlocks is how many blocks a confirming run has.
const ConfirmingBlocks = 20

// view is a series as the detector is to see it.
type view struct {
	points       []series.Point
	observations []detect.Observation
	// from is the index of the first point at which a change is looked for.
	from int
}

// viewOf leaves out what lies before the newest change that is known; only a change after what was refuted is looked for. Changes are those
// that concern the series.
func viewOf(s *series.Series, changes []*change.Change) view {
	segment := s.Current()
	if segment == nil {
		return view{}
	}
	begin, after := int64(math.MinInt64), int64(math.MinInt64)
	for _, c := range changes {
		if c.Project != s.Key.Project {
			continue
		}
		if c.Known() {
			begin = max(begin, c.First)
		} else if c.Refuted > 0 {
			after = max(after, c.Refuted)
		}
	}
	out := view{}
	for _, p := range segment.Points {
		if p.Sequence < begin {
			continue
		}
		if p.Sequence <= after {
			out.from++
		}
		out.points = append(out.points, p)
		out.observations = append(out.observations, detect.Observation{Y: p.Ratio.LogRatio, SE: p.Ratio.SE, DF: p.Ratio.DF})
	}
	return out
}

// Look reports what the newest point of a series gives reason for, and adds it to the book. Looking twice changes nothing. Worse reports of
// a move whether it is for the worse.
func (p Policy) Look(s *series.Series, worse func(logRatio float64) bool, book change.Book, at time.Time) (change.Book, error) {
	var changes []*change.Change
	for i := range book.Changes {
		if c := &book.Changes[i]; c.Concerns(s.Key.ID()) {
			changes = append(changes, c)
		}
	}
	v := viewOf(s, changes)
	if len(v.points) == 0 {
		return book, nil
	}
	found := p.Online.Newest(v.observations, v.from)
	if !found.Raised {
		return fade(book, s.Key, nil, "with newer points the level has not moved", at)
	}
	sighting := change.Sighting{
		Project: s.Key.Project, From: v.points[found.From].Sequence, First: v.points[found.First].Sequence,
		To: v.points[found.To].Sequence, Newest: v.points[len(v.points)-1].Sequence,
		Effect: change.Effect{Series: s.Key.ID(), LogRatio: found.Shift, SE: shiftError(v.observations, found.First), Worse: worse(found.Shift)},
	}
	seen := book.See([]change.Sighting{sighting}, at)
	return fade(seen, s.Key, &sighting, "with newer points the level moved at another run", at)
}

// fade takes a series out of the suspicions that it gives no reason for any more: a detector suspects one change at a time. What was tried
// counts for the suspicion that takes their place.
func fade(book change.Book, key series.Key, except *change.Sighting, why string, at time.Time) (change.Book, error) {
	runs, tried := 0, int64(0)
	for _, c := range slices.Clone(book.Changes) {
		if c.Project != key.Project || c.State != change.Suspected || !c.Concerns(key.ID()) || of(&c, except) {
			continue
		}
		runs, tried = max(runs, c.Runs), max(tried, c.Tried)
		faded, err := c.Fade(key.ID(), why, at)
		if err != nil {
			return book, err
		}
		book = book.Replace(faded)
	}
	for _, c := range book.Changes {
		if runs > c.Runs && c.State == change.Suspected && of(&c, except) {
			c.Runs, c.Tried = runs, tried
			book = book.Replace(c)
		}
	}
	return book, nil
}

// of reports whether a sighting is of a change.
func of(c *change.Change, s *change.Sighting) bool {
	return s != nil && c.Project == s.Project && s.From <= c.To && s.To >= c.From &&
		slices.ContainsFunc(c.Effects, func(e change.Effect) bool { return e == s.Effect })
}

// shiftError is the standard error of the difference between the levels before a point and from it on.
func shiftError(points []detect.Observation, first int) float64 {
	noise := detect.NoiseOf(points)
	var before, after float64
	for i := range points {
		weight := 1 / max(noise.Variance(i), 1e-18)
		if i < first {
			before += weight
		} else {
			after += weight
		}
	}
	return math.Sqrt(1/before + 1/after)
}

// Confirm is a confirming run that is due: old revisions against new ones on fresh blocks, with the anchor of the series.
type Confirm struct {
	Change string `json:"change"`
	// Number of the run among those of the suspicion, from 1.
	Number int `json:"number"`
	// Series that the suspicion is of.
	Series []Suspected `json:"series"`
	// Old and New are in the order of their points; the last of New is the newest revision.
	Old    []points.Revision `json:"old"`
	New    []points.Revision `json:"new"`
	Anchor string            `json:"anchor"`
	// From, First and To date the change, as far as is known now.
	From  int64 `json:"from"`
	First int64 `json:"first"`
	To    int64 `json:"to"`
	// Newest is the point that the run measures anew.
	Newest series.Point `json:"newest"`
}

// Suspected is a series and what is suspected of it.
type Suspected struct {
	Key   series.Key `json:"key"`
	Shift float64    `json:"shift"`
	Worse bool       `json:"worse"`
	// Between is the variance between its points.
	Between float64 `json:"between"`
}

// Due are the confirming runs of suspicions that can be made now: where a suspicion waits for more new revisions there is none. Of the
// series only those in all are known.
func (p Policy) Due(all []*series.Series, book change.Book) []Confirm {
	var out []Confirm
	concerning := map[string][]*change.Change{}
	for i := range book.Changes {
		for _, e := range book.Changes[i].Effects {
			concerning[e.Series] = append(concerning[e.Series], &book.Changes[i])
		}
	}
	for i := range book.Changes {
		if c := &book.Changes[i]; c.State == change.Suspected {
			if confirm := p.due(all, concerning, c); confirm != nil {
				out = append(out, *confirm)
			}
		}
	}
	return out
}

func (p Policy) due(all []*series.Series, concerning map[string][]*change.Change, c *change.Change) *Confirm {
	out := &Confirm{Change: c.ID, Number: c.Runs + 1}
	worse := map[string]bool{}
	for _, e := range c.Effects {
		worse[e.Series] = e.Worse
	}
	var shown view
	out.From, out.To = math.MaxInt64, math.MinInt64
	for _, s := range all {
		isWorse, ours := worse[s.Key.ID()]
		if s.Key.Project != c.Project || !ours {
			continue
		}
		v := viewOf(s, concerning[s.Key.ID()])
		found := p.Online.Newest(v.observations, v.from)
		if !found.Raised {
			continue
		}
		out.Series = append(out.Series, Suspected{s.Key, found.Shift, isWorse, detect.BetweenAtMost(v.observations)})
		out.From, out.To = min(out.From, v.points[found.From].Sequence), max(out.To, v.points[found.To].Sequence)
		if len(v.points) > len(shown.points) {
			shown, out.Anchor, out.First = v, s.Anchor, v.points[found.First].Sequence
		}
	}
	if len(out.Series) == 0 {
		return nil
	}
	if out.Newest = shown.points[len(shown.points)-1]; out.Newest.Sequence <= c.Tried {
		return nil
	}
	out.Old = p.sides(shown.points, func(n int64) bool { return n < out.From }, nil)
	if len(out.Old) == 0 {
		// A change that may lie at the very first point has that one before it.
		out.Old = p.sides(shown.points[:1], func(int64) bool { return true }, nil)
	}
	out.New = p.sides(shown.points, func(n int64) bool { return n >= out.To }, out.Old)
	last := points.RevisionOf(out.Newest)
	if len(out.New) < p.Confirmation.Wants(out.Number, p.Sides) || out.New[len(out.New)-1] != last {
		return nil
	}
	return out
}

// sides are the newest revisions of the points in a range, each once, without those of the other side.
func (p Policy) sides(all []series.Point, in func(number int64) bool, not []points.Revision) []points.Revision {
	var out []points.Revision
	for _, point := range slices.Backward(all) {
		side := points.RevisionOf(point)
		if len(out) < p.Sides && in(point.Sequence) && !slices.Contains(out, side) && !slices.Contains(not, side) {
			out = append(out, side)
		}
	}
	slices.Reverse(out)
	return out
}

// BetweenBuilds is the variance between builds that a confirming run is judged with: the smaller of what the points of the series say, and
// what the revisions of the same side differ by in the run itself. Points also differ by the nights that they were measured in, and few of
// them say little; in the blocks of one run nothing but the builds is left. A suspicion asks several runs, so that one of them may be wrong
// less often than the points.
func BetweenBuilds(points float64, run detect.Spread) float64 {
	const aside = 0.02
	return min(points, run.BetweenAtMost(aside))
}

// Measurement is what a confirming run says of a series: the new revisions over the old ones, and how far apart those of one side are.
type Measurement struct {
	series.Estimate
	Apart detect.Spread
}

// Measured is what the arms over and under of a confirming run found of its series, by the identity of these, and why there is nothing of
// the others.
func (c *Confirm) Measured(exp *experiment.Experiment, found *analysis.Analysis, over, under []string) (map[string]Measurement, error) {
	out, errs := map[string]Measurement{}, []error(nil)
	part := points.ByPoint(found)
	for _, suspected := range c.Series {
		found := part(suspected.Key.Point)
		estimate, err := points.Difference(exp, found, suspected.Key, over, under)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var sides [][]detect.Observation
		for _, arms := range [][]string{over, under} {
			var side []detect.Observation
			for _, arm := range arms {
				// Of a single arm there is nothing, and of one that cannot be set against its side the whole side says nothing.
				about, err := points.Apart(exp, found, suspected.Key, []string{arm}, arms)
				if err != nil {
					side = nil
					break
				}
				side = append(side, detect.Observation{Y: about.LogRatio, SE: about.SE, DF: about.DF})
			}
			sides = append(sides, side)
		}
		out[suspected.Key.ID()] = Measurement{estimate, detect.Sides(sides...)}
	}
	return out, errors.Join(errs...)
}

// Judge is the book after a confirming run, and what it decided: the difference holds if it does for one of the series, and is refuted if
// it is for all. Measured are new over old, by the identity of the series; the promise is shared among those (Dunn 1961).
func (p Policy) Judge(c *Confirm, measured map[string]Measurement, who string, book change.Book, at time.Time) (
	change.Book, change.Outcome, error) {
	which := slices.IndexFunc(book.Changes, func(x change.Change) bool { return x.ID == c.Change })
	if which < 0 {
		return book, "", fmt.Errorf("change %q: the book has none of that name: somebody removed it", c.Change)
	}
	judge := p.Confirmation
	judge.Alpha /= float64(len(c.Series))
	var effects []change.Effect
	outcome, why := change.Refuted, ""
	for _, suspected := range c.Series {
		estimate, ok := measured[suspected.Key.ID()]
		if !ok {
			outcome = strongest(outcome, change.Undecided)
			continue
		}
		between := BetweenBuilds(suspected.Between, estimate.Apart)
		one := judge.Judge(suspected.Shift, change.Measured{
			LogRatio: estimate.LogRatio, SE: estimate.SE, DF: estimate.DF, Between: between, Old: len(c.Old), New: len(c.New),
		}, c.Number)
		outcome = strongest(outcome, one)
		if one == change.Holds {
			effects = append(effects, change.Effect{
				Series: suspected.Key.ID(), LogRatio: estimate.LogRatio, SE: estimate.SE, Between: between, Worse: suspected.Worse,
			})
		}
		why += fmt.Sprintf("; %s: new over old %s with a standard error of %s in %d blocks, where builds differ by at most %s", suspected.Key,
			quantity.Plain(math.Exp(estimate.LogRatio), 4), quantity.Percent(estimate.SE, 2), estimate.Blocks,
			quantity.Percent(math.Sqrt(between), 2))
	}
	if why == "" {
		return book, "", errors.New("the confirming run measured none of the series that the suspicion is of: run it again")
	}
	judged, err := book.Changes[which].Judged(outcome, effects, c.Newest.Sequence, change.Event{At: at, Who: who, Why: why[2:]})
	if err != nil {
		return book, "", err
	}
	if outcome == change.Holds {
		judged.From, judged.First, judged.To = c.From, c.First, c.To
	}
	return book.Replace(judged), outcome, nil
}

// strongest of two outcomes: what holds somewhere holds, and what is undecided somewhere is not refuted.
func strongest(a, b change.Outcome) change.Outcome {
	rank := map[change.Outcome]int{change.Refuted: 0, change.Undecided: 1, change.Holds: 2}
	if rank[a] >= rank[b] {
		return a
	}
	return b
}

// Rests are the identities of the records that the changes of a series rest on: the points on both sides of each.
func (p Policy) Rests(key series.Key, records []series.Record, book change.Book) map[string]bool {
	var measured []series.Record
	for _, r := range series.Merge(records, nil) {
		if r.Kind == series.Measured {
			measured = append(measured, r)
		}
	}
	out := map[string]bool{}
	for i := range book.Changes {
		c := &book.Changes[i]
		if c.Project != key.Project || !c.Concerns(key.ID()) {
			continue
		}
		from := sort.Search(len(measured), func(i int) bool { return measured[i].Sequence >= c.From })
		to := sort.Search(len(measured), func(i int) bool { return measured[i].Sequence > c.To })
		for _, r := range measured[max(0, from-p.Sides):min(len(measured), to+p.Sides)] {
			out[r.ID] = true
		}
	}
	return out
}
