package estimate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCosineVariances_EqualDirectSum compares with the definition.
func TestCosineVariances_EqualDirectSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := 2; n < 130; n++ {
		series := make([]float64, n)
		for i := range series {
			series[i] = random.NormFloat64()
		}
		for j, got := range cosineVariances(series) {
			var c float64
			for i, value := range series {
				c += value * cosine(j+1, i, float64(n))
			}
			if want := 2 * c * c / float64(n); math.Abs(got-want) > 1e-9*(1+want) {
				t.Fatalf("movement %d of %d blocks: got %v, want %v", j, n, got, want)
			}
		}
	}
}
