package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// trialsOf adds four trials of samples to ten blocks of two arms.
func trialsOf(metric experiment.Metric, draw func(arm int) []float64) *Data {
	made := newTrials(metric, 1, 2)
	for arm := range 2 {
		for trial := range 40 {
			made.add(selection.At(0, arm), fmt.Sprintf("b%02d", trial%10), draw(arm)...)
		}
	}
	return made.data()
}

// slowFirst draws samples of which the first of each trial is 2.2 times as slow.
func slowFirst(random *rand.Rand, samples int) func(int) []float64 {
	return func(int) []float64 {
		var out []float64
		for i := range samples {
			value := math.Exp(0.01 * random.NormFloat64())
			if i == 0 {
				value *= 2.2
			}
			out = append(out, value)
		}
		return out
	}
}

func TestPercentile_AtGapIncludesGap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		samples   int
		statistic experiment.Statistic
		gap       bool
	}{
		{20, experiment.StatisticP95, true}, {20, experiment.StatisticP50, false}, {20, experiment.StatisticP90, false},
		{10, experiment.StatisticP90, true}, {10, experiment.StatisticP95, false}, {2, experiment.StatisticP50, true},
		{100, experiment.StatisticP99, true}, {100, experiment.StatisticP95, false},
	} {
		d := trialsOf(seconds, slowFirst(random, c.samples))
		mine, theirs := Quantity{selection.At(0, 1), seconds.Name, c.statistic}, Quantity{selection.At(0, 0), seconds.Name, c.statistic}
		for what, found := range map[string]Inference{
			"ratio": d.Compare(mine, theirs), "difference": d.Difference(0, 1, seconds.Name, c.statistic), "level": d.Level(mine),
		} {
			wide := found.High-found.Low > 0.5
			if wide != c.gap || strings.Contains(found.Note, "edge of a gap") != c.gap {
				t.Errorf("%s of %s of %d samples: [%g, %g], note %q; gap %v", what, c.statistic, c.samples, found.Low, found.High, found.Note, c.gap)
			}
		}
	}
}

// Distributions without a gap, histograms with few buckets and coarse clocks have none.
func TestPercentile_SmoothDistributionHasNoGap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	draws := map[string]func() float64{
		"normal":       func() float64 { return math.Exp(0.01 * random.NormFloat64()) },
		"exponential":  func() float64 { return 1 + random.ExpFloat64() },
		"Pareto":       func() float64 { return math.Pow(1-random.Float64(), -1/1.5) },
		"bimodal":      func() float64 { return 1 + float64(random.IntN(2)) + 0.01*random.NormFloat64() },
		"coarse clock": func() float64 { return 0.01 * math.Round(100+2*random.NormFloat64()) },
	}
	for name, draw := range draws {
		found := 0
		const times = 10
		for range times {
			d := trialsOf(seconds, func(int) []float64 {
				var out []float64
				for range 20 {
					out = append(out, draw())
				}
				return out
			})
			got := d.Compare(Quantity{selection.At(0, 1), seconds.Name, experiment.StatisticP95}, Quantity{selection.At(0, 0), seconds.Name,
				experiment.StatisticP95})
			if strings.Contains(got.Note, "gap") {
				found++
			}
		}
		if found > 0 {
			t.Errorf("%s: a gap in %d of %d", name, found, times)
		}
	}
}

func TestReadBy_RoundedFigures(t *testing.T) {
	t.Parallel()
	of := func(unit string) experiment.Metric {
		return experiment.Metric{Name: "time", Unit: unit, Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticValue}
	}
	constant, fine := []float64{87}, []float64{86.13, 87.78, 87.21, 87.94, 88.02}
	for name, c := range map[string]struct {
		unit     string
		old, new []float64
		step     float64
		averages bool
	}{
		"whole numbers in an unknown unit":        {"points", constant, constant, 1, false},
		"two neighbouring whole numbers":          {"points", []float64{87, 88}, []float64{87, 88}, 1, false},
		"whole numbers that spread":               {"points", []float64{84, 85, 86, 88, 89}, []float64{84, 85, 86, 88, 90}, 1, true},
		"far more spread than a digit":            {"points", []float64{50, 61, 72, 83}, []float64{51, 62, 73, 84}, 0, false},
		"digits finer than the spread":            {"points", fine, fine, 0, false},
		"allocations are counted":                 {"allocs/op", constant, constant, 0, false},
		"a size is exact":                         {"KiB", constant, constant, 0, false},
		"a share is computed":                     {"1", constant, constant, 0, false},
		"rates rounded to whole numbers":          {"1/s", []float64{87, 88}, []float64{87, 88}, 1, false},
		"an arm with coarser digits than another": {"points", fine, constant, 1, false},
	} {
		d := readingsOf(of(c.unit), c.old, c.new).data()
		got := d.readBy(Quantity{selection.At(0, 1), "time", experiment.StatisticValue})
		if !near(got.step, c.step) || (got.left < 0.2 && got.step > 0) != c.averages {
			t.Errorf("%s: %+v, want a step of %g, averages %v", name, got, c.step, c.averages)
		}
	}
}
