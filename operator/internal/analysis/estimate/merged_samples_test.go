package estimate

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

// draws returns sorted draws of a bootstrap that are known: the numbers from -1 to 1 in equal steps.
func draws(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = -1 + 2*float64(i)/float64(n-1)
	}
	return out
}

// Hesterberg's expanded percentiles: the ranks of a normal distribution at the expanded quantile.
func TestBootstrapEnds_ExpandedPercentiles(t *testing.T) {
	t.Parallel()
	drawn := draws(1999)
	expanded := func(n int, confidence float64) int {
		quantile := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile((1 + confidence) / 2)
		return int(2000 * distuv.UnitNormal.CDF(-quantile*math.Sqrt(float64(n)/float64(n-1))))
	}
	student := func(n int, confidence, se float64) float64 {
		return se * distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile((1+confidence)/2)
	}
	for name, c := range map[string]struct {
		n                int
		confidence       float64
		center, se       float64
		low, high        float64
		wider, atLeastOf float64
	}{
		"ten blocks":              {n: 10, confidence: 0.95, low: drawn[expanded(10, 0.95)-1], high: drawn[1999-expanded(10, 0.95)]},
		"five blocks":             {n: 5, confidence: 0.9, low: drawn[expanded(5, 0.9)-1], high: drawn[1999-expanded(5, 0.9)]},
		"four blocks":             {n: 4, confidence: 0.95, center: 0.1, se: 0.2, low: 0.1 - student(4, 0.95, 0.2), high: 0.1 + student(4, 0.95, 0.2)},
		"an end beyond the draws": {n: 5, confidence: 0.999, se: 0.5, low: -student(5, 0.999, 0.5), high: student(5, 0.999, 0.5)},
		"beyond narrow draws":     {n: 5, confidence: 0.999, se: 0.01, low: -1, high: 1},
		"an estimate above it":    {n: 10, confidence: 0.95, center: 0.99, low: drawn[expanded(10, 0.95)-1], high: 0.99},
		"an estimate below it":    {n: 10, confidence: 0.95, center: -0.99, low: -0.99, high: drawn[1999-expanded(10, 0.95)]},
		"no confidence":           {n: 10, confidence: 0, low: drawn[998], high: drawn[1000]},
	} {
		if low, high := bootstrapEnds(drawn, c.center, c.se, c.n, c.confidence); !near(low, c.low) || !near(high, c.high) {
			t.Errorf("%s: [%g, %g], want [%g, %g]", name, low, high, c.low, c.high)
		}
	}
}

// The tail is the level at which an end of the interval reaches the bound.
func TestBootstrapTail_InvertsTheEnds(t *testing.T) {
	t.Parallel()
	drawn := draws(1999)
	for _, n := range []int{4, 5, 12} {
		for _, confidence := range []float64{0.5, 0.8, 0.9} {
			low, high := bootstrapEnds(drawn, 0, 0.4, n, confidence)
			for _, bound := range []float64{low, high} {
				if got, want := bootstrapTail(drawn, 0, bound, 0.4, n), (1-confidence)/2; math.Abs(got-want) > 0.05*want {
					t.Errorf("%d blocks: tail of the end %g at %g is %g, want %g", n, bound, confidence, got, want)
				}
			}
		}
	}
	beyond, floor := bootstrapTail(drawn, 0, 1.5, 0.4, 10), expandedTail(1./2000, 10)
	if student := stats.DistanceTail(1.5, 0.4, 9); !near(beyond, min(student, floor)) || student < floor == (beyond == floor) {
		t.Errorf("tail beyond the draws %g, want the smaller of %g and %g", beyond, student, floor)
	}
	if got := bootstrapTail(drawn, 0, -1.5, 1.4, 10); !near(got, floor) {
		t.Errorf("tail below the draws %g, want %g", got, floor)
	}
	if got := expandedTail(0.7, 10); got != 0.5 {
		t.Errorf("tail of a share above a half: %g", got)
	}
	if got := bootstrapTail(drawn, 0, 0.0001, 0.4, 10); got < 0.49 || got > 0.5 {
		t.Errorf("tail of a bound at the estimate: %g", got)
	}
}

