package estimate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// differenceOf simulates blocks of four trials of each arm and returns the difference of their metric.
func differenceOf(blocks int, confidence float64, draw func(arm, block int) float64) Inference {
	mine, theirs := Quantity{selection.At(0, 1), "m", experiment.StatisticValue}, Quantity{selection.At(0, 0), "m", experiment.StatisticValue}
	d := &Data{Exp: &experiment.Experiment{}, Confidence: confidence, GateConfidence: confidence, series: map[Quantity]map[string][]float64{
		mine: {}, theirs: {},
	}}
	for block := range blocks {
		name := record.BlockName(0, block)
		for range 4 {
			d.series[theirs][name] = append(d.series[theirs][name], draw(0, block))
			d.series[mine][name] = append(d.series[mine][name], draw(1, block))
		}
	}
	return d.pairedDifference(mine, theirs)
}

// The interval of a difference covers the truth, for blocks that differ from each other, for counts of which most are 0, and for heavy
// tails.
func TestCoverage_Differences(t *testing.T) {
	t.Parallel()
	runs := 2000
	if testing.Short() {
		runs = 200
	}
	poisson := func(random *rand.Rand, mean float64) (count float64) {
		for left := math.Exp(-mean); ; count++ {
			if left /= random.Float64(); left >= 1 {
				return count
			}
		}
	}
	for name, c := range map[string]struct {
		truth float64
		draw  func(random *rand.Rand, of map[int]float64) func(arm, block int) float64
	}{
		"levels of blocks far apart": {5, func(random *rand.Rand, level map[int]float64) func(arm, block int) float64 {
			return func(arm, block int) float64 {
				if _, known := level[block]; !known {
					level[block] = 1000 * random.Float64()
				}
				return level[block] + 5*float64(arm) + random.NormFloat64()
			}
		}},
		"counts of 0.5 and 1": {0.5, func(random *rand.Rand, _ map[int]float64) func(arm, block int) float64 {
			return func(arm, _ int) float64 { return poisson(random, 0.5+0.5*float64(arm)) }
		}},
		"a baseline of 0": {2, func(random *rand.Rand, _ map[int]float64) func(arm, block int) float64 {
			return func(arm, _ int) float64 { return float64(arm) * poisson(random, 2) }
		}},
		"heavy tails": {-1, func(random *rand.Rand, _ map[int]float64) func(arm, block int) float64 {
			return func(arm, _ int) float64 { return 10 - float64(arm) + heavy(random) }
		}},
	} {
		for _, blocks := range []int{5, 12, 20} {
			random := rand.New(rand.NewPCG(54, uint64(blocks)))
			hits := 0
			for range runs {
				found := differenceOf(blocks, 0.95, c.draw(random, map[int]float64{}))
				if !found.HasInterval() {
					t.Fatalf("%s, %d blocks: %s", name, blocks, found.Reason)
				}
				if found.Low <= c.truth && c.truth <= found.High {
					hits++
				}
			}
			coverage := float64(hits) / float64(runs)
			// Three standard errors below the level; a conservative interval has no upper limit of its coverage.
			lowest := 0.95 - 3*math.Sqrt(0.95*0.05/float64(runs))
			t.Logf("difference, %s, %d blocks: coverage %.3f of %d", name, blocks, coverage, runs)
			if coverage < lowest {
				t.Errorf("difference, %s, %d blocks: coverage %.3f of %d is below %.3f", name, blocks, coverage, runs, lowest)
			}
		}
	}
}

// A shift of both arms by the same number does not change a difference, and exchanging the arms changes its sign.
func TestDifference_ShiftAndExchange(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64, shift, sign float64) Inference {
		random := rand.New(rand.NewPCG(seed, 54))
		return differenceOf(10, 0.95, func(arm, _ int) float64 {
			value := random.NormFloat64()
			if arm == 1 {
				value += 3
			}
			return shift + sign*value
		})
	}
	for seed := range uint64(20) {
		plain, shifted, negated := draw(seed, 0, 1), draw(seed, 1e4, 1), draw(seed, 0, -1)
		for _, pair := range [][2]float64{
			{plain.Value, shifted.Value}, {plain.Low, shifted.Low}, {plain.High, shifted.High},
			{plain.Value, -negated.Value}, {plain.Low, -negated.High}, {plain.High, -negated.Low},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-6 {
				t.Errorf("seed %d: %g and %g in %+v", seed, pair[0], pair[1], []Inference{plain, shifted, negated})
			}
		}
	}
}

func TestDifference_TooFewBlocksAndPercentiles(t *testing.T) {
	t.Parallel()
	made := newTrials(faults, 1, 2)
	made.addBlocks(0, 0, 0, 0, 0)
	made.addBlocks(1, 0, 2)
	if got := made.data().Difference(0, 1, faults.Name, experiment.StatisticValue); got.HasInterval() ||
		!strings.Contains(got.Reason, "2 of at least 3 blocks") {
		t.Errorf("%+v", got)
	}
	percentile := newTrials(faults, 1, 2)
	for range 4 {
		percentile.addBlocks(0, 0, 0, 0, 0, 0, 0)
		percentile.addBlocks(1, 2, 2, 2, 2, 2, 2)
	}
	got := percentile.data().Difference(0, 1, faults.Name, experiment.StatisticP50)
	if !got.HasInterval() || got.Value != 2 || got.Low != 2 || got.High != 2 {
		t.Errorf("a percentile of zeros: %+v", got)
	}
}

// A step of the clock moves the ends in its unit, by one step where the arms share the clock.
func TestDifference_ClockWidensByItsStep(t *testing.T) {
	t.Parallel()
	metric := experiment.Metric{Name: "latency", Unit: "s", Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticValue}
	made := newTrials(metric, 1, 2)
	made.addBlocks(0, 0.10, 0.10, 0.11, 0.10, 0.10, 0.11)
	made.addBlocks(1, 0.13, 0.14, 0.13, 0.13, 0.14, 0.13)
	d := made.data()
	got := d.Difference(0, 1, metric.Name, experiment.StatisticValue)
	without := d.pairedDifference(Quantity{selection.At(0, 1), metric.Name, experiment.StatisticValue},
		Quantity{selection.At(0, 0), metric.Name, experiment.StatisticValue})
	moved := func(by float64) bool { return math.Abs(by-0.01) < 1e-9 }
	if got.Resolution == nil || !got.Resolution.Widened || !moved(without.Low-got.Low) || !moved(got.High-without.High) {
		t.Errorf("[%g, %g] with the clock and [%g, %g] without: %+v", got.Low, got.High, without.Low, without.High, got.Resolution)
	}
}
