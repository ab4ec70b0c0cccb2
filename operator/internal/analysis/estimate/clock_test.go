package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTheCommonStepIsFound: whatever the step and however few values, the step found is never smaller than the clock's, and with
// enough values it is the clock's.
func TestTheCommonStepIsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		step := math.Exp(10*random.Float64() - 15)
		var values []float64
		for range 2 + random.IntN(30) {
			values = append(values, float64(1+random.IntN(1000))*step)
		}
		slices.Sort(values)
		values = slices.Compact(values)
		got := commonStep(values)
		if got < step*0.999 || len(values) > 12 && got > step*1.001 {
			t.Fatalf("step %g of %d values, found %g", step, len(values), got)
		}
	}
}