// samplesOf adds the samples of two arms in blocks, and returns them by arm and block.
func samplesOf(made *trials, blocks, samples int, seed uint64) [2][][]float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	var out [2][][]float64
	for arm := range out {
		for block := range blocks {
			values := make([]float64, samples)
			for i := range values {
				values[i] = math.Exp(0.1*float64(block%3) + 0.2*random.NormFloat64())
			}
			out[arm] = append(out[arm], values)
			made.add(selection.At(0, arm), fmt.Sprintf("b%02d", block), values...)
		}
	}
	return out
}

// A slow bootstrap draws the same blocks and merges and sorts their samples.
func TestPercentile_BootstrapEqualsSortedResamples(t *testing.T) {
	t.Parallel()
	const blocks = 6
	made := newTrials(seconds, 1, 2)
	values := samplesOf(made, blocks, 7, 1)
	d := made.data()
	median := func(arm int, drawn []int) float64 {
		var merged []float64
		for _, block := range drawn {
			merged = append(merged, values[arm][block]...)
		}
		slices.Sort(merged)
		return merged[(len(merged)+1)/2-1]
	}
	all := []int{0, 1, 2, 3, 4, 5}
	for name, c := range map[string]struct {
		got  Inference
		of   Quantity
		want func(drawn []int) float64
	}{
		"level": {d.Level(made.of(0, experiment.StatisticP50)), made.of(0, experiment.StatisticP50),
			func(drawn []int) float64 { return median(0, drawn) }},
		"ratio": {d.Ratio(0, 1, "time", experiment.StatisticP50), made.of(1, experiment.StatisticP50),
			func(drawn []int) float64 { return median(1, drawn) / median(0, drawn) }},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, d.stream(c.of)))
			logs := make([]float64, resamples)
			for i := range logs {
				drawn := make([]int, blocks)
				for j := range drawn {
					drawn[j] = random.IntN(blocks)
				}
				logs[i] = math.Log(c.want(drawn))
			}
			slices.Sort(logs)
			se := math.Sqrt(stats.Squares(logs, stats.Mean(logs)) / (resamples - 1) * blocks / (blocks - 1))
			if !near(c.got.Value, c.want(all)) || !near(c.got.SE, se) || c.got.DF != blocks-1 || c.got.Blocks != blocks || c.got.Builds != 0 {
				t.Errorf("%g with a standard error of %g and %g degrees of freedom of %d blocks, want %g with %g", c.got.Value, c.got.SE, c.got.DF,
					c.got.Blocks, c.want(all), se)
			}
			low, high := bootstrapEnds(logs, math.Log(c.want(all)), se, blocks, 0.95)
			wantEnds(t, c.got, 0.95, low, high)
			if !near(c.got.Low, math.Exp(low)) || !near(c.got.High, math.Exp(high)) {
				t.Errorf("[%g, %g] is not the interval at the confidence of the run", c.got.Low, c.got.High)
			}
			if got, want := c.got.Tail(1.05), bootstrapTail(logs, math.Log(c.want(all)), math.Log(1.05), se, blocks); !near(got, want) {
				t.Errorf("tail %g, want %g", got, want)
			}
		})
	}
}

func TestPercentile_TooFewSamplesBlocksOrBuilds(t *testing.T) {
	t.Parallel()
	p50, p95 := experiment.StatisticP50, experiment.StatisticP95
	for name, c := range map[string]struct {
		blocks, samples, builds int
		statistic               experiment.Statistic
		level, ratio            string
	}{
		"no block":           {0, 0, 0, p50, "no block has a value", "no block has trials of both arms"},
		"one block":          {1, 20, 0, p50, "1 of at least 3 blocks", "1 of at least 3 blocks"},
		"two blocks":         {2, 20, 0, p50, "2 of at least 3 blocks", "2 of at least 3 blocks"},
		"three blocks":       {3, 20, 0, p50, "", ""},
		"two builds":         {4, 20, 2, p50, "2 of at least 3 builds", "2 of at least 3 builds"},
		"three builds":       {6, 20, 3, p50, "", ""},
		"198 samples of 200": {3, 66, 0, p95, "p95 needs at least 200 samples and there are 198", "p95 needs at least 200 samples of each arm and there are 198 and 198"},
		"200 samples":        {4, 50, 0, p95, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			made := newTrials(seconds, 1, 2)
			samplesOf(made, c.blocks, max(2, c.samples), 2)
			for i, a := range made.chosen.Used {
				if c.builds > 0 {
					a.Build = fmt.Sprint(i % c.blocks % c.builds)
				}
			}
			d := made.data()
			level, ratio := d.Level(made.of(0, c.statistic)), d.Ratio(0, 1, "time", c.statistic)
			if level.Reason != c.level || ratio.Reason != c.ratio {
				t.Errorf("%q and %q, want %q and %q", level.Reason, ratio.Reason, c.level, c.ratio)
			}
			if level.Builds != c.builds {
				t.Errorf("%d builds, want %d", level.Builds, c.builds)
			}
			enough := d.EnoughSamples(selection.At(0, 0), "time", c.statistic)
			if enough != (c.blocks*c.samples >= experiment.MinSamples(c.statistic)) {
				t.Errorf("enough samples: %v", enough)
			}
		})
	}
}

