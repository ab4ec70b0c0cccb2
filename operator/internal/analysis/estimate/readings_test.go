package estimate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func ticks(step float64, counts ...float64) []float64 {
	out := make([]float64, len(counts))
	for i, count := range counts {
		out[i] = step * count
	}
	return out
}

func upTo(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i + 1)
	}
	return out
}

func TestKnownTick_MultiplesWithinTheirDigits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []float64
		unit   float64
		want   float64
	}{
		"60 Hz in seconds":                    {[]float64{0.016667, 0.033333, 0.083333}, 1, 1. / 60},
		"64 Hz in milliseconds":               {[]float64{15.625, 31.25}, 1e-3, 15.625},
		"64 Hz, off by the last digit":        {[]float64{0.016, 0.031}, 1, 1. / 64},
		"off by two of the last digit":        {[]float64{0.018, 0.031}, 1, 0},
		"one value":                           {[]float64{15.625}, 1e-3, 0},
		"a digit of a quarter of the tick":    {[]float64{0.02, 0.03}, 1, 0},
		"less than half a tick":               {[]float64{0.001001, 0.015625}, 1, 0},
		"one value between ticks":             {[]float64{0.015625, 0.02, 0.03125}, 1, 0},
		"as many ticks as are examined":       {ticks(1./64, upTo(mostTicks)...), 1, 1. / 64},
		"more ticks than are examined":        {ticks(1./64, upTo(mostTicks+1)...), 1, 0},
		"unit of unknown length":              {[]float64{15.625, 31.25}, 0, 0},
		"long times with an error of doubles": {[]float64{1e6 + 15.625e-3, 1e6 + 31.25e-3}, 1, 1. / 64},
	} {
		if got := knownTick(c.values, c.unit); !near(got, c.want) {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

func TestRepeated_StepOfFewReadings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []float64
		count  int
		want   float64
	}{
		"no reading":                          {nil, 0, 0},
		"one value read three times":          {[]float64{5}, 3, 5},
		"one value read twice":                {[]float64{5}, 2, 0},
		"two values read three times each":    {[]float64{5, 9}, 6, 4},
		"two values of five readings":         {[]float64{5, 9}, 5, 0},
		"three values":                        {[]float64{5, 9, 11}, 9, 2},
		"three values, the smallest gap last": {[]float64{5, 7, 11}, 9, 2},
		"four values":                         {[]float64{5, 9, 11, 16}, 100, 0},
		"one value that was rounded":          {[]float64{1.00001, 1.00002, 1.00003}, 3, 1.00003},
		"two values that were rounded":        {[]float64{1.00001, 1.00002, 2.00001}, 6, 2.00001 - 1.00002},
		"gaps of many coarse digits":          {[]float64{1.0, 1.1, 1.2}, 9, 0.1},
		"more values than are examined":       {upTo(mostTicks + 1), 1 << 20, 0},
	} {
		if got := repeated(c.values, c.count); !near(got, c.want) {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

func TestLastDigit_OfNumbers(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]float64{
		0.1: 0.1, 0.0125: 1e-4, 1234.5: 0.1, 15: 1, 1500: 100, 1e-6: 1e-6, 7: 1, 3.0000000000000004: 1,
	} {
		if got := lastDigit(value); !near(got, want) {
			t.Errorf("%g: %g, want %g", value, got, want)
		}
	}
	if got := finestDigit([]float64{1, 0.25, 10}); got != 0.01 {
		t.Errorf("finest digit %g, want 0.01", got)
	}
	if got := finestDigit(nil); !math.IsInf(got, 1) {
		t.Errorf("finest digit %g of no values", got)
	}
}

func TestFits_MultiplesOfStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []float64
		step   float64
		lost   float64
		want   bool
		found  float64
	}{
		"exact multiples":               {ticks(0.01, 1, 2, 5), 0.01, math.Inf(1), true, 0.01},
		"a step that is not exact":      {ticks(0.01, 1, 20, 50), 0.010001, math.Inf(1), true, 0.01},
		"a value between two multiples": {ticks(0.01, 1, 2.03, 5), 0.01, math.Inf(1), false, 0},
		"a value near a multiple":       {ticks(0.01, 1, 2, 2.01, 5), 0.01, math.Inf(1), true, 0},
		"below a multiple":              {ticks(0.01, 1, 1.97, 5), 0.01, math.Inf(1), false, 0},
		"three readings of a multiple":  {ticks(0.01, 1, 1.001, 1.002), 0.01, math.Inf(1), true, 0},
		"four readings of a multiple":   {ticks(0.01, 1, 1.001, 1.002, 1.003), 0.01, math.Inf(1), false, 0},
		"readings of equal times":       {[]float64{1, 1 + 1e-7, 1 + 2e-7, 1 + 3e-7}, 1, 1e-5, true, 0},
		"readings that time resolves":   {[]float64{1, 1 + 1e-6, 1 + 2e-6, 1 + 3e-6}, 1, 1e-7, false, 0},
	} {
		step := c.step
		if got := fits(c.values, &step, c.lost); got != c.want || c.found != 0 && !near(step, c.found) {
			t.Errorf("%s: %v with %g, want %v with %g", name, got, step, c.want, c.found)
		}
	}
}

