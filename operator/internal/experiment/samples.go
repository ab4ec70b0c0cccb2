package experiment

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// How many merged samples a percentile needs before it exists. Two rules, of which the stricter holds:
//
// Early stopping in MLPerf LoadGen (Reddi et al. 2020, MLPerf Inference Benchmark, ISCA, and LoadGen's early_stopping.cc): so many
// that with 99 % confidence at most a share 1-p of all samples exceeds the value that one of them exceeded. That takes 662 samples
// for p99 (and 459 if none did, of which the largest sample would be the percentile).
//
// Ten samples beyond it for p90, p95 and p99, as a rule of thumb.
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

// MinSamples is how many samples of an arm at a point a statistic needs, over all its trials; 0 when one is enough.
func MinSamples(statistic Statistic) int { return minSamples[statistic] }

// EarlyStopping is the smallest number of samples of which so many may exceed a value that is, with the confidence, at least the
// percentile: the smallest n with P(Binomial(n, 1-share) <= overruns) <= 1 - confidence.
func EarlyStopping(share, confidence float64, overruns int) int {
	for n := overruns + 1; ; n++ {
		// The incomplete beta function is that probability.
		if mathext.RegIncBeta(float64(n-overruns), float64(overruns+1), share) <= 1-confidence {
			return n
		}
	}
}
