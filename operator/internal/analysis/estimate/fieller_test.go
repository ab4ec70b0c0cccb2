package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

// faults is a count of the runner, which may be 0.
var faults = experiment.Metric{
	Name: "process.majorPageFaults", Unit: "1", Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticValue,
}

// Fieller's interval is the set of the ratios c for which the mean of mine - c·theirs is within Student's quantile of its standard errors
// from 0: the roots of a quadratic.
func TestRatioOfMeans_EqualsFiellersQuadratic(t *testing.T) {
	t.Parallel()
	random, compared := rand.New(rand.NewPCG(8, 8)), 0
	for range 60 {
		blocks := 3 + random.IntN(10)
		made := newTrials(faults, 1, 2)
		mine, theirs := make([]float64, blocks), make([]float64, blocks)
		for i := range blocks {
			mine[i], theirs[i] = float64(random.IntN(6)), 20+float64(random.IntN(9))
		}
		mine[0] = 0
		made.addBlocks(0, theirs...)
		made.addBlocks(1, mine...)
		got := made.data().Ratio(0, 1, faults.Name, experiment.StatisticValue)
		n := float64(blocks)
		a, b := stats.Mean(mine), stats.Mean(theirs)
		var aa, bb, ab float64
		for i := range mine {
			aa += (mine[i] - a) * (mine[i] - a) / (n - 1) / n
			bb += (theirs[i] - b) * (theirs[i] - b) / (n - 1) / n
			ab += (mine[i] - a) * (theirs[i] - b) / (n - 1) / n
		}
		q := stats.StudentQuantile(0.975, n-1)
		// (a - c b)² = q² (aa - 2 c ab + c² bb)
		square, linear, constant := b*b-q*q*bb, 2*(q*q*ab-a*b), a*a-q*q*aa
		root := math.Sqrt(linear*linear - 4*square*constant)
		low, high := max(0, (-linear-root)/2/square), (-linear+root)/2/square
		if got.Series != nil && (got.Series.Skewed || got.Series.Dependent) || !got.HasInterval() || square <= 0 || a == 0 {
			continue // Then the interval is wider, or there is none.
		}
		compared++
		if !near(got.Value, a/b) || math.Abs(got.Low-low) > 1e-6*high || math.Abs(got.High-high) > 1e-6*high {
			t.Errorf("%v over %v: %g in [%g, %g], want %g in [%g, %g]", mine, theirs, got.Value, got.Low, got.High, a/b, low, high)
		}
		// The tail is the level whose interval ends at the bound.
		if p := got.Tail(high); math.Abs(p-0.025) > 1e-4 {
			t.Errorf("tail of the upper end is %g, want 0.025", p)
		}
		if low > 0 {
			if p := got.Tail(low); math.Abs(p-0.025) > 1e-4 {
				t.Errorf("tail of the lower end is %g, want 0.025", p)
			}
		}
		zeros := 0
		for _, value := range mine {
			if value == 0 {
				zeros++
			}
		}
		if want := fmt.Sprintf("is 0 in %d of %d trials", zeros, 2*blocks); !strings.Contains(got.Note, want) {
			t.Errorf("note %q, want %q", got.Note, want)
		}
		if got.Blocks != blocks || got.samples != 2*blocks || !near(got.SE, math.Sqrt(aa-2*a/b*ab+a*a/b/b*bb)/b) {
			t.Errorf("%d blocks, %d samples, standard error %g", got.Blocks, got.samples, got.SE)
		}
	}
	if compared < 30 {
		t.Errorf("only %d of 60 intervals were compared", compared)
	}
}

func TestRatioOfMeans_WithoutInterval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, new []float64
		noRatio  bool
		reason   string
	}{
		"a baseline that may be 0":        {old: []float64{0, 0, 9, 0}, new: []float64{1, 2, 1, 2}, noRatio: true, reason: "(in 3 of 8 trials)"},
		"two blocks of both arms":         {old: []float64{5, 6}, new: []float64{0, 2, 1, 2}, reason: "2 of at least 3 blocks have trials of both arms"},
		"three blocks of both arms":       {old: []float64{5, 6, 5}, new: []float64{0, 1, 0, 2}},
		"three blocks, more of the other": {old: []float64{5, 6, 5, 9}, new: []float64{0, 1, 0}},
	} {
		made := newTrials(faults, 1, 2)
		made.addBlocks(0, c.old...)
		made.addBlocks(1, c.new...)
		got := made.data().Ratio(0, 1, faults.Name, experiment.StatisticValue)
		if got.NoRatio != c.noRatio || !strings.Contains(got.Reason, c.reason) || got.HasInterval() != (c.reason == "") {
			t.Errorf("%s: no ratio %v: %q", name, got.NoRatio, got.Reason)
		}
		if c.reason == "" && got.Blocks != 3 {
			t.Errorf("%s: %d blocks", name, got.Blocks)
		}
	}
}

// A constant candidate of 0 has the ratio 0, which no bound above 0 allows for.
func TestRatioOfMeans_CandidateOfZero(t *testing.T) {
	t.Parallel()
	made := newTrials(faults, 1, 2)
	made.addBlocks(0, 5, 6, 5, 6)
	made.addBlocks(1, 0, 0, 0, 0)
	got := made.data().Ratio(0, 1, faults.Name, experiment.StatisticValue)
	if got.Value != 0 || got.Low != 0 || got.High > 1e-11 || got.Tail(0.5) != 0 {
		t.Errorf("%g in [%g, %g], tail %g", got.Value, got.Low, got.High, got.Tail(0.5))
	}
}

