package chart

import (
	"math"
	"testing"
	"time"
)

// Histories and analyses are untrusted, so that their figures may have any value of a float.
func TestScale_ExtremeNumbersHaveFewTicks(t *testing.T) {
	numbers := []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), 0, 1, -1, 1e-30, 1e30, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 1e-320, 1e-308,
		1e-290, 1e290, 1e304, 1.7e308, math.MaxFloat64, -math.MaxFloat64, 1 + 0x1p-52,
	}
	for _, a := range numbers {
		for _, b := range numbers {
			for _, log := range []bool{false, true} {
				done := make(chan []float64, 1)
				s := newScale([]float64{a, b, 1}, log, 0, 100)
				if math.IsNaN(s.low+s.high) || math.IsInf(s.low, 0) || math.IsInf(s.high, 0) || s.low >= s.high || s.log && s.low <= 0 {
					t.Errorf("a scale of %g, 1 and %g is from %g to %g", a, b, s.low, s.high)
					continue
				}
				go func() { done <- s.ticks(5) }()
				select {
				case ticks := <-done:
					if len(ticks) > 50 {
						t.Errorf("a scale of %g, 1 and %g has %d ticks", a, b, len(ticks))
					}
				case <-time.After(time.Minute):
					t.Fatalf("the ticks of a scale of %g, 1 and %g take more than a minute", a, b)
				}
			}
		}
	}
}
