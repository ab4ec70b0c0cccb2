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

// Table is how many of so many trials were hit in each of two arms.
type Table struct{ A, OfA, B, OfB int }

// P is the two-sided p-value of Fisher's exact test (1935, Journal of the Royal Statistical Society 98:39): how probable it is that so
// many are hit in one arm and so many in the other, or something less probable still, if both are hit at the same rate. It is 1 where an
// arm has no trial.
func (t Table) P() float64 {
	hit, all := t.A+t.B, t.OfA+t.OfB
	if t.OfA == 0 || t.OfB == 0 || hit == 0 || hit == all {
		return 1
	}
	logChoose := func(n, k int) float64 { return combin.LogGeneralizedBinomial(float64(n), float64(k)) }
	log := func(k int) float64 { return logChoose(t.OfA, k) + logChoose(t.OfB, hit-k) - logChoose(all, hit) }
	// Tables that are as probable as this one count, whatever the last digit of their logarithms.
	const slack = 1e-7
	observed, sum := log(t.A), 0.0
	for k := max(0, hit-t.OfB); k <= min(hit, t.OfA); k++ {
		if probability := log(k); probability <= observed+slack {
			sum += math.Exp(probability)
		}
	}
	return math.Min(1, sum)
}

// least is the smallest p-value that as many hits among as many trials can have: all that are possible in one of the arms.
func (t Table) least() float64 {
	hit := t.A + t.B
	of := func(a int) float64 { return Table{a, t.OfA, hit - a, t.OfB}.P() }
	return min(of(max(0, hit-t.OfB)), of(min(hit, t.OfA)))
}

// Shared is the level of each of several exact tests if in all of them together chance is to be taken for a difference no more often than
// level says: shared among those whose trials and hits allow a p-value so small (Tarone 1990, Biometrics 46:515). A test that cannot come
// out is no chance to be wrong, and takes nothing from the others.
func Shared(level float64, tables []Table) float64 {
	least, known := make([]float64, len(tables)), map[Table]float64{} // Of thousands of points most have one of a few tables.
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
		share++ // More of them can come out than share it.
	}
	return level / float64(share)
}

// What happens in few blocks may happen in none of those that ran, and then nothing in them tells that it ever does. A design
// that declares how slow such a block may be (spec.design.rareSlowdown) has its gates hold also if such blocks are as frequent
// as those that ran cannot exclude. Without it the analysis says what it cannot have seen.

// UnseenShare is the highest share of blocks that something may happen in and still, as often as level says, in none of n: the
// exact form of the rule of three (Hanley and Lippman-Hand 1983, JAMA 249:1743).
func UnseenShare(n int, level float64) float64 { return 1 - math.Pow(level, 1/float64(n)) }
