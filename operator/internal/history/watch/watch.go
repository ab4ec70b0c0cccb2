// Package watch is the policy for monitoring a series. After every point it returns suspicions and due confirming runs, and it evaluates
// confirming runs. The rehearsals measure its error rates.
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

// Policy configures the monitoring of a schedule's series.
type Policy struct {
	Online       detect.Online
	Offline      detect.Offline
	Confirmation change.Confirmation
	// Sides is the maximum number of revisions that a confirming run takes from each side of a change.
	Sides int
}

// Default gives less than one false alert in a hundred years of nightly runs: one false suspicion in a hundred nights, and one in a
// thousand of these confirmed. The variance between builds is estimated, so the rate is verified by the rehearsals.
func Default() Policy {
	const runLength = 100
	confirmation := change.Confirmation{Alpha: 0.001, Runs: 4, Searched: runLength}
	return Policy{detect.Online{RunLength: runLength}, detect.Offline{Alpha: 0.01}, confirmation, 6}
}

// Unpaired judges the newest of the points of a series of bare values. No run can confirm a suspicion there, and the drift and the spikes
// of the machine are in the points, so a suspicion is the newest dated change, which persists. Only changes at or after index from count.
func (p Policy) Unpaired(points []detect.Observation, from int) detect.Suspicion {
	dated := p.Offline.Changes(points)
	if len(dated) == 0 || dated[len(dated)-1].At < from {
		return detect.Suspicion{From: -1, First: -1, To: -1}
	}
	last := dated[len(dated)-1]
	return detect.Suspicion{Raised: true, From: last.From, First: last.At, To: last.To, Shift: last.Shift}
}

// Dates returns the changes that the offline detector finds in a segment.
func Dates(segment *series.Segment) []detect.Dated {
	var observations []detect.Observation
	for i := range segment.Points {
		ratio := &segment.Points[i].Ratio
		observations = append(observations, detect.Observation{Y: ratio.LogRatio, SE: ratio.SE, DF: ratio.DF})
	}
	return Default().Offline.Changes(observations)
}

// ConfirmingBlocks is the number of blocks of a confirming run.
const ConfirmingBlocks = 20

// view is the part of a series that the detector reads.
type view struct {
	points       []series.Point
	observations []detect.Observation
	// from is the index of the first candidate change point.
	from int
}

// viewOf omits points before the newest established change, and restricts the search to points after a refuted one. Changes are those of
// the series.
func viewOf(s *series.Series, changes []*change.Change) view {
	segment := s.Current()
	if segment == nil || segment.Unpaired { // No run can confirm a suspicion there.
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

// Look evaluates the newest point of a series, and adds any suspicion to the book. It is idempotent. worse reports whether a shift is a
// regression.
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
		return fade(book, s.Key, nil, "the shift is no longer significant with newer points", at)
	}
	sighting := change.Sighting{
		Project: s.Key.Project, From: v.points[found.From].Sequence, First: v.points[found.First].Sequence,
		To: v.points[found.To].Sequence, Newest: v.points[len(v.points)-1].Sequence,
		Effect: change.Effect{Series: s.Key.ID(), LogRatio: found.Shift, SE: shiftError(v.observations, found.First), Worse: worse(found.Shift)},
	}
	seen := book.See([]change.Sighting{sighting}, at)
	return fade(seen, s.Key, &sighting, "newer points date the shift at another run", at)
}

// fade removes a series from suspicions that it no longer supports, because a detector suspects one change at a time. The number of tried
// runs carries over to the suspicion that replaces them.
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

// of reports whether a sighting belongs to a change.
func of(c *change.Change, s *change.Sighting) bool {
	return s != nil && c.Project == s.Project && s.From <= c.To && s.To >= c.From &&
		slices.ContainsFunc(c.Effects, func(e change.Effect) bool { return e == s.Effect })
}

// shiftError returns the standard error of the difference between the levels before and from a point.
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

// Confirm is a due confirming run: old revisions against new ones in fresh blocks, with the anchor of the series.
type Confirm struct {
	Change string `json:"change"`
	// Number of the run for this suspicion, from 1.
	Number int `json:"number"`
	// Series of the suspicion.
	Series []Suspected `json:"series"`
	// Old and New are in the order of their points; the last of New is the newest revision.
	Old    []points.Revision `json:"old"`
	New    []points.Revision `json:"new"`
	Anchor string            `json:"anchor"`
	// From, First and To date the change with the present data.
	From  int64 `json:"from"`
	First int64 `json:"first"`
	To    int64 `json:"to"`
	// Newest is the point that the run remeasures.
	Newest series.Point `json:"newest"`
}

