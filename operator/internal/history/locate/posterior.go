package locate

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// posterior of the changes between the arms of a wave.
type posterior struct {
	arms []Level
	// change and same are the log prior probabilities that the gap before an arm holds a change, and that it holds none.
	change, same []float64
	// segment[i][j] is the log likelihood of a single level for the arms i to j.
	segment [][]float64
	total   float64
}

// elsewhere is the expected number of culprits outside the pursued spans, missed by earlier waves.
const elsewhere = 0.05

// posterior computes the posterior of a wave. The prior expects one culprit in the pursued spans, with equal probability for each commit.
func (q Question) posterior(levels []Level, spans []span) *posterior {
	p := &posterior{}
	followed := 0.0
	for _, s := range spans {
		followed += float64(s.at - s.after)
	}
	for _, l := range levels {
		if !l.Failed {
			p.arms = append(p.arms, l)
		}
	}
	slices.SortFunc(p.arms, func(a, b Level) int { return a.Revision - b.Revision })
	n := len(p.arms)
	center := 0.0
	for _, a := range p.arms {
		center += a.Log / float64(n)
	}
	p.change, p.same = make([]float64, n), make([]float64, n)
	p.segment = make([][]float64, n)
	for i := range n {
		if i > 0 {
			after, at := p.arms[i-1].Revision, p.arms[i].Revision
			inside := 0.0
			for _, s := range spans {
				inside += float64(max(0, min(s.at, at)-max(s.after, after)))
			}
			outside := max(0, float64(at-after)-inside)
			p.same[i] = inside*math.Log1p(-1/(followed+1)) + outside*math.Log1p(-elsewhere/float64(q.Revisions))
			p.change[i] = math.Log(-math.Expm1(p.same[i]))
		}
		p.segment[i] = make([]float64, n)
		// The prior of a level is normal about the middle of the wave, with a variance that grows with the size of the change; the common
		// part of the arms is integrated out.
		var w, wy, wyy, logs float64
		for j := i; j < n; j++ {
			v := p.arms[j].SE*p.arms[j].SE + q.Between
			v = max(v, q.Shift*q.Shift*1e-9)
			y := p.arms[j].Log - center
			w, wy, wyy, logs = w+1/v, wy+y/v, wyy+y*y/v, logs+math.Log(v)
			prior := q.Shift * q.Shift
			p.segment[i][j] = -0.5 * (logs + math.Log1p(prior*w) + wyy - prior*wy*wy/(1+prior*w))
		}
	}
	p.total = p.sum(-1, -1)
	return p
}

// sum returns the log likelihood over all partitions of the arms into levels, without a change in the gaps from low to high.
func (p *posterior) sum(low, high int) float64 {
	n := len(p.arms)
	ending := make([]float64, n) // ending[i]: partitions whose last level ends at arm i.
	for last := range n {
		var terms []float64
		same := 0.0
		for first := last; first >= 0; first-- {
			switch {
			case first == 0:
				terms = append(terms, same+p.segment[0][last])
			case first <= low || first > high:
				terms = append(terms, ending[first-1]+p.change[first]+same+p.segment[first][last])
			}
			same += p.same[first]
		}
		ending[last] = floats.LogSumExp(terms)
	}
	return ending[n-1]
}

// none returns the probability that no gap from low to high holds a change.
func (p *posterior) none(low, high int) float64 {
	return min(1, math.Exp(p.sum(low, high)-p.total))
}

// suspects returns the gaps that may hold a change, with neighbours merged, limited to the most likely ones, and whether each certainly
// does. Outside the spans pursued so far a gap must be certain, because the layout of a single build must not count as a change that
// earlier waves missed. Culprits found before are excluded.
func (p *posterior) suspects(certain float64, before []span, found []Culprit, most int) (out []span, clear bool) {
	clear = true
	type suspect struct {
		span
		probability float64
	}
	var suspected []suspect
	best := suspect{probability: -1}
	for i := 1; i < len(p.arms); i++ {
		gap := suspect{span{p.arms[i-1].Revision, p.arms[i].Revision}, 1 - p.none(i-1, i)}
		if known(found, gap.span) {
			continue
		}
		if gap.probability > best.probability {
			best = gap
		}
		followed := slices.ContainsFunc(before, func(s span) bool { return s.after < gap.at && gap.after < s.at })
		if gap.probability < follow || !followed && gap.probability < certain {
			continue
		}
		clear = clear && gap.probability >= certain
		if n := len(suspected); n > 0 && suspected[n-1].at == gap.after && gap.probability < certain {
			suspected[n-1].at, suspected[n-1].probability = gap.at, max(gap.probability, suspected[n-1].probability)
		} else {
			suspected = append(suspected, gap)
		}
	}
	if len(suspected) == 0 && best.probability < 0 {
		return nil, true
	}
	if len(suspected) == 0 {
		return []span{best.span}, false
	}
	if len(suspected) > most {
		slices.SortStableFunc(suspected, func(a, b suspect) int { return cmp.Compare(b.probability, a.probability) })
		suspected = suspected[:most]
	}
	for _, s := range suspected {
		out = append(out, s.span)
	}
	slices.SortFunc(out, func(a, b span) int { return a.after - b.after })
	return out, clear
}

// others returns gaps beside the culprits that are certain to hold a change, which did not fit in earlier waves.
func (p *posterior) others(certain float64, culprits []Culprit, most int) (out []span) {
	for i := 1; i < len(p.arms) && len(out) < most; i++ {
		gap := span{p.arms[i-1].Revision, p.arms[i].Revision}
		if !known(culprits, gap) && 1-p.none(i-1, i) >= certain {
			out = append(out, gap)
		}
	}
	return out
}

// near returns the first and the last arm of the stretch that contains the arms low and high.
func (p *posterior) near(stretches []span, low, high int) (first, last int) {
	first, last = low, high
	for _, s := range stretches {
		if s.after > p.arms[low].Revision || p.arms[high].Revision > s.at {
			continue
		}
		for first > 0 && p.arms[first-1].Revision >= s.after {
			first--
		}
		for last+1 < len(p.arms) && p.arms[last+1].Revision <= s.at {
			last++
		}
	}
	return first, last
}

// shift returns the difference between the levels before and after a stretch of gaps, estimated from the arms first to last.
func (p *posterior) shift(first, low, high, last int) float64 {
	mean := func(from, to int) float64 {
		sum := 0.0
		for i := from; i <= to; i++ {
			sum += p.arms[i].Log / float64(to-from+1)
		}
		return sum
	}
	return mean(high, min(last, high+neighbours-1)) - mean(max(first, low-neighbours+1), low)
}
