package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/simulate"
)

func TestTrialStatistic(t *testing.T) {
	histogram := &record.Histogram{}
	decoded := histograms{histogram: {{1, 2}, {3, 1}, {8, 1}}}
	samples := record.Metric{Samples: []float64{8, 1, 3, 1}}
	bars := record.Metric{Histogram: histogram}
	value := record.Metric{Value: ptr.To(5.0)}
	cases := map[string]struct {
		metric    record.Metric
		statistic experiment.Statistic
		want      float64
		none      bool
	}{
		"the mean of samples":                          {samples, "mean", 3.25, false},
		"the median of an even number of samples":      {samples, "median", 2, false},
		"the median of an odd number of samples":       {record.Metric{Samples: []float64{9, 1, 4}}, "median", 4, false},
		"the smallest sample":                          {samples, "min", 1, false},
		"the largest sample":                           {samples, "max", 8, false},
		"many samples are not one value":               {samples, "value", 0, true},
		"one sample is one value":                      {record.Metric{Samples: []float64{7}}, "value", 7, false},
		"a trial has no percentile of its own":         {samples, "p95", 0, true},
		"one value is its own mean":                    {value, "mean", 5, false},
		"one value as it is":                           {value, "value", 5, false},
		"the mean of a histogram":                      {bars, "mean", 3.25, false},
		"the median of a histogram":                    {bars, "median", 1, false},
		"the smallest of a histogram":                  {bars, "min", 1, false},
		"the largest of a histogram":                   {bars, "max", 8, false},
		"a histogram is not one value":                 {bars, "value", 0, true},
		"a metric without samples has no statistic":    {record.Metric{}, "mean", 0, true},
		"a histogram has no percentile of a trial too": {bars, "p99", 0, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := decoded.statistic(c.metric, c.statistic)
			if ok == c.none || ok && got != c.want {
				t.Errorf("%v, %v; want %v, %v", got, ok, c.want, !c.none)
			}
		})
	}
}

func TestPercentilesOfAPoolAreThoseOfItsSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		blocks := 1 + random.IntN(6)
		d := &data{chosen: &selection{}, trials: map[cell][]*record.Attempt{}}
		names := []string{"a", "b", "c", "d", "e", "f"}[:blocks]
		var perBlock [6][]float64
		for block, name := range names {
			for range 1 + random.IntN(300) {
				perBlock[block] = append(perBlock[block], math.Floor(random.ExpFloat64()*50))
			}
			d.trials[cell{}] = append(d.trials[cell{}],
				&record.Attempt{Block: name, Result: &record.Result{Metrics: map[string]*record.Metric{"m": {Samples: perBlock[block]}}}})
		}
		p := d.newPool(quantityOf{metric: "m"}, number(d.blocksWith(cell{}, "m")))
		weights := make([]int64, blocks)
		var all []float64
		for block := range blocks {
			weights[block] = int64(random.IntN(3))
			for range weights[block] {
				all = append(all, perBlock[block]...)
			}
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		for _, share := range experiment.Percentiles {
			want := all[max(1, int(math.Ceil(share*float64(len(all))-1e-9)))-1]
			if got := p.percentile(share, weights); got != want {
				t.Fatalf("percentile %v of %d samples in %d blocks: %v, want %v", share, len(all), blocks, got, want)
			}
		}
	}
}

