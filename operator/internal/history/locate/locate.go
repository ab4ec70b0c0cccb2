// Package locate finds the revisions at which a program changed, by measuring as few of them as it can. It plans waves and reads their
// results; it starts nothing.
//
// A wave measures many revisions as arms of the same blocks. What it found is the probability of a change in each gap between
// neighbouring arms, over all ways in which levels may lie: a product partition model (Barry, Hartigan 1993, Journal of the American
// Statistical Association 88:309), summed exactly (Fearnhead 2006, Statistics and Computing 16:203). Every gap that may hold a change is
// followed, so that several culprits are found. At the end each is measured with its neighbours on fresh blocks, and only that decides:
// what a wave picked is never its own witness.
package locate

import (
	"fmt"
	"math"
	"slices"
)

// Question is a history in which something changed.
type Question struct {
	// Revisions from the one before the change to one after it, in order.
	Revisions int
	// Arms is how many revisions a wave measures at most, and Blocks how many blocks a wave has where nothing is unclear.
	Arms, Blocks int
	// Between is the variance of revisions that are equally fast: the layout of their builds.
	Between float64
	// Shift is how large the change is, roughly: that which was confirmed.
	Shift float64
	// Certain is the probability that an answer has to have.
	Certain float64
	// Waves is how many there may be.
	Waves int
}

const (
	// fewestArms are both ends and one between.
	fewestArms = 3
	// follow is the probability of a change beyond which a gap is looked into.
	follow = 0.1
	// neighbours of a culprit that are measured with it, on each side: one build more or less is an accident of its layout. So many
	// commits are few enough to be distinguished by that wave as well.
	neighbours = 3
)

// Check reports what cannot be searched.
func (q Question) Check() error {
	switch {
	case q.Revisions < 2:
		return fmt.Errorf("revisions: found %d; a search needs the one before and the one after: 2 or more", q.Revisions)
	case q.Arms < fewestArms:
		return fmt.Errorf("arms: found %d; at least %d are needed, both ends and one between", q.Arms, fewestArms)
	case q.Blocks < 2:
		return fmt.Errorf("blocks: found %d; at least 2 are needed", q.Blocks)
	case !(q.Between >= 0) || math.IsInf(q.Between, 1):
		return fmt.Errorf("between: found %g; a variance is finite and not below 0", q.Between)
	case q.Shift == 0 || math.IsNaN(q.Shift) || math.IsInf(q.Shift, 0):
		return fmt.Errorf("shift: found %g; give the size of the change that was confirmed", q.Shift)
	case !(q.Certain > 0.5 && q.Certain < 1):
		return fmt.Errorf("certain: found %g; above 0.5 and below 1 is allowed: try 0.95", q.Certain)
	case q.Waves < 1:
		return fmt.Errorf("waves: found %d; at least 1 is needed", q.Waves)
	}
	return nil
}

// Wave is what is to be measured: revisions as arms of so many blocks.
type Wave struct {
	Revisions []int
	Blocks    int
	// Verify reports whether it is the last one, of culprits beside their neighbours.
	Verify bool
}

// Level is what a wave found of one of its revisions.
type Level struct {
	Revision int
	// Log is the mean logarithm, relative to any reference that all levels of the wave share, and SE its standard error.
	Log, SE float64
	// Failed reports whether there is none: the revision does not build, or did not run.
	Failed bool
}

// Measured is a wave with its result.
type Measured struct {
	Wave   Wave
	Levels []Level
}

// Culprit is a change that was found: after revision After, and at the latest with At. Where the two are neighbours it is one commit.
type Culprit struct {
	After, At   int
	Probability float64
	// Shift of the level, as a logarithm.
	Shift float64
}

// Step is what comes next: a wave, or an answer.
type Step struct {
	Wave *Wave
	// Culprits in order; none, and no wave, says that the ends do not differ, or not for certain.
	Culprits []Culprit
	// Why there is no more.
	Why string
}

// span of revisions: the change comes after the first, and at the latest with the last.
type span struct{ after, at int }

