package locate

import (
	"cmp"
	"math"
	"slices"
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
	if n == 0 {
		return p
	}
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
		ending[last] = logSum(terms)
	}
	return ending[n-1]
}

// none is the probability that no gap from one arm to another holds a change.
func (p *posterior) none(low, high int) float64 {
	return min(1, math.Exp(p.sum(low, high)-p.total))
}

// suspects are the gaps that may hold a change, neighbours taken together, the likeliest where there are more than may be followed, and
// whether each of them surely does. What lies outside of the spans that were followed so far has to be likelier.
func (p *posterior) suspects(certain float64, before []span, most int) (out []span, clear bool) {
	clear = true
	type suspect struct {
		span
		probability float64
	}
	var found []suspect
	best := suspect{probability: -1}
	for i := 1; i < len(p.arms); i++ {
		gap := suspect{span{p.arms[i-1].Revision, p.arms[i].Revision}, 1 - p.none(i-1, i)}
		if gap.probability > best.probability {
			best = gap
		}
		followed := slices.ContainsFunc(before, func(s span) bool { return s.after < gap.at && gap.after < s.at })
		if gap.probability < follow || !followed && gap.probability < overlooked {
			continue
		}
		clear = clear && gap.probability >= certain
		if n := len(found); n > 0 && found[n-1].at == gap.after && gap.probability < certain {
			found[n-1].at, found[n-1].probability = gap.at, max(gap.probability, found[n-1].probability)
		} else {
			found = append(found, gap)
		}
	}
	if len(found) == 0 {
		return []span{best.span}, false
	}
	if len(found) > most {
		slices.SortStableFunc(found, func(a, b suspect) int { return cmp.Compare(b.probability, a.probability) })
		found, clear = found[:most], false
	}
	for _, s := range found {
		out = append(out, s.span)
	}
	slices.SortFunc(out, func(a, b span) int { return a.after - b.after })
	return out, clear
}

// shift between the levels before and after a stretch of gaps, of the neighbouring arms on either side.
func (p *posterior) shift(low, high int) float64 {
	mean := func(from, to int) float64 {
		sum := 0.0
		for i := from; i <= to; i++ {
			sum += p.arms[i].Log / float64(to-from+1)
		}
		return sum
	}
	return mean(high, min(len(p.arms)-1, high+neighbours-1)) - mean(max(0, low-neighbours+1), low)
}

func logSum(terms []float64) float64 {
	most := slices.Max(terms)
	sum := 0.0
	for _, t := range terms {
		sum += math.Exp(t - most)
	}
	return most + math.Log(sum)
}