func TestCounted_AllButTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metric experiment.Metric
		of     string
		want   bool
	}{
		"page faults":        {faults, faults.Name, true},
		"time of a process":  {experiment.Metric{Name: "process.cpuTime", Unit: "s"}, "process.cpuTime", false},
		"time of a program":  {experiment.Metric{Name: "latency", Unit: "s"}, "latency", false},
		"time per item":      {experiment.Metric{Name: "latency", Unit: "ns/item"}, "latency", false},
		"count of a program": {experiment.Metric{Name: "allocs", Unit: "allocs"}, "allocs", true},
		"size":               {experiment.Metric{Name: "allocated", Unit: "By"}, "allocated", true},
		"rate":               {experiment.Metric{Name: "throughput", Unit: "queries/s"}, "throughput", true},
		"a metric not there": {faults, "other", false},
	} {
		if got := newTrials(c.metric, 1, 1).data().counted(c.of); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEdge_BoundaryBetweenRatios(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inside, outside float64
		excluded        func(float64) bool
		want            float64
	}{
		"above": {1, 10, func(r float64) bool { return r > 3 }, 3},
		"below": {1, 0, func(r float64) bool { return r < 0.25 }, 0.25},
		"large": {1, 1e9, func(r float64) bool { return r >= 12345678 }, 12345678},
		"at it": {1, 2, func(r float64) bool { return r > 1 }, 1},
	} {
		got := edge(c.inside, c.outside, c.excluded)
		if math.Abs(got-c.want) > 2e-12*max(1, c.want) || !c.excluded(got) {
			t.Errorf("%s: %v, want %v on the excluded side", name, got, c.want)
		}
	}
}

func TestPairedRatio_WithoutInterval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, new []float64
		noRatio  bool
		reason   string
	}{
		"three blocks of both":     {old: []float64{1, 2, 3}, new: []float64{2, 3, 4, 5}},
		"two blocks of both":       {old: []float64{1, 2}, new: []float64{2, 3, 4, 5}, reason: "2 of at least 3 blocks have trials of both arms"},
		"none of the baseline":     {new: []float64{2, 3, 4, 5}, reason: "time has no value in any of the 0 trials of arm arm0 that count"},
		"none of the candidate":    {old: []float64{2, 3, 4, 5}, reason: "time has no value in any of the 0 trials of arm arm1 that count"},
		"a time of 0":              {old: []float64{2, 0, 4, 5}, new: []float64{2, 3, 4, 5}, noRatio: true, reason: "(in 1 of 8 trials)"},
		"a time of the other of 0": {old: []float64{2, 3, 4, 5}, new: []float64{0, 0, 4, 5}, noRatio: true, reason: "(in 2 of 8 trials)"},
		"an infinite time":         {old: []float64{2, 3, 4, math.Inf(1)}, new: []float64{2, 3, 4, 5}, noRatio: true, reason: "(in 0 of 8 trials)"},
	} {
		made := newTrials(seconds, 1, 2)
		made.addBlocks(0, c.old...)
		made.addBlocks(1, c.new...)
		got := made.data().Ratio(0, 1, "time", experiment.StatisticValue)
		if got.NoRatio != c.noRatio || !strings.Contains(got.Reason, c.reason) || got.HasInterval() != (c.reason == "") {
			t.Errorf("%s: no ratio %v: %q", name, got.NoRatio, got.Reason)
		}
	}
	alone := newTrials(seconds, 1, 1)
	alone.addBlocks(0, 1, 2, 3)
	if got := alone.data().Ratio(0, 0, "time", experiment.StatisticValue); got.Reason != "the run has no baseline" {
		t.Errorf("reason %q", got.Reason)
	}
}

func TestPairedRatio_GeometricMeanOfBlocks(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 1, 2)
	made.addBlocks(0, 1.031, 2.017, 3.071, 1.53)
	made.addBlocks(1, 2.113, 5.037, 3.311, 2.97)
	made.add(selection.At(0, 1), "b00", 2.519) // A second trial of the first block.
	d := made.data()
	ratios := map[string]float64{"b00": math.Sqrt(2.113*2.519) / 1.031, "b01": 5.037 / 2.017, "b02": 3.311 / 3.071, "b03": 2.97 / 1.53}
	logs := map[string]float64{}
	differences := map[string]float64{"b00": (2.113+2.519)/2 - 1.031, "b01": 5.037 - 2.017, "b02": 3.311 - 3.071, "b03": 2.97 - 1.53}
	for block, ratio := range ratios {
		logs[block] = math.Log(ratio)
	}
	half := func(values map[string]float64) (center, half float64) {
		list := inOrder(values)
		center = stats.Mean(list)
		return center, stats.StudentQuantile(0.975, 3) * math.Sqrt(stats.Squares(list, center)/3/4)
	}
	got := d.Ratio(0, 1, "time", experiment.StatisticValue)
	center, width := half(logs)
	wantEnds(t, got, 0.95, center-width, center+width)
	if !near(got.Value, math.Exp(center)) || got.samples != 9 || got.Blocks != 4 || !near(got.perBlock["b00"], ratios["b00"]) {
		t.Errorf("%+v", got)
	}
	difference := d.Difference(0, 1, "time", experiment.StatisticValue)
	center, width = half(differences)
	wantEnds(t, difference, 0.95, center-width, center+width)
	mine, theirs := d.PerBlock(made.of(1, experiment.StatisticValue)), d.PerBlock(made.of(0, experiment.StatisticValue))
	paired := PairedDifference(mine, theirs, 0.95, false)
	wantEnds(t, paired, 0.95, center-width, center+width)
}
