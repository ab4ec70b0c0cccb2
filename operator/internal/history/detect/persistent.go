package detect

import (
	"math"
	"slices"
)

// A change of the program persists, and is larger than other differences that the same series shows. The parameters were chosen on
// simulated histories (operator/calibration/rehearse), not on series with known answers.
const (
	// Transient is the half width of the running median about which points are clipped. A level that lasts for as many points or fewer is a
	// transient.
	Transient = 5
	// clipped is the largest deviation of a point from the running median, in standard deviations of a point.
	clipped = 1.5
	// superior is the least share of pairs of points on the two sides of a change that are in its order (Vargha, Delaney 2000, Journal of
	// Educational and Behavioral Statistics 25:101), among the nearest points on either side.
	superior = 0.9
	nearest  = 50
	// unusual is the least size of a step in units of the other steps of the series over the same number of points, at most widest.
	unusual = 4.0
	widest  = 16
)

// withoutTransients returns the values of the points, each at most clipped deviations away from the median of its neighbourhood. A median
// retains the edge of a step (Tukey 1977), and clipping bounds the influence of a point on the level (Huber 1964, Annals of Mathematical
// Statistics 35:73).
func withoutTransients(points []Observation, deviation func(i int) float64) []Observation {
	out := slices.Clone(points)
	window := make([]float64, 0, 2*Transient+1)
	for i := range points {
		window = window[:0]
		for _, p := range points[max(0, i-Transient):min(len(points), i+Transient+1)] {
			window = append(window, p.Y)
		}
		center, most := medianOf(window), clipped*deviation(i)
		out[i].Y = min(max(points[i].Y, center-most), center+most)
	}
	return out
}

// medianOf sorts the values.
func medianOf(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// persistent removes changes until the rest are changes of the program, beginning with the weakest, and dates the rest anew.
func persistent(points, steady []Observation, dated []Dated, again func(i int, low, high int) Dated) []Dated {
	at := make([]int, len(dated)) // Indices of the dated changes that are left.
	for i := range at {
		at[i] = i
	}
	left := slices.Clone(dated)
	for len(left) > 0 {
		weakest, least := -1, 1.0
		for i := range left {
			low, high := bordersOf(left, i, len(points))
			strength := min(superiority(points[low:left[i].At], points[left[i].At:high], left[i].Shift)/superior,
				prominence(steady, low, left[i].At, high)/unusual)
			if min(left[i].At-low, high-left[i].At) <= Transient {
				strength = 0
			}
			if strength < least {
				weakest, least = i, strength
			}
		}
		if weakest < 0 {
			return left
		}
		left, at = slices.Delete(left, weakest, weakest+1), slices.Delete(at, weakest, weakest+1)
		for i := range left {
			low, high := bordersOf(left, i, len(points))
			left[i] = again(at[i], low, high)
		}
	}
	return nil
}

// bordersOf returns the range of points up to the neighbouring changes.
func bordersOf(dated []Dated, i, n int) (low, high int) {
	high = n
	if i > 0 {
		low = dated[i-1].At
	}
	if i+1 < len(dated) {
		high = dated[i+1].At
	}
	return low, high
}

// superiority returns the share of pairs of points before and after that are in the direction of the shift; ties count half.
func superiority(before, after []Observation, shift float64) float64 {
	before, after = before[max(0, len(before)-nearest):], after[:min(len(after), nearest)]
	count := 0.0
	for _, b := range before {
		for _, a := range after {
			switch d := (a.Y - b.Y) * shift; {
			case d > 0:
				count++
			case d == 0:
				count += 0.5
			}
		}
	}
	return count / float64(len(before)*len(after))
}

// prominence returns the size of the step at a point in units of the scale of the other steps in the series over the same number of points.
// Noise hides a step over few points and seasons hide one over many, so the more prominent of two widths counts. It is infinite where the
// series is too short for other steps.
func prominence(points []Observation, low, at, high int) float64 {
	n, width := len(points), 1
	for 2*width <= min(widest, at-low, high-at) {
		width *= 2
	}
	sums := make([]float64, n+1)
	for i, p := range points {
		sums[i+1] = sums[i] + p.Y - points[0].Y
	}
	out := math.Inf(-1)
	for _, width := range []int{width, max(1, width/2)} {
		step := func(s int) float64 { return math.Abs(sums[s+width]-2*sums[s]+sums[s-width]) / float64(width) }
		var others []float64
		for s := width; s+width <= n; s++ {
			if s <= at-2*width || s >= at+2*width {
				others = append(others, step(s))
			}
		}
		if len(others) < 2*width {
			continue
		}
		scale := medianScale(others)
		if scale == 0 {
			return math.Inf(1)
		}
		out = max(out, step(at)/scale)
	}
	if math.IsInf(out, -1) {
		return math.Inf(1)
	}
	return out
}
