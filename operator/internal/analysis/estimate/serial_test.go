package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/analysis/stats"
)

// Blocks that depend on each other have an interval that holds, and no wider one than it takes: three movements carry that of a few
// blocks, and would make that of many 2.6 times as wide as if the blocks were independent.
func TestSerial_IntervalOfDependentBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs, confidence, rho = 400, 0.95, 0.8
	for _, c := range []struct {
		blocks  int
		widest  float64
		covered float64
	}{{40, 2.7, 0.8}, {80, 2.2, 0.88}, {150, 1.7, 0.9}, {300, 1.5, 0.9}} {
		t.Run(fmt.Sprintf("%d blocks", c.blocks), func(t *testing.T) {
			choice := cosinesOfDependent(c.blocks, confidence)
			if factor := choice.width(confidence) / stats.StudentQuantile((1+confidence)/2, float64(c.blocks-1)); factor > c.widest {
				t.Errorf("%+v is %.2f times as wide as that of independent blocks, want at most %.2f", choice, factor, c.widest)
			}
			random, covered := rand.New(rand.NewPCG(1, uint64(c.blocks))), 0
			for range runs {
				series, value := make([]float64, c.blocks), random.NormFloat64()/math.Sqrt(1-rho*rho)
				for i := range series {
					series[i] = value
					value = rho*value + random.NormFloat64()
				}
				center := stats.Mean(series)
				for i := range series {
					series[i] -= center
				}
				se := math.Sqrt(choice.inflation * stats.Mean(cosineVariances(series)[:choice.cosines]) / float64(c.blocks))
				if math.Abs(center) <= stats.StudentQuantile((1+confidence)/2, choice.df)*se {
					covered++
				}
			}
			if share := float64(covered) / runs; share < c.covered {
				t.Errorf("intervals cover the truth in %.3f of runs, want at least %.2f", share, c.covered)
			}
		})
	}
}

func TestSerial_SlowCosinesGrowWithBlocks(t *testing.T) {
	for blocks, want := range map[int]int{minSeries: 3, 10: 3, 30: 3, 60: 6, 150: 11, 200: 14} {
		if got := slowCosines(blocks); got != want {
			t.Errorf("%d of %d blocks' movements count as slow, want %d", got, blocks, want)
		}
	}
}
