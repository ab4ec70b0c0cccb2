// Package locate finds the revisions at which a program changed with few measurements. It is pure: it plans waves and reads their results.
//
// A wave measures many revisions as arms of the same blocks. From its result follows the posterior probability of a change in each gap
// between neighbouring arms, over all partitions into levels: a product partition model (Barry, Hartigan 1993, Journal of the American
// Statistical Association 88:309), summed exactly (Fearnhead 2006, Statistics and Computing 16:203). Every gap that may hold a change is
// pursued, so that several culprits are found. Finally each culprit is measured with its neighbours in fresh blocks, and only this wave
// decides, which avoids selection bias.
package locate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/quantity"
)

// Question is a history that contains a change.
type Question struct {
	// Revisions from the one before the change to one after it, in order.
	Revisions int `json:"revisions"`
	// Arms is the maximum number of revisions per wave, and Blocks the number of blocks of a wave without ambiguous gaps.
	Arms   int `json:"arms"`
	Blocks int `json:"blocks"`
	// Between is the variance between revisions of equal speed, caused by build layout.
	Between float64 `json:"between"`
	// Shift is the approximate size of the confirmed change. 0 means unknown; then the first wave measures only the ends, to estimate
	// their difference.
	Shift float64 `json:"shift"`
	// Certain is the required probability of an answer.
	Certain float64 `json:"certain"`
	// Waves is the maximum number of waves.
	Waves int `json:"waves"`
}

// MostArms and MostBlocks are the limits of a run in the API schema.
const (
	MostArms   = 16
	MostBlocks = 1000
)

const (
	// fewestArms are both ends and a stretch between them with a revision on either side of it.
	fewestArms = 6
	// armsOfSpan are both ends of a stretch and one revision inside it.
	armsOfSpan = 3
	// follow is the minimum probability of a change for a gap to be pursued.
	follow = 0.1
	// neighbours is the number of revisions measured beside a culprit on each side, to average out the layout of single builds. The same
	// wave can distinguish this many commits.
	neighbours = 3
)

// Check returns an error if the question is invalid.
func (q Question) Check() error {
	switch {
	case q.Revisions < 2:
		return fmt.Errorf("revisions: found %d; at least 2 are needed, one before and one after the change", q.Revisions)
	case q.Arms < fewestArms:
		return fmt.Errorf("arms: found %d; at least %d are needed, for both ends and the neighbours of a change", q.Arms, fewestArms)
	case q.Blocks < 2 || q.Blocks > MostBlocks:
		return fmt.Errorf("blocks: found %d; 2 to %d are allowed", q.Blocks, MostBlocks)
	case !(q.Between >= 0) || math.IsInf(q.Between, 1):
		return fmt.Errorf("between: found %g; a variance is finite and not below 0", q.Between)
	case math.IsNaN(q.Shift) || math.IsInf(q.Shift, 0):
		return fmt.Errorf("shift: found %g; give the size of the confirmed change, or 0 if it is unknown", q.Shift)
	case !(q.Certain > 0.5 && q.Certain < 1):
		return fmt.Errorf("certain: found %g; a value above 0.5 and below 1 is allowed, such as 0.95", q.Certain)
	case q.Waves < 1:
		return fmt.Errorf("waves: found %d; at least 1 is needed", q.Waves)
	}
	return nil
}

// Wave is a plan: revisions as arms, and a number of blocks.
type Wave struct {
	Revisions []int `json:"revisions"`
	Blocks    int   `json:"blocks"`
	// Verify marks the last wave, which measures culprits beside their neighbours.
	Verify bool `json:"verify,omitempty"`
}

