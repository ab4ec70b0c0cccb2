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

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/quantity"
)

// Question is a history in which something changed.
type Question struct {
	// Revisions from the one before the change to one after it, in order.
	Revisions int `json:"revisions"`
	// Arms is how many revisions a wave measures at most, and Blocks how many blocks a wave has where nothing is unclear.
	Arms   int `json:"arms"`
	Blocks int `json:"blocks"`
	// Between is the variance of revisions that are equally fast: the layout of their builds.
	Between float64 `json:"between"`
	// Shift is how large the change is, roughly: that which was confirmed. 0 is not known; then the first wave measures the ends alone, and
	// says whether they differ, and by how much.
	Shift float64 `json:"shift"`
	// Certain is the probability that an answer has to have.
	Certain float64 `json:"certain"`
	// Waves is how many there may be.
	Waves int `json:"waves"`
}

// MostArms is how many arms a run has at most, and MostBlocks how many blocks: the API server takes no run that asks for more.
const (
	MostArms   = 16
	MostBlocks = 1000
)

const (
	// fewestArms are both ends and a stretch between them with a revision on either side of it.
	fewestArms = 6
	// armsOfSpan are both ends of a stretch, and one inside it.
	armsOfSpan = 3
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
		return fmt.Errorf("arms: found %d; at least %d are needed: both ends, and what lies around a change", q.Arms, fewestArms)
	case q.Blocks < 2 || q.Blocks > MostBlocks:
		return fmt.Errorf("blocks: found %d; 2 to %d are allowed", q.Blocks, MostBlocks)
	case !(q.Between >= 0) || math.IsInf(q.Between, 1):
		return fmt.Errorf("between: found %g; a variance is finite and not below 0", q.Between)
	case math.IsNaN(q.Shift) || math.IsInf(q.Shift, 0):
		return fmt.Errorf("shift: found %g; give the size of the change that was confirmed, or 0 where it is not known", q.Shift)
	case !(q.Certain > 0.5 && q.Certain < 1):
		return fmt.Errorf("certain: found %g; above 0.5 and below 1 is allowed: try 0.95", q.Certain)
	case q.Waves < 1:
		return fmt.Errorf("waves: found %d; at least 1 is needed", q.Waves)
	}
	return nil
}

// Wave is what is to be measured: revisions as arms of so many blocks.
type Wave struct {
	Revisions []int `json:"revisions"`
	Blocks    int   `json:"blocks"`
	// Verify reports whether it is the last one, of culprits beside their neighbours.
	Verify bool `json:"verify,omitempty"`
}

