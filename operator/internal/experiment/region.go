package experiment

import "math"

// Region is an interval of figures, closed at its finite ends. An infinite end does not limit it.
type Region struct{ Low, High float64 }

// Side is the position of a confidence interval relative to a region.
type Side int

// Sides.
const (
	// Inside: the whole interval is in the region.
	Inside Side = iota
	// Under: the whole interval is below the region.
	Under
	// Over: the whole interval is above the region.
	Over
	// Spans: the interval contains an end of the region.
	Spans
)

func fromBound(bound float64) Region { return Region{bound, math.Inf(1)} }

func toBound(bound float64) Region { return Region{math.Inf(-1), bound} }

// boundTolerance is the rounding error that is allowed for, relative to the larger of two figures: sums over blocks, logarithms and
// exponentials each cost a few units in the last place, and an analysis prints 12 digits.
const boundTolerance = 1e-11

// Below reports whether value is less than bound by more than rounding errors.
func Below(value, bound float64) bool {
	return value < bound-boundTolerance*max(math.Abs(value), math.Abs(bound))
}

// Side returns the position of the interval from low to high. A figure that differs from an end by rounding alone is inside.
func (r Region) Side(low, high float64) Side {
	lower, upper := !math.IsInf(r.Low, -1), !math.IsInf(r.High, 1)
	switch {
	case (!lower || !Below(low, r.Low)) && (!upper || !Below(r.High, high)):
		return Inside
	case lower && Below(high, r.Low):
		return Under
	case upper && Below(r.High, low):
		return Over
	default:
		return Spans
	}
}

// Exact returns the position of the interval from low to high without a tolerance: an interval that touches an end spans it.
func (r Region) Exact(low, high float64) Side {
	switch {
	case low > r.Low && high < r.High:
		return Inside
	case high < r.Low:
		return Under
	case low > r.High:
		return Over
	default:
		return Spans
	}
}

// Ends returns the finite ends, the lower one first.
func (r Region) Ends() []float64 {
	var out []float64
	for _, end := range []float64{r.Low, r.High} {
		if !math.IsInf(end, 0) {
			out = append(out, end)
		}
	}
	return out
}

// Nearest returns the finite end that is closest to a figure.
func (r Region) Nearest(figure float64) float64 {
	ends := r.Ends()
	if len(ends) == 2 && math.Abs(figure-ends[1]) < math.Abs(figure-ends[0]) {
		return ends[1]
	}
	return ends[0]
}