// Next decides on all that was measured so far.
func (q Question) Next(done []Measured) Step {
	spans, skipped, blocks := []span{{0, q.Revisions - 1}}, map[int]bool{}, q.Blocks
	for _, m := range done {
		for _, l := range m.Levels {
			if l.Failed {
				skipped[l.Revision] = true
			}
		}
		before := spans
		if m.Wave.Verify {
			before = q.widened(spans)
		}
		p := q.posterior(m.Levels, before)
		if len(p.arms) < 2 {
			return Step{Why: fmt.Sprintf("%d of the revisions could be measured, and at least 2 are needed", len(p.arms))}
		}
		if m.Wave.Verify {
			return q.answer(p, spans)
		}
		if none := p.none(0, len(p.arms)-1); none >= q.Certain {
			return Step{Why: fmt.Sprintf("the ends do not differ, with probability %.3f", none)}
		}
		found, clear := p.suspects(q.Certain)
		spans = found
		if !clear {
			blocks *= 2
		}
	}
	if len(done) >= q.Waves {
		return Step{Why: fmt.Sprintf("%d waves were allowed", q.Waves)}
	}
	wave := Wave{Revisions: q.inside(spans, skipped, len(done) == 0), Blocks: blocks}
	if narrow(spans) || len(wave.Revisions) == 0 || len(done) == q.Waves-1 && len(done) > 0 {
		wave = Wave{Revisions: append(wave.Revisions, q.around(spans, skipped)...), Blocks: 2 * blocks, Verify: true}
	} else {
		wave.Revisions = append(wave.Revisions, q.ends(spans)...)
	}
	slices.Sort(wave.Revisions)
	wave.Revisions = slices.Compact(wave.Revisions)
	return Step{Wave: &wave}
}

// narrow reports whether the last wave can measure all of every span with its neighbours.
func narrow(spans []span) bool {
	return !slices.ContainsFunc(spans, func(s span) bool { return s.at-s.after > neighbours })
}

// ends of the spans and of the history.
func (q Question) ends(spans []span) []int {
	out := []int{0, q.Revisions - 1}
	for _, s := range spans {
		out = append(out, s.after, s.at)
	}
	return out
}

// inside are the revisions between the ends of spans that divide them most evenly. The first wave takes the square root of what there is,
// and half as many more because some may not build, so that the second one can take all that is left.
func (q Question) inside(spans []span, skipped map[int]bool, first bool) []int {
	budget := max(1, q.Arms-len(q.ends(spans)))
	if first {
		budget = min(budget, int(math.Ceil(1.5*math.Sqrt(float64(q.Revisions)))))
	}
	candidates, total := make([][]int, len(spans)), 0
	for i, s := range spans {
		for r := s.after + 1; r < s.at; r++ {
			if !skipped[r] {
				candidates[i] = append(candidates[i], r)
			}
		}
		total += len(candidates[i])
	}
	var out []int
	for _, c := range candidates {
		share := len(c)
		if total > budget {
			share = max(1, budget*len(c)/total)
		}
		for k := range min(share, len(c)) {
			out = append(out, c[(2*k+1)*len(c)/(2*min(share, len(c)))])
		}
	}
	return out
}

// around are the ends of every span with their neighbours on either side.
func (q Question) around(spans []span, skipped map[int]bool) []int {
	out := []int{0, q.Revisions - 1}
	for _, s := range spans {
		for _, side := range []struct{ from, step int }{{s.after, -1}, {s.at, 1}} {
			for r, n := side.from, 0; r >= 0 && r < q.Revisions && n < neighbours; r += side.step {
				if !skipped[r] {
					out, n = append(out, r), n+1
				}
			}
		}
	}
	return out
}

// widened spans reach over the neighbours that are measured with them: what a wave picked is not held for likelier than they.
func (q Question) widened(spans []span) []span {
	var out []span
	for _, s := range spans {
		s.after, s.at = max(0, s.after-neighbours+1), min(q.Revisions-1, s.at+neighbours-1)
		if n := len(out); n > 0 && out[n-1].at > s.after {
			out[n-1].at = max(out[n-1].at, s.at)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// answer reads the last wave: the narrowest stretches of gaps, in the spans and beside them, that are certain to hold a change. A stretch
// that holds one of them says nothing more.
func (q Question) answer(p *posterior, spans []span) Step {
	var out Step
	near := q.widened(spans)
	for width := 1; width < len(p.arms); width++ {
		for low := 0; low+width < len(p.arms); low++ {
			high := low + width
			found := Culprit{After: p.arms[low].Revision, At: p.arms[high].Revision}
			within := slices.ContainsFunc(near, func(s span) bool { return s.after <= found.After && found.At <= s.at })
			known := slices.ContainsFunc(out.Culprits, func(c Culprit) bool { return found.After < c.At && c.After < found.At })
			if found.Probability = 1 - p.none(low, high); within && !known && found.Probability >= q.Certain {
				found.Shift = p.shift(low, high)
				out.Culprits = append(out.Culprits, found)
			}
		}
	}
	slices.SortFunc(out.Culprits, func(a, b Culprit) int { return a.At - b.At })
	if len(out.Culprits) == 0 {
		out.Why = "fresh blocks do not show the change that the waves before them found"
	}
	return out
}
