package chart

import (
	"math"
	"slices"
	"strconv"
)

// scale maps values to pixels.
type scale struct {
	low, high float64
	log       bool
	from, to  float64
}

// farthest is the limit of a scale, on both sides of 1 for a logarithmic one. Untrusted values near the limits of floats would give
// infinite margins and distances. Values beyond it are drawn outside of the plot.
const farthest = 1e150

// newScale covers the values with a margin. A logarithmic one is used only when asked for and every value is positive.
func newScale(values []float64, log bool, from, to float64) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), log: log, from: from, to: to}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if v <= 0 {
			s.log = false
		}
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	if s.low > s.high {
		s.low, s.high, s.log = 0, 1, false
	}
	least := -farthest
	if s.log {
		least = 1 / farthest
	}
	s.low, s.high = min(max(s.low, least), farthest), min(max(s.high, least), farthest)
	const margin = 0.06
	if s.log {
		span := max(math.Log(s.high/s.low), 0.02)
		s.low, s.high = s.low*math.Exp(-margin*span), s.high*math.Exp(margin*span)
		return s
	}
	span := s.high - s.low
	if span == 0 {
		span = max(math.Abs(s.high), 1) * 0.1
	}
	low := s.low - margin*span
	// A scale that starts near zero starts at zero, so that lengths are proportional.
	if s.low >= 0 && s.low < 0.4*s.high {
		low = 0
	}
	s.low, s.high = low, s.high+margin*span
	return s
}

func (s scale) at(v float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.log {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.from + share*(s.to-s.from)
}

// ticks are round values inside the scale, about as many as asked for.
func (s scale) ticks(about int) []float64 {
	if s.log && s.high/s.low >= 4 {
		return s.logTicks(about)
	}
	step := niceStep((s.high - s.low) / float64(about))
	var out []float64
	for i := math.Ceil(s.low / step); i*step <= s.high*(1+1e-12) && len(out) < 50; i++ {
		out = append(out, i*step)
	}
	return out
}

func (s scale) logTicks(about int) []float64 {
	for _, steps := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		var out []float64
		for e := math.Floor(math.Log10(s.low)); e <= math.Ceil(math.Log10(s.high)); e++ {
			for _, m := range steps {
				if v := m * math.Pow(10, e); v >= s.low && v <= s.high {
					out = append(out, v)
				}
			}
		}
		if len(out) <= about+2 || len(steps) == 1 {
			return thin(out, about+2)
		}
	}
	return nil
}

// thin returns every k-th value, at most atMost.
func thin(values []float64, atMost int) []float64 {
	k := (len(values) + atMost - 1) / atMost
	if k <= 1 {
		return values
	}
	var out []float64
	for i := 0; i < len(values); i += k {
		out = append(out, values[i])
	}
	return out
}

func niceStep(rough float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= rough {
			return m * power
		}
	}
	return 10 * power
}

// trimFloat writes a round number without zeros that say nothing.
func trimFloat(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// within returns the pixels of the figures between from and to, of which an infinite one is the edge of the plot.
func (s scale) within(from, to, left, right float64) (low, high float64) {
	low, high = left, right
	if !math.IsInf(from, 0) {
		low = s.at(from)
	}
	if !math.IsInf(to, 0) {
		high = s.at(to)
	}
	return low, high
}

// finite returns the values that are finite.
func finite(values ...float64) []float64 {
	return slices.DeleteFunc(values, func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) })
}
