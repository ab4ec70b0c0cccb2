package detect

import (
	"math"
	"slices"
)

// Offline dates the changes of a series.
//
// It implements narrowest significance pursuit (Fryzlewicz 2024, Journal of the American Statistical Association 119:1633) for a piecewise
// constant level: it repeatedly selects the shortest stretch of points that is inconsistent with a single level. A level is consistent
// with a stretch if it lies in the intervals of all its parts (as in Frick, Munk, Sieling 2014, Journal of the Royal Statistical Society B
// 76:495). The width of the intervals is simulated, with the noise scale estimated as from the series, so that the error probability
// covers the search over all parts of all stretches. With probability 1-Alpha every reported interval contains a change. The result is
// deterministic.
type Offline struct {
	// Alpha is the probability that any reported interval of a series contains no change.
	Alpha float64
}

// Dated is a change with its date.
type Dated struct {
	// From and To are the first and last point that can be the first one after the change, and At the most likely.
	From, At, To int
	// Shift is the difference of the levels on both sides, up to the neighbouring changes, and SE its standard error.
	Shift, SE float64
}

// Changes returns the changes of a series, in order.
func (o Offline) Changes(points []Observation) []Dated {
	if len(points) < shortest {
		return nil
	}
	noise, _ := noiseWithoutTails(points)
	// The variance of points is at least that of their standard errors.
	unit := max(1, scale(points, noise))
	steady := withoutTransients(points, func(i int) float64 { return unit * math.Sqrt(noise.Variance(i)) })
	stretches := unexplained(steady, noise, unit*nullQuantile(len(points), o.Alpha))
	chosen := pursue(stretches, 0, len(points)-1)
	slices.SortFunc(chosen, func(a, b stretch) int { return a.first - b.first })
	var out []Dated
	for i, s := range chosen {
		low, high := 0, len(points)
		if i > 0 {
			low = out[i-1].At
		}
		if i+1 < len(chosen) {
			high = chosen[i+1].first + 1
		}
		out = append(out, date(steady, noise, unit, s, low, high))
	}
	return persistent(points, steady, out, func(i, low, high int) Dated { return date(steady, noise, unit, chosen[i], low, high) })
}

// shortest is the minimum length of a series to analyze: two levels with two points each.
const shortest = 4

// stretch of points from first to last, inclusive.
type stretch struct{ first, last int }

// weighted returns prefix sums of the weights and of the weighted distances from the first point.
func weighted(points []Observation, noise Noise) (weights, values []float64) {
	weights, values = make([]float64, len(points)+1), make([]float64, len(points)+1)
	exact := 0.0
	for i := range points {
		exact = max(exact, noise.Variance(i))
	}
	for i, p := range points {
		w := 1 / max(noise.Variance(i), exact*1e-6, 1e-18)
		weights[i+1], values[i+1] = weights[i]+w, values[i]+w*(p.Y-points[0].Y)
	}
	return weights, values
}

// unexplained returns, for each last point, the shortest stretch up to it that no single level fits.
func unexplained(points []Observation, noise Noise, halfWidth float64) []stretch {
	n := len(points)
	weights, values := weighted(points, noise)
	// floors and ceilings bound the levels that fit the parts from begin to the current last point, indexed by part length.
	var floors, ceilings []bounds
	var out []stretch
	begin := 0
	for last := range n {
		for k, length := 0, 1; length <= last+1-begin; k, length = k+1, 2*length {
			if k == len(floors) {
				floors, ceilings = append(floors, nil), append(ceilings, nil)
			}
			s := last + 1 - length
			w := weights[last+1] - weights[s]
			center, half := (values[last+1]-values[s])/w, halfWidth/math.Sqrt(w)
			// The highest floor is the lowest of the negated ones.
			floors[k], ceilings[k] = floors[k].with(s, half-center), ceilings[k].with(s, center+half)
		}
		first := -1
		for ; -lowest(floors) > lowest(ceilings); begin++ {
			first = begin
			for k := range floors {
				floors[k], ceilings[k] = floors[k].after(begin), ceilings[k].after(begin)
			}
		}
		// A stretch that begins earlier contains this one, now and for every later last point.
		if first >= 0 {
			out = append(out, stretch{first, last})
		}
	}
	return out
}

// bounds is a monotonic queue of the bounds of the parts of one length, ordered by first point. Each entry is the minimum of itself and
// the later ones, so both fields increase.
type bounds []bound

type bound struct {
	first int
	at    float64
}

// with adds the bound of the part that begins last.
func (b bounds) with(first int, at float64) bounds {
	for len(b) > 0 && b[len(b)-1].at >= at {
		b = b[:len(b)-1]
	}
	return append(b, bound{first, at})
}

// after removes the part that begins at a point.
func (b bounds) after(first int) bounds {
	if len(b) > 0 && b[0].first == first {
		return b[1:]
	}
	return b
}

// lowest of the bounds of all lengths.
func lowest(all []bounds) float64 {
	out := math.Inf(1)
	for _, b := range all {
		if len(b) > 0 {
			out = min(out, b[0].at)
		}
	}
	return out
}

// pursue selects the shortest stretch, and recurses to its left and right. Two stretches may share a point, but not a change.
func pursue(stretches []stretch, first, last int) []stretch {
	at := -1
	for i, s := range stretches {
		if s.first >= first && s.last <= last && (at < 0 || s.last-s.first < stretches[at].last-stretches[at].first) {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	s := stretches[at]
	return append(append(pursue(stretches, first, s.first), s), pursue(stretches, s.last, last)...)
}

// date returns the most likely first point after the change in a stretch, for points from low to below high, by least squares.
func date(points []Observation, noise Noise, unit float64, s stretch, low, high int) Dated {
	var all, before sums
	for i := low; i < high; i++ {
		all.add(points[i].Y-points[low].Y, weight(noise, i))
		if i <= s.first {
			before.add(points[i].Y-points[low].Y, weight(noise, i))
		}
	}
	out, most := Dated{From: s.first + 1, To: s.last}, -1.0
	for k := s.first + 1; k <= s.last; k++ {
		after := sums{w: all.w - before.w, wy: all.wy - before.wy}
		shift, v := after.wy/after.w-before.wy/before.w, 1/before.w+1/after.w
		if gain := shift * shift / v; gain > most {
			most, out.At, out.Shift, out.SE = gain, k, shift, unit*math.Sqrt(v)
		}
		before.add(points[k].Y-points[low].Y, weight(noise, k))
	}
	return out
}

func weight(noise Noise, i int) float64 { return 1 / max(noise.Variance(i), 1e-18) }
