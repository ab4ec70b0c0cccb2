package detect

import (
	"math"
	"slices"
)

// Offline dates the changes of a series.
//
// It is narrowest significance pursuit (Fryzlewicz 2024, Journal of the American Statistical Association 119:1633) for a level that
// jumps: the shortest stretches of points that one level does not explain, one after the other. A stretch is explained by the levels that
// lie in the intervals of all its parts at once (as in Frick, Munk, Sieling 2014, Journal of the Royal Statistical Society B 76:495). How
// wide these are is simulated, with the scale of the noise estimated as it is from the series, so that the promise covers the search over
// all parts of all stretches: with probability 1-Alpha every interval that is given holds a change. The same points give the same dates.
type Offline struct {
	// Alpha is the probability that any interval of a series has no change in it.
	Alpha float64
}

// Dated is a change with its date.
type Dated struct {
	// From and To are the first and last point that can be the first one after the change, and At the most likely.
	From, At, To int
	// Shift is how far the level moved, between this change and its neighbours, and SE its standard error.
	Shift, SE float64
}

// Changes of a series, in order.
func (o Offline) Changes(points []Observation) []Dated {
	if len(points) < shortest {
		return nil
	}
	noise := NoiseOf(points)
	// Points cannot vary less than their standard errors say.
	unit := max(1, scale(points, noise))
	stretches := unexplained(points, noise, unit*nullQuantile(len(points), o.Alpha))
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
		out = append(out, date(points, noise, unit, s, low, high))
	}
	return out
}

// shortest series that anything can be said of: two levels, and noise to compare them with.
const shortest = 4

// stretch of points from first to last, with both.
type stretch struct{ first, last int }

// weighted are the sums of the weights, and of the weighted distances from the first point, of as many points as their index says.
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

// unexplained are, for each last point, the shortest stretches up to it that no single level explains.
func unexplained(points []Observation, noise Noise, halfWidth float64) []stretch {
	n := len(points)
	weights, values := weighted(points, noise)
	// floors and ceilings bound the levels that explain the parts from begin to the current last point, by the lengths of these.
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
			// The highest floor is the lowest of what is below it.
			floors[k], ceilings[k] = floors[k].with(s, half-center), ceilings[k].with(s, center+half)
		}
		first := -1
		for ; -lowest(floors) > lowest(ceilings); begin++ {
			first = begin
			for k := range floors {
				floors[k], ceilings[k] = floors[k].after(begin), ceilings[k].after(begin)
			}
		}
		// A stretch that begins earlier has this one in it, now and for every later last point.
		if first >= 0 {
			out = append(out, stretch{first, last})
		}
	}
	return out
}

// bounds are those of the parts of one length, by their first points: of each the lowest that comes with it or after it, so that both rise.
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

// after leaves out the part that begins at a point.
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

// pursue takes the shortest stretch, and goes on to its left and right. Two stretches may share a point, and no change.
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

// date finds the most likely first point after the change within a stretch, of the points from low to below high, by least squares.
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
