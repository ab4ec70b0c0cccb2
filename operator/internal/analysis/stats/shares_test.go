package stats

import (
	"math"
	"testing"
)

// The values are sums of binomial coefficients, as R's fisher.test prints them.
func TestFishersExactTest(t *testing.T) {
	cases := map[string]struct {
		a, ofA, b, ofB int
		want           float64
	}{
		"the lady tasting tea":                 {3, 4, 1, 4, 0.4857143},
		"all of one arm and none of the other": {4, 4, 0, 4, 0.02857143},
		"the same in both":                     {5, 20, 5, 20, 1},
		"nobody was hit":                       {0, 20, 0, 20, 1},
		"six of twenty against none":           {6, 20, 0, 20, 0.02019602},
		"unequal numbers of trials":            {1, 12, 20, 30, 0.00139282},
		"an arm without a trial":               {0, 0, 3, 9, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Fisher(tc.a, tc.ofA, tc.b, tc.ofB)
			if math.Abs(got-tc.want) > 2e-6 {
				t.Errorf("p = %.8f, want %.8f", got, tc.want)
			}
			if other := Fisher(tc.b, tc.ofB, tc.a, tc.ofA); math.Abs(other-got) > 1e-12 {
				t.Errorf("p = %v one way round and %v the other", got, other)
			}
		})
	}
}

func TestShareLimitsHoldTheirLevel(t *testing.T) {
	if _, high := ShareLimits(19, 20, 0.99); high >= 1 {
		t.Errorf("19 of 20 may be all: %g", high)
	}
	if low, high := ShareLimits(20, 20, 0.95); high != 1 || math.Abs(low-math.Pow(0.025, 1.0/20)) > 1e-12 {
		t.Errorf("20 of 20: [%g, %g]", low, high)
	}
}