func TestCommonStep_OfFewValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ values, want []float64 }{
		"three exact multiples":           {ticks(0.01, 2, 3, 7), []float64{0.01}},
		"two values":                      {ticks(1, 10, 15), []float64{5}},
		"three multiples with an error":   {[]float64{0.02, 0.0300001, 0.07}, []float64{0}},
		"four multiples with an error":    {[]float64{0.02, 0.0300001, 0.05, 0.07}, []float64{0.01}},
		"a step of a millionth":           {[]float64{1 - 1e-6, 1}, []float64{0, 1e-6}},
		"a step of less than a millionth": {[]float64{1 - 1e-7, 1}, []float64{0}},
		"all one multiple":                {[]float64{3}, []float64{3}},
	} {
		got := commonStep(c.values, math.Inf(1))
		if !slices.ContainsFunc(c.want, func(want float64) bool { return math.Abs(got-want) <= 1e-4*want }) {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
	for _, c := range []struct{ a, b, tolerance, want float64 }{
		{6, 4, 0.1, 2}, {0, 5, 0.1, 5}, {5, 0, 0.1, 5}, {6, 3.99, 0.1, 2.01}, {6, 5.95, 0.1, 5.95}, {6, 2.02, 0.1, 2.02},
	} {
		if got := commonDivisor(c.a, c.b, c.tolerance); !near(got, c.want) {
			t.Errorf("common divisor of %g and %g within %g: %g, want %g", c.a, c.b, c.tolerance, got, c.want)
		}
	}
}

func TestDeviation_AndWhetherReadingsMove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
		moves  bool
	}{
		{[]float64{1, 3}, math.Sqrt2, true}, {[]float64{1, 2, 3}, 1, true}, {[]float64{4}, 0, false}, {[]float64{4, 4, 4}, 0, false},
		{[]float64{-1, -1 - 1e-8}, 1e-8 / math.Sqrt2, true}, {[]float64{1, 1 + 1e-10}, 1e-10 / math.Sqrt2, false},
	} {
		if got := deviation(c.values); math.Abs(got-c.want) > 1e-6*c.want || moves(c.values) != c.moves {
			t.Errorf("%v: deviation %g and moves %v, want %g and %v", c.values, got, moves(c.values), c.want, c.moves)
		}
	}
}

// readingsOf adds ten blocks with the readings of two arms in turn.
func readingsOf(metric experiment.Metric, old, new []float64) *trials {
	made := newTrials(metric, 1, 2)
	for arm, readings := range [][]float64{old, new} {
		values := make([]float64, 10)
		for i := range values {
			values[i] = readings[i%len(readings)]
		}
		made.addBlocks(arm, values...)
	}
	return made
}

