package analysis

import "math"

// fisher is the two-sided p-value of Fisher's exact test (1935, Journal of the Royal Statistical Society 98:39): how probable it
// is that a of so many trials are hit in one arm and b of so many in the other, or something less probable still, if both are hit
// at the same rate. It is 1 where an arm has no trial.
func fisher(a, ofA, b, ofB int) float64 {
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