// The percentile is positive under any weighting of the blocks exactly if it is positive in each block alone.
func TestPool_PositiveUnderAnyWeighting(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	seen := map[bool]int{}
	for range 300 {
		made := newTrials(seconds, 1, 1)
		want := true
		for block := range 1 + random.IntN(3) {
			values := make([]float64, 2+random.IntN(9))
			for i := range values {
				values[i] = float64(random.IntN(4))
			}
			made.add(selection.At(0, 0), fmt.Sprint("b", block), values...)
			slices.Sort(values)
			want = want && values[stats.NearestRank(0.5, int64(len(values)))-1] > 0
		}
		d := made.data()
		blocks := number(maps.Keys(d.blocksWith(selection.At(0, 0), "time")))
		if got := d.newPool(made.of(0, experiment.StatisticP50), blocks).positive(0.5); got != want {
			t.Fatalf("positive %v, want %v", got, want)
		}
		seen[want]++
	}
	if seen[true] < 30 || seen[false] < 30 {
		t.Errorf("the cases are one-sided: %v", seen)
	}
}

func TestRatio_PercentilesOfZeroHaveNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		zeros [2]int
		want  string
	}{
		"none":             {[2]int{0, 0}, ""},
		"a few":            {[2]int{2, 2}, ""},
		"of the candidate": {[2]int{0, 8}, "time has values that are not positive (in 0 of 0 trials)"},
		"of the baseline":  {[2]int{8, 0}, "time has values that are not positive (in 0 of 0 trials)"},
	} {
		made := newTrials(seconds, 1, 2)
		for arm, zeros := range c.zeros {
			for block := range 4 {
				values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
				clear(values[:zeros])
				made.add(selection.At(0, arm), fmt.Sprint("b", block), values...)
			}
		}
		got := made.data().Ratio(0, 1, "time", experiment.StatisticP50)
		if got.NoRatio != (c.want != "") || !strings.HasPrefix(got.Reason, c.want) {
			t.Errorf("%s: %v, %q", name, got.NoRatio, got.Reason)
		}
	}
}

// With equal weights of trials, a trial with many samples does not decide the median.
func TestByTrials_EqualWeightsOfTrials(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 2, 2)
	for block := range 4 {
		id := fmt.Sprint("b", block)
		made.add(selection.At(0, 0), id, 3, 3)
		made.add(selection.At(0, 0), id, 1, 1, 1, 1, 1, 1, 1)
		made.add(selection.At(0, 0), id, 3, 4)
		made.add(selection.At(0, 1), id, 1, 2)
		made.add(selection.At(1, 0), id, 1, 2)
	}
	d := made.data()
	if got := d.ByTrials(0, "time", 1); got != nil {
		t.Error("trials of an arm with equal numbers are weighted")
	}
	if got := d.ByTrials(1, "time", 0, 1); got != nil {
		t.Error("trials of another point are weighted")
	}
	weighted := d.ByTrials(0, "time", 1, 0)
	if weighted == nil {
		t.Fatal("trials with 2 and 7 samples are not weighted")
	}
	q := made.of(0, experiment.StatisticP50)
	if got, want := d.Level(q).Value, 1.0; got != want {
		t.Errorf("median by samples %g, want %g", got, want)
	}
	if got, want := weighted.Level(q).Value, 3.0; got != want {
		t.Errorf("median by trials %g, want %g", got, want)
	}
	if got := d.weight(3, 7); got != 3 {
		t.Errorf("weight %d of 3 of 7 samples, want 3", got)
	}
	if got := weighted.weight(3, 7); got != int64(math.Round(weightOfTrial*3./7)) {
		t.Errorf("weight %d of 3 of 7 samples of a trial", got)
	}
	if got := weighted.weight(1, math.MaxInt64); got != 1 {
		t.Errorf("weight %d of one of very many samples, want 1", got)
	}
}