// asHistogram records samples in nanoseconds, as the harness does.
func asHistogram(t *testing.T, samples []float64) *record.Histogram {
	t.Helper()
	h := hdrhistogram.New(1, 3_600_000_000_000, 3)
	for _, s := range samples {
		if err := h.RecordValue(int64(s * 1e9)); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return &record.Histogram{Encoding: "hdr-v2-deflate-base64", Scale: 1e-9, Count: h.TotalCount(), Data: string(encoded)}
}

func TestHistogramsGiveTheSameAnswersAsSamples(t *testing.T) {
	gate := assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p95", At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}
	l := simulated(t, 8, simulate.Machine{Seed: 1, Noise: quiet}, gates(gate))
	samples := l.analyze()
	for i := range l.attempts {
		metrics := l.attempts[i].Result.Metrics
		metrics["latency"] = &record.Metric{Unit: "s", Histogram: asHistogram(t, metrics["latency"].Samples)}
	}
	histograms := l.analyze()
	if len(histograms.Excluded) > 0 {
		t.Fatal(histograms.Excluded)
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 2e-3*math.Abs(a) })
	for i := range samples.Arms {
		if diff := cmp.Diff(samples.Arms[i].Estimate.Value, histograms.Arms[i].Estimate.Value, near); diff != "" {
			t.Errorf("%s %s of %s (-samples +histograms):\n%s", samples.Arms[i].Statistic, samples.Arms[i].Metric, samples.Arms[i].Arm, diff)
		}
	}
	for i := range samples.Gates {
		a, b := samples.Gates[i], histograms.Gates[i]
		if a.Outcome != b.Outcome || !cmp.Equal(*a.Estimate.High, *b.Estimate.High, near) || a.Estimate.Samples != b.Estimate.Samples {
			t.Errorf("%s: %s with samples, %s with histograms", a.Title(), a.Message, b.Message)
		}
	}
}

func TestHistogramThatLiesAboutItsCountIsRefused(t *testing.T) {
	h := asHistogram(t, []float64{1e-3, 2e-3})
	h.Count = 3
	if _, err := decodeHistogram(h); err == nil {
		t.Error("was accepted")
	}
}

func TestAnEffectOfTheMinimumDetectableSizeIsFoundFourTimesInFive(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	const runs, sigma = 4000, 0.01
	for _, blocks := range []int{5, 8, 15, 30} {
		effect := *inference{blocks: blocks, df: float64(blocks - 1), se: sigma / math.Sqrt(float64(blocks)),
			logarithmic: true}.minimumDetectableEffect(0.95)
		found := 0
		for range runs {
			values := map[string]float64{}
			for block := range blocks {
				values[string(rune('a'+block))] = math.Log1p(effect) + sigma*random.NormFloat64()
			}
			if studentInference(values, 0.95, true).low > 1 {
				found++
			}
		}
		power := float64(found) / runs
		t.Logf("%d blocks: an effect of %.2f %% is found with probability %.3f", blocks, 100*effect, power)
		if power < 0.76 || power > 0.84 {
			t.Errorf("%d blocks: power %.3f, want about 0.8", blocks, power)
		}
	}
}

func TestMoreBlocks(t *testing.T) {
	half := func(i inference, n int) float64 {
		return studentQuantile(0.975, float64(n-1)) * i.se * math.Sqrt(float64(i.blocks)) / math.Sqrt(float64(n))
	}
	open := inference{value: 1.45, se: 0.05, blocks: 5, df: 4, logarithmic: true}
	more := open.moreBlocks(1.5, 0.025)
	if more == nil {
		t.Fatal("no answer")
	}
	distance := math.Log(1.5 / 1.45)
	if half(open, 5+*more) > distance || half(open, 5+*more-1) <= distance {
		t.Errorf("%d further blocks: half-width %v, one fewer %v, distance %v", *more, half(open, 5+*more), half(open, 5+*more-1), distance)
	}
	if got := (inference{value: 1.5, se: 0.05, blocks: 5, df: 4, logarithmic: true}).moreBlocks(1.5, 0.025); got != nil {
		t.Errorf("an estimate on the bound is decided by %d further blocks", *got)
	}
}

func TestAnEstimateInWords(t *testing.T) {
	cases := map[string]struct {
		estimate *Estimate
		want     string
	}{
		"a ratio":                  {&Estimate{Value: 2, Unit: "1", Ratio: true}, "2.000x"},
		"a share":                  {&Estimate{Value: 0.5, Unit: "1"}, "0.5000"},
		"a time with its interval": {&Estimate{Value: 0.0021, Unit: "s", Low: ptr.To(0.002), High: ptr.To(0.0022)}, "2.100 ms [2.000, 2.200]"},
		"no estimate is no number": {nil, "no estimate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Describe(c.estimate); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