// The clock of 0.01 s has its step in the readings 0.05, 0.06, 0.08 and 0.09.
func TestOnClock_WidensByStep(t *testing.T) {
	t.Parallel()
	rate := experiment.Metric{Name: "rate", Unit: "queries/s", Direction: experiment.HigherIsBetter, Statistic: experiment.StatisticValue}
	count := experiment.Metric{Name: "size", Unit: "By", Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticValue}
	few, many := []float64{0.05, 0.06}, []float64{0.05, 0.06, 0.08, 0.09}
	for name, c := range map[string]struct {
		metric   experiment.Metric
		old, new []float64
		// width of the ratio on the logarithmic scale, and of the level of the second arm.
		ratio, level float64
		relative     float64
		assumed      bool
		unresolved   *float64
	}{
		"a constant of both arms": {
			metric: seconds, old: []float64{0.05}, new: []float64{0.05}, ratio: math.Ln2, level: 0.05, relative: 1, assumed: true,
			unresolved: stats.Finite(1),
		},
		"each arm constant, at different values": {
			metric: seconds, old: []float64{0.05}, new: []float64{0.1}, ratio: 2 * math.Ln2, level: 0.1, relative: 1, assumed: true,
			unresolved: stats.Finite(1),
		},
		"neighbouring steps": {
			metric: seconds, old: few, new: few, ratio: math.Log1p(0.01 / 0.055), level: 0.01, relative: 0.01 / 0.055,
			unresolved: stats.Finite(0.01 / 0.055),
		},
		"readings over several steps": {metric: seconds, old: many, new: many, relative: 0.01 / 0.067},
		"readings of 0":               {metric: seconds, old: many, new: []float64{0, 0}, relative: 1, level: 0.01},
		"a rate": {
			metric: rate, old: []float64{1 / 0.05, 1 / 0.06}, new: []float64{1 / 0.05, 1 / 0.06}, ratio: math.Log1p(0.01 / 0.055),
			level: 0.01 / 0.055 * (20 + 1/0.06) / 2, relative: 0.01 / 0.055, unresolved: stats.Finite(0.01 / 0.055),
		},
		"a size": {metric: count, old: few, new: few},
	} {
		t.Run(name, func(t *testing.T) {
			d := readingsOf(c.metric, c.old, c.new).data()
			mine, theirs := Quantity{selection.At(0, 1), c.metric.Name, experiment.StatisticValue},
				Quantity{selection.At(0, 0), c.metric.Name, experiment.StatisticValue}
			widened := func(got, plain Inference, width float64) {
				t.Helper()
				if !got.HasInterval() {
					return
				}
				low, high := plain.Ends(0.99)
				wantEnds(t, got, 0.99, low-width, high+width)
				if a, b := got.At(0.95).Low, got.At(0.95).High; !near(got.Low, a) || !near(got.High, b) {
					t.Errorf("[%g, %g] is not the interval at the confidence of the run", got.Low, got.High)
				}
				switch {
				case (got.Resolution == nil) != (c.relative == 0):
					t.Errorf("resolution %+v, want a relative step of %g", got.Resolution, c.relative)
				case got.Resolution != nil && (!near(got.Resolution.Relative, c.relative) || got.Resolution.Assumed != c.assumed ||
					got.Resolution.Widened != (width > 0)):
					t.Errorf("resolution %+v, want a relative step of %g, assumed %v", got.Resolution, c.relative, c.assumed)
				}
			}
			widened(d.Compare(mine, theirs), d.pairedRatio(mine, theirs), c.ratio)
			blocks := d.PerBlock(mine)
			plain := d.OverBlocks(BlockMeans(blocks, false), Spread{}, false, false, 0)
			widened(d.Level(mine), plain, c.level)
			switch got := d.Unresolved(mine); {
			case (got == nil) != (c.unresolved == nil):
				t.Errorf("unresolved %+v", got)
			case got != nil && (!near(got.Relative, *c.unresolved) || got.Own != (name == "each arm constant, at different values")):
				t.Errorf("unresolved %+v, want %g", got, *c.unresolved)
			}
		})
	}
}