// Level is the result of a wave for one revision.
type Level struct {
	Revision int `json:"revision"`
	// Log is the mean logarithm, relative to a reference that all levels of the wave share, and SE its standard error.
	Log float64 `json:"log"`
	SE  float64 `json:"se"`
	// Failed reports whether the revision could not be built or run. Why is the reason.
	Failed bool   `json:"failed,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Measured is a wave with its result.
type Measured struct {
	Wave   Wave    `json:"wave"`
	Levels []Level `json:"levels"`
}

// Culprit is a change between the revisions After and At. If the two are neighbours it is one commit.
type Culprit struct {
	After, At   int
	Probability float64
	// Shift of the level, as a logarithm.
	Shift float64
}

// Step is the next wave or the answer.
type Step struct {
	Wave *Wave
	// Culprits in order. None, without a wave, means that the difference of the ends is not certain.
	Culprits []Culprit
	// Why the search ended.
	Why string
}

// span of revisions: the change lies after the revision after, and not later than at.
type span struct{ after, at int }

// Next returns the next step from all results. A wave has at most Arms revisions, both ends of the history included.
func (q Question) Next(done []Measured) Step {
	if q.Shift == 0 {
		if len(done) == 0 && q.Waves < 1 {
			return Step{Why: "the limit of waves is 0"}
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
				return out.ended("fresh blocks do not reproduce the change found by earlier waves")
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
		return out.ended(fmt.Sprintf("the limit of %d waves was reached", q.Waves))
	}
	last, whole := q.witnesses(spans, skipped)
	if narrow(spans) || len(within(spans, skipped)) == 0 || len(done) > 0 && (whole || len(done) == q.Waves-1) {
		return Step{Wave: &Wave{Revisions: last, Blocks: twice(blocks), Verify: true}}
	}
	ends := q.ends(spans)
	budget := q.Arms - len(ends)
	if len(done) == 0 {
		// Use the square root of the number of revisions and half as many more, because some may not build, so that the second wave can
		// measure all that remain.
		budget = min(budget, int(math.Ceil(1.5*math.Sqrt(float64(q.Revisions)))))
	}
	return Step{Wave: &Wave{Revisions: distinct(append(ends, inside(spans, skipped, budget)...)), Blocks: blocks}}
}

// twice doubles the number of blocks, up to the limit of a run.
func twice(blocks int) int { return min(2*blocks, MostBlocks) }

// ended returns the answer, ordered by history, or the reason for its absence.
func (s Step) ended(why string) Step {
	slices.SortFunc(s.Culprits, func(a, b Culprit) int { return a.At - b.At })
	if len(s.Culprits) == 0 {
		s.Why = why
	}
	return s
}

// known reports whether a span equals or contains a culprit found before.
func known(culprits []Culprit, s span) bool {
	return slices.ContainsFunc(culprits, func(c Culprit) bool { return c.After < s.at && s.after < c.At })
}

// mostSpans is the number of spans that fit in a wave. The others are pursued later.
func (q Question) mostSpans() int { return max(1, (q.Arms-2)/armsOfSpan) }

// between returns the shift between the ends of the history, or why no search is possible because the errors and the layouts of two builds
// explain the difference.
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
		return 0, fmt.Sprintf("the ends do not differ: their difference is %s, and variation of blocks and builds explains %s",
			quantity.Percent(math.Abs(shift), 2), quantity.Percent(reach, 2))
	}
	return shift, ""
}

// endless returns why a wave is unusable, which is the case without an end of the history or with the ends alone.
func (q Question) endless(m Measured) string {
	there := func(revision int) bool {
		return slices.ContainsFunc(m.Levels, func(l Level) bool { return l.Revision == revision && !l.Failed })
	}
	switch {
	case !there(0) && !there(q.Revisions-1):
		return "neither end could be measured; choose other ends"
	case !there(0):
		return "the first revision could not be measured, so that nothing can be compared with it; choose another"
	case !there(q.Revisions - 1):
		return "the last revision could not be measured; choose another"
	}
	return ""
}

// narrow reports whether the last wave can measure every span in full with its neighbours.
func narrow(spans []span) bool {
	return !slices.ContainsFunc(spans, func(s span) bool { return s.at-s.after > neighbours })
}

// distinct sorts revisions and removes duplicates.
func distinct(revisions []int) []int {
	slices.Sort(revisions)
	return slices.Compact(revisions)
}

// ends returns the ends of the spans and of the history.
func (q Question) ends(spans []span) []int {
	out := []int{0, q.Revisions - 1}
	for _, s := range spans {
		out = append(out, s.after, s.at)
	}
	return distinct(out)
}

// within returns the measurable revisions between the ends of each span.
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

// inside returns budget revisions that divide the spans most evenly.
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

// witnesses returns the revisions of the last wave: every span with as many neighbours on either side as fit. If whole is false, the wave
// omits revisions inside a span, so that its answer can only be a range.
func (q Question) witnesses(spans []span, skipped map[int]bool) (out []int, whole bool) {
	for n := neighbours; n > 0; n-- {
		if all := distinct(append(within(spans, skipped), q.around(spans, skipped, n)...)); len(all) <= q.Arms {
			return all, true
		}
	}
	around := q.around(spans, skipped, 1)
	return distinct(append(inside(spans, skipped, q.Arms-len(around)), around...)), false
}

// around returns the ends of every span with the given number of neighbours on either side, ends included, and the ends of the history.
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

// widened extends spans over the neighbours that are measured with them, so that the prior does not favour the revisions that a wave
// selected.
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

// answer reads the last wave. It returns the narrowest stretches of gaps, in and beside the spans, that hold a change with the required
// probability, without those that contain another.
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
		// The level before a change begins at the preceding change, and the level after it ends at the next one; ends of the history may
		// lie beyond other changes.
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