// Level is what a wave found of one of its revisions.
type Level struct {
	Revision int `json:"revision"`
	// Log is the mean logarithm, relative to any reference that all levels of the wave share, and SE its standard error.
	Log float64 `json:"log"`
	SE  float64 `json:"se"`
	// Failed reports whether there is none: the revision does not build, or did not run. Why says which.
	Failed bool   `json:"failed,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Measured is a wave with its result.
type Measured struct {
	Wave   Wave    `json:"wave"`
	Levels []Level `json:"levels"`
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

// Next decides on all that was measured so far. No wave has more revisions than Arms, and each has both ends of the history.
func (q Question) Next(done []Measured) Step {
	if q.Shift == 0 {
		if len(done) == 0 && q.Waves < 1 {
			return Step{Why: "no wave was allowed"}
		}
		if len(done) == 0 {
			return Step{Wave: &Wave{Revisions: []int{0, q.Revisions - 1}, Blocks: twice(q.Blocks)}}
		}
		var why string
		if q.Shift, why = q.between(done[0]); why != "" {
			return Step{Why: why}
		}
		done, q.Waves = done[1:], q.Waves-1
	}
	spans, skipped, blocks := []span{{0, q.Revisions - 1}}, map[int]bool{}, q.Blocks
	var out Step
	for _, m := range done {
		for _, l := range m.Levels {
			if l.Failed {
				skipped[l.Revision] = true
			}
		}
		if why := q.endless(m); why != "" {
			return Step{Why: why}
		}
		before := spans
		if m.Wave.Verify {
			before = q.widened(spans)
		}
		p := q.posterior(m.Levels, before)
		if m.Wave.Verify {
			for _, c := range q.answer(p, spans) {
				if !known(out.Culprits, span{c.After, c.At}) {
					out.Culprits = append(out.Culprits, c)
				}
			}
			if spans, blocks = p.others(q.Certain, out.Culprits, q.mostSpans()), q.Blocks; len(spans) == 0 {
				return out.ended("fresh blocks do not show the change that the waves before them found")
			}
			continue
		}
		if none := p.none(0, len(p.arms)-1); none >= q.Certain {
			return Step{Why: "the ends do not differ, with probability " + quantity.Decimals(none, 3)}
		}
		found, clear := p.suspects(q.Certain, spans, out.Culprits, q.mostSpans())
		spans = found
		if !clear {
			blocks = twice(blocks)
		}
	}
	if len(spans) == 0 || len(done) >= q.Waves {
		return out.ended(fmt.Sprintf("%d waves were allowed", q.Waves))
	}
	last, whole := q.witnesses(spans, skipped)
	if narrow(spans) || len(within(spans, skipped)) == 0 || len(done) > 0 && (whole || len(done) == q.Waves-1) {
		return Step{Wave: &Wave{Revisions: last, Blocks: twice(blocks), Verify: true}}
	}
	ends := q.ends(spans)
	budget := q.Arms - len(ends)
	if len(done) == 0 {
		// The square root of what there is, and half as many more because some may not build, so that the second wave can take all that is left.
		budget = min(budget, int(math.Ceil(1.5*math.Sqrt(float64(q.Revisions)))))
	}
	return Step{Wave: &Wave{Revisions: distinct(append(ends, inside(spans, skipped, budget)...)), Blocks: blocks}}
}

// twice as many blocks, or as many as a run may have.
func twice(blocks int) int { return min(2*blocks, MostBlocks) }

// ended is the answer, in the order of the history, or why there is none.
func (s Step) ended(why string) Step {
	slices.SortFunc(s.Culprits, func(a, b Culprit) int { return a.At - b.At })
	if len(s.Culprits) == 0 {
		s.Why = why
	}
	return s
}

// known reports whether a stretch is one of, or holds, what was found already.
func known(culprits []Culprit, s span) bool {
	return slices.ContainsFunc(culprits, func(c Culprit) bool { return c.After < s.at && s.after < c.At })
}

// mostSpans is how many stretches a wave has room for. The others are followed after them.
func (q Question) mostSpans() int { return max(1, (q.Arms-2)/armsOfSpan) }

// between is how far the ends of the history are apart, or why nothing is to be found between them: they differ by no more than their error
// and the layouts of two builds explain.
func (q Question) between(ends Measured) (shift float64, why string) {
	if why := q.endless(ends); why != "" {
		return 0, why
	}
	levels := map[int]Level{}
	for _, l := range ends.Levels {
		levels[l.Revision] = l
	}
	good, bad := levels[0], levels[q.Revisions-1]
	shift = bad.Log - good.Log
	reach := distuv.UnitNormal.Quantile((1+q.Certain)/2) * math.Sqrt(good.SE*good.SE+bad.SE*bad.SE+2*q.Between)
	if math.Abs(shift) <= reach {
		return 0, fmt.Sprintf("the ends do not differ: they are %s apart, and blocks and builds explain %s",
			quantity.Percent(math.Abs(shift), 2), quantity.Percent(reach, 2))
	}
	return shift, ""
}

// endless is why a wave says nothing: one of the ends of the history is missing in it, or all the rest is.
func (q Question) endless(m Measured) string {
	there := func(revision int) bool {
		return slices.ContainsFunc(m.Levels, func(l Level) bool { return l.Revision == revision && !l.Failed })
	}
	switch {
	case !there(0) && !there(q.Revisions-1):
		return "neither end could be measured: name others"
	case !there(0):
		return "the first revision could not be measured, and nothing can be compared with it: name another"
	case !there(q.Revisions - 1):
		return "the last revision could not be measured: name another"
	}
	return ""
}

// narrow reports whether the last wave can measure all of every span with its neighbours.
func narrow(spans []span) bool {
	return !slices.ContainsFunc(spans, func(s span) bool { return s.at-s.after > neighbours })
}

// distinct are some revisions in order, each once.
func distinct(revisions []int) []int {
	slices.Sort(revisions)
	return slices.Compact(revisions)
}

// ends of the spans and of the history.
func (q Question) ends(spans []span) []int {
	out := []int{0, q.Revisions - 1}
	for _, s := range spans {
		out = append(out, s.after, s.at)
	}
	return distinct(out)
}

// within are the revisions between the ends of each span that may be measured.
func within(spans []span, skipped map[int]bool) (out []int) {
	for _, s := range spans {
		out = append(out, s.within(skipped)...)
	}
	return out
}

func (s span) within(skipped map[int]bool) (out []int) {
	for r := s.after + 1; r < s.at; r++ {
		if !skipped[r] {
			out = append(out, r)
		}
	}
	return out
}

// inside are the revisions between the ends of spans that divide them most evenly, as many as a budget has.
func inside(spans []span, skipped map[int]bool, budget int) (out []int) {
	total := len(within(spans, skipped))
	for _, s := range spans {
		candidates := s.within(skipped)
		share := len(candidates)
		if total > budget {
			share = budget * len(candidates) / total
			if share == 0 && len(candidates) > 0 && budget >= len(spans) {
				share = 1
			}
		}
		for k := range min(share, budget-len(out)) {
			out = append(out, candidates[(2*k+1)*len(candidates)/(2*share)])
		}
	}
	return out
}

// witnesses are the revisions of the last wave: every span with its neighbours on either side, as many of these as there is room for. Not
// whole is a wave that leaves out some of what lies inside a span, so that its answer can only be a range.
func (q Question) witnesses(spans []span, skipped map[int]bool) (out []int, whole bool) {
	for n := neighbours; n > 0; n-- {
		if all := distinct(append(within(spans, skipped), q.around(spans, skipped, n)...)); len(all) <= q.Arms {
			return all, true
		}
	}
	around := q.around(spans, skipped, 1)
	return distinct(append(inside(spans, skipped, q.Arms-len(around)), around...)), false
}

// around are the ends of every span with so many neighbours on either side, themselves counted, and those of the history.
func (q Question) around(spans []span, skipped map[int]bool, count int) []int {
	out := []int{0, q.Revisions - 1}
	for _, s := range spans {
		for _, side := range []struct{ from, step int }{{s.after, -1}, {s.at, 1}} {
			for r, n := side.from, 0; r >= 0 && r < q.Revisions && n < count; r += side.step {
				if !skipped[r] {
					out, n = append(out, r), n+1
				}
			}
		}
	}
	return distinct(out)
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
func (q Question) answer(p *posterior, spans []span) []Culprit {
	type stretch struct {
		low, high   int
		probability float64
	}
	var found []stretch
	near := q.widened(spans)
	for width := 1; width < len(p.arms); width++ {
		for low := 0; low+width < len(p.arms); low++ {
			high := low + width
			after, at := p.arms[low].Revision, p.arms[high].Revision
			within := slices.ContainsFunc(near, func(s span) bool { return s.after <= after && at <= s.at })
			holds := slices.ContainsFunc(found, func(s stretch) bool { return low < s.high && s.low < high })
			if !within || holds {
				continue
			}
			if probability := 1 - p.none(low, high); probability >= q.Certain {
				found = append(found, stretch{low, high, probability})
			}
		}
	}
	slices.SortFunc(found, func(a, b stretch) int { return a.low - b.low })
	var out []Culprit
	for i, s := range found {
		// The level before a change begins with the change before it, and that after it ends with the next; ends of the history may lie beyond
		// others.
		first, last := p.near(near, s.low, s.high)
		if i > 0 {
			first = max(first, found[i-1].high)
		}
		if i+1 < len(found) {
			last = min(last, found[i+1].low)
		}
		out = append(out, Culprit{
			After: p.arms[s.low].Revision, At: p.arms[s.high].Revision, Probability: s.probability, Shift: p.shift(first, s.low, s.high, last),
		})
	}
	return out
}
