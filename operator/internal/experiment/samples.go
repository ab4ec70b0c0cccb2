package experiment

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// A percentile requires a minimum number of merged samples. The stricter of two rules applies.
//
// Early stopping in MLPerf LoadGen (Reddi et al. 2020, MLPerf Inference Benchmark, ISCA, and LoadGen's early_stopping.cc) requires enough
// samples that with 99 % confidence at most a share 1-p of all samples exceeds the value that one of them exceeded. That takes 662 samples
// for p99, or 459 if none exceeded it, in which case the percentile would be the largest sample.
//
// As a rule of thumb, ten samples beyond the percentile from p90 up.
const (
	percentileConfidence = 0.99
	percentileOverruns   = 1
	samplesBeyond        = 10
)

var minSamples = func() map[Statistic]int {
	out := map[Statistic]int{}
	for statistic, share := range Percentiles {
		out[statistic] = EarlyStopping(share, percentileConfidence, percentileOverruns)
		if share > 0.5 {
			out[statistic] = max(out[statistic], int(math.Round(samplesBeyond/(1-share))))
		}
	}
	return out
}()

// MinSamples returns the number of samples of an arm at a point that a statistic needs, over all its trials; 0 if one is enough.
func MinSamples(statistic Statistic) int { return minSamples[statistic] }

// EarlyStopping returns the smallest sample count n for which, with the confidence, a value exceeded by at most overruns samples is at
// least the percentile: the smallest n with P(Binomial(n, 1-share) <= overruns) <= 1 - confidence.
func EarlyStopping(share, confidence float64, overruns int) int {
	// The incomplete beta function is that probability. It decreases with n.
	enough := func(n int) bool {
		return mathext.RegIncBeta(float64(n-overruns), float64(overruns+1), share) <= 1-confidence
	}
	least, most := overruns+1, overruns+1
	for !enough(most) {
		most *= 2
	}
	return least + sort.Search(most-least, func(more int) bool { return enough(least + more) })
}