func TestOnClock_SilentClockHasNoInterval(t *testing.T) {
	t.Parallel()
	d := readingsOf(seconds, []float64{0}, []float64{0}).data()
	q := Quantity{selection.At(0, 1), "time", experiment.StatisticValue}
	if got := d.Level(q); !strings.Contains(got.Reason, "every reading of time is 0") {
		t.Errorf("reason %q", got.Reason)
	}
	if got := d.Unresolved(q); got != nil {
		t.Errorf("unresolved %+v", got)
	}
}

// An arm whose time never varies, beside one that varies over steps of a finer clock, has a separate coarse clock.
func TestReadBy_ConstantBesideVarying(t *testing.T) {
	t.Parallel()
	varying := []float64{0.0513, 0.0627, 0.0581, 0.0702, 0.0655}
	for name, c := range map[string]struct {
		old, new []float64
		want     readBy
	}{
		"a constant beside varying readings": {varying, []float64{0.06}, readBy{step: 0.06, near: 0.06, left: 1, assumed: true}},
		"both vary":                          {varying, varying, readBy{step: 1e-4, near: 0.06156, together: true}},
	} {
		d := readingsOf(seconds, c.old, c.new).data()
		got := d.readBy(Quantity{selection.At(0, 1), "time", experiment.StatisticValue})
		if !near(got.near, c.want.near) || !near(got.step, c.want.step) || got.assumed != c.want.assumed || got.left != c.want.left ||
			got.together != c.want.together || got.silent || got.bucket {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestReadings_OnePerTrialOrAllSamples(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 1, 1)
	made.add(selection.At(0, 0), "b1", 1, 2, 6)
	made.add(selection.At(0, 0), "b2", 0, 4, 5)
	d := made.data()
	for name, c := range map[string]struct {
		statistic experiment.Statistic
		rate      bool
		want      []float64
		averaged  bool
	}{
		"mean of samples":      {experiment.StatisticMean, false, []float64{1, 2, 6, 0, 4, 5}, true},
		"mean of rates":        {experiment.StatisticMean, true, []float64{1, 0.5, 1. / 6, 0.25, 0.2}, true},
		"percentile":           {experiment.StatisticP95, false, []float64{1, 2, 6, 0, 4, 5}, false},
		"median of each trial": {experiment.StatisticMedian, false, []float64{2, 4}, true},
		"largest of each rate": {experiment.StatisticMax, true, []float64{1. / 6, 0.2}, true},
	} {
		got, averaged := d.readings(Quantity{selection.At(0, 0), "time", c.statistic}, c.rate)
		if !slices.Equal(got, c.want) || averaged != c.averaged {
			t.Errorf("%s: %v, averaged %v, want %v", name, got, averaged, c.want)
		}
	}
}

func TestNegligibleBucket_BelowATenthOfTheHalfWidth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		relative, half float64
		want           bool
	}{{0.009, 0.1, true}, {0.011, 0.1, false}, {0, 0, false}} {
		if got := NegligibleBucket(c.relative, c.half); got != c.want {
			t.Errorf("%g of %g: %v", c.relative, c.half, got)
		}
	}
}

func TestRaw_WhatWasReported(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 1, 1)
	single, several := made.add(selection.At(0, 0), "b1", 3), made.add(selection.At(0, 0), "b2", 1, 2)
	several.Result.Phases = []record.Phase{{Name: "load", Samples: []float64{1, 3}}, {Name: "load", Samples: []float64{5}}, {Name: "scan"}}
	bars := made.add(selection.At(0, 0), "b3", 1)
	bars.Result.Metrics["time"] = &record.Metric{Histogram: &record.Histogram{}}
	for name, c := range map[string]struct {
		attempt *record.Attempt
		metric  string
		want    []float64
	}{
		"one value":                 {single, "time", []float64{3}},
		"samples":                   {several, "time", []float64{1, 2}},
		"a histogram":               {bars, "time", nil},
		"another metric":            {single, "size", nil},
		"a phase":                   {several, "phase load", []float64{2, 5}},
		"a phase without samples":   {several, "phase scan", nil},
		"a phase that is not there": {single, "phase load", nil},
	} {
		if got := raw(c.attempt, c.metric); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
