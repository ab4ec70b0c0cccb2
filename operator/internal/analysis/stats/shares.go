package stats

import (
	"math"

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

// Fisher is the two-sided p-value of Fisher's exact test (1935, Journal of the Royal Statistical Society 98:39): how probable it
// is that a of so many trials are hit in one arm and b of so many in the other, or something less probable still, if both are hit
// at the same rate. It is 1 where an arm has no trial.
func Fisher(a, ofA, b, ofB int) float64 {
	hit, all := a+b, ofA+ofB
	if ofA == 0 || ofB == 0 {
		return 1
	}
	logChoose := func(n, k int) float64 {
		x, _ := math.Lgamma(float64(n + 1))
		y, _ := math.Lgamma(float64(k + 1))
		z, _ := math.Lgamma(float64(n - k + 1))
		return x - y - z
	}
	log := func(k int) float64 { return logChoose(ofA, k) + logChoose(ofB, hit-k) - logChoose(all, hit) }
	// Tables that are as probable as this one count, whatever the last digit of their logarithms.
	const slack = 1e-7
	observed, sum := log(a), 0.0
	for k := max(0, hit-ofB); k <= min(hit, ofA); k++ {
		if probability := log(k); probability <= observed+slack {
			sum += math.Exp(probability)
		}
	}
	return math.Min(1, sum)
}

// What happens in few blocks may happen in none of those that ran, and then nothing in them tells that it ever does. A design
// that declares how slow such a block may be (spec.design.rareSlowdown) has its gates hold also if such blocks are as frequent
// as those that ran cannot exclude. Without it the analysis says what it cannot have seen.

// UnseenShare is the highest share of blocks that something may happen in and still, as often as level says, in none of n: the
// exact form of the rule of three (Hanley and Lippman-Hand 1983, JAMA 249:1743).
func UnseenShare(n int, level float64) float64 { return 1 - math.Pow(level, 1/float64(n)) }
