package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// ShareLimits are the exact limits of a share (Clopper and Pearson 1934, Biometrika 26:404).
func ShareLimits(count, of int, confidence float64) (low, high float64) {
	alpha, k, n := 1-confidence, float64(count), float64(of)
	low, high = 0, 1
	if count > 0 {
		low = distuv.Beta{Alpha: k, Beta: n - k + 1}.Quantile(alpha / 2)
	}
	if count < of {
		high = distuv.Beta{Alpha: k + 1, Beta: n - k}.Quantile(1 - alpha/2)
	}
	return low, high
}

// Table has the number of hits and of trials of two arms.
type Table struct{ A, OfA, B, OfB int }

// P returns the two-sided p-value of Fisher's exact test (1935, Journal of the Royal Statistical Society 98:39): the probability of this
// table or a less probable one, if both arms have the same rate of hits. It is 1 if an arm has no trial.
func (t Table) P() float64 {
	hit, all := t.A+t.B, t.OfA+t.OfB
	if t.OfA == 0 || t.OfB == 0 || hit == 0 || hit == all {
		return 1
	}
	logChoose := func(n, k int) float64 { return combin.LogGeneralizedBinomial(float64(n), float64(k)) }
	log := func(k int) float64 { return logChoose(t.OfA, k) + logChoose(t.OfB, hit-k) - logChoose(all, hit) }
	// Tables with the same probability count in spite of the rounding of their logarithms.
	const slack = 1e-7
	observed, sum := log(t.A), 0.0
	for k := max(0, hit-t.OfB); k <= min(hit, t.OfA); k++ {
		if probability := log(k); probability <= observed+slack {
			sum += math.Exp(probability)
		}
	}
	return math.Min(1, sum)
}

// least returns the smallest p-value for this number of hits and trials, which is that of all possible hits in one arm.
func (t Table) least() float64 {
	hit := t.A + t.B
	of := func(a int) float64 { return Table{a, t.OfA, hit - a, t.OfB}.P() }
	return min(of(max(0, hit-t.OfB)), of(min(hit, t.OfA)))
}

// Shared returns the level of each of several exact tests with a family-wise error rate of level. The level is shared among the tests
// whose trials and hits allow a p-value that small (Tarone 1990, Biometrics 46:515). A test that cannot reach significance cannot raise a
// false alarm, and takes no share.
func Shared(level float64, tables []Table) float64 {
	least, known := make([]float64, len(tables)), map[Table]float64{} // Among thousands of points there are few different tables.
	for i, table := range tables {
		of, ok := known[table]
		if !ok {
			of = table.least()
			known[table] = of
		}
		least[i] = of
	}
	slices.Sort(least)
	share := 1
	for share < len(least) && least[share] <= level/float64(share) {
		share++ // More tests can reach the level than share it.
	}
	return level / float64(share)
}

// An effect in few blocks may be absent from those that ran. A design that declares the size of such a slowdown
// (spec.design.rareSlowdown) has gates that allow for it at the highest frequency that the blocks do not exclude. Otherwise the analysis
// describes the effects that may be missed.

// UnseenShare returns the highest share of affected blocks with which none of n blocks is affected with probability level, the exact form
// of the rule of three (Hanley and Lippman-Hand 1983, JAMA 249:1743).
func UnseenShare(n int, level float64) float64 { return 1 - math.Pow(level, 1/float64(n)) }