// Suspected is a series and its suspected shift.
type Suspected struct {
	Key   series.Key `json:"key"`
	Shift float64    `json:"shift"`
	Worse bool       `json:"worse"`
	// Between is the variance between its points.
	Between float64 `json:"between"`
}

// Due returns the confirming runs that can start now. A suspicion that waits for more new revisions has none. Only the series in all are
// considered.
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
		// If the change may be at the first point, that point is the old side.
		out.Old = p.sides(shown.points[:1], func(int64) bool { return true }, nil)
	}
	out.New = p.sides(shown.points, func(n int64) bool { return n >= out.To }, out.Old)
	last := points.RevisionOf(out.Newest)
	if len(out.New) < p.Confirmation.Wants(out.Number, p.Sides) || out.New[len(out.New)-1] != last {
		return nil
	}
	return out
}

// sides returns the newest distinct revisions of the points in a range, without those of the other side.
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

// BetweenBuilds returns the variance between builds for a confirming run: the smaller of the estimate from the points of the series and
// the spread of revisions of the same side within the run. Points also include differences between nights, and few points estimate poorly,
// whereas the blocks of one run contain only differences between builds. The second estimate has a stricter error level, because a
// suspicion uses several runs.
func BetweenBuilds(points float64, run detect.Spread) float64 {
	const aside = 0.02
	return min(points, run.BetweenAtMost(aside))
}

// Measurement is the result of a confirming run for a series: the new revisions over the old ones, and the spread within each side.
type Measurement struct {
	series.Estimate
	WithinSides detect.Spread
}

// Measured returns the results of a confirming run by series ID, given its arms over and under, and the reasons for missing ones.
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
				// A single arm has no spread, and if an arm cannot be compared with its side, the spread of that side is unknown.
				about, err := points.DifferenceWithinSide(exp, found, suspected.Key, []string{arm}, arms)
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

// Judge returns the book after a confirming run, and the outcome: Holds if it holds for one series, Refuted if it is refuted for all.
// measured is new over old by series ID; the error level is divided among these series (Dunn 1961).
func (p Policy) Judge(c *Confirm, measured map[string]Measurement, who string, book change.Book, at time.Time) (
	change.Book, change.Outcome, error) {
	which := slices.IndexFunc(book.Changes, func(x change.Change) bool { return x.ID == c.Change })
	if which < 0 {
		return book, "", fmt.Errorf("change %q: the book has no such change; it was removed", c.Change)
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
		between := BetweenBuilds(suspected.Between, estimate.WithinSides)
		one := judge.Judge(suspected.Shift, change.Measured{
			LogRatio: estimate.LogRatio, SE: estimate.SE, DF: estimate.DF, Between: between, Old: len(c.Old), New: len(c.New),
		}, c.Number)
		outcome = strongest(outcome, one)
		if one == change.Holds {
			effects = append(effects, change.Effect{
				Series: suspected.Key.ID(), LogRatio: estimate.LogRatio, SE: estimate.SE, Between: between, Worse: suspected.Worse,
			})
		}
		why += fmt.Sprintf("; %s: new over old %s with a standard error of %s in %d blocks; builds differ by at most %s", suspected.Key,
			quantity.Plain(math.Exp(estimate.LogRatio), 4), quantity.Percent(estimate.SE, 2), estimate.Blocks,
			quantity.Percent(math.Sqrt(between), 2))
	}
	if why == "" {
		return book, "", errors.New("the confirming run measured no series of the suspicion; run it again")
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

// strongest combines two outcomes: Holds wins over Undecided, and Undecided over Refuted.
func strongest(a, b change.Outcome) change.Outcome {
	rank := map[change.Outcome]int{change.Refuted: 0, change.Undecided: 1, change.Holds: 2}
	if rank[a] >= rank[b] {
		return a
	}
	return b
}

// Referenced returns the IDs of the records that the changes of a series refer to: the points on both sides of each.
func (p Policy) Referenced(key series.Key, records []series.Record, book change.Book) map[string]bool {
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
