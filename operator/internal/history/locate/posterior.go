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
	// change and same are the logarithms of the prior probabilities that the gap before an arm holds a change, and that it holds none.
	change, same []float64
	// segment is the logarithm of the likelihood of one level for the arms from one to another.
	segment [][]float64
	total   float64
}

// elsewhere is how many culprits are expected outside the spans that are followed: those that the waves before have overlooked.
const elsewhere = 0.05

// posterior of what a wave found. Before it, one culprit was expected in the spans that are followed, each of their commits being as
// likely as any other.
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
		// A level is normal about the middle of the wave, as far out as the change is large; what the arms have in common is integrated out.
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

// sum is the logarithm of the likelihood over all ways to divide the arms into levels, with no change in the gaps from one arm to another.
func (p *posterior) sum(low, high int) float64 {
	n := len(p.arms)
	ending := make([]float64, n) // With a level that ends at this arm.
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

// none is the probability that no gap from one arm to another holds a change.
func (p *posterior) none(low, high int) float64 {
	return min(1, math.Exp(p.sum(low, high)-p.total))
}

// suspects are the gaps that may hold a change, neighbours taken together, the likeliest where there are more than may be followed, and
// whether each of them surely does. Outside of the spans that were followed so far only what is certain counts: the level of a single build
// is not held for a change that the waves before have overlooked. What was found already is none.
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

// others are gaps beside the culprits that are certain to hold a change as well: those for which the waves before had no room.
func (p *posterior) others(certain float64, culprits []Culprit, most int) (out []span) {
	for i := 1; i < len(p.arms) && len(out) < most; i++ {
		gap := span{p.arms[i-1].Revision, p.arms[i].Revision}
		if !known(culprits, gap) && 1-p.none(i-1, i) >= certain {
			out = append(out, gap)
		}
	}
	return out
}

// near are the first and the last arm of the stretch that an arm and a later one lie in.
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

// shift between the levels before and after a stretch of gaps, of the neighbouring arms on either side, from the first to the last that
// share a level with these.
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
