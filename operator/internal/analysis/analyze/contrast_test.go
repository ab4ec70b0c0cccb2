package analyze

import (
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/simulate"
)

// TestAContrastWithTheBaselineIsTheRatioOfTheReport holds the two ways to one ratio together, on many machines: a value with a standard
// error here, and one with its interval there.
func TestAContrastWithTheBaselineIsTheRatioOfTheReport(t *testing.T) {
	compared := 0
	for seed := range uint64(20) {
		run := simulated(t, 6+int(seed), simulate.Machine{Seed: seed, Noise: quiet}, nil)
		found := run.analyze()
		for _, r := range found.Ratios {
			if len(r.PerBlock) == 0 || r.Series != nil && (r.Series.Dependent || r.Series.Skewed) {
				continue
			}
			of := contrast.Quantity{Point: r.Point, Metric: r.Metric, Statistic: r.Statistic}
			got, err := contrast.Of(found, run.exp, of, []string{r.Candidate}, []string{"loop"})
			if err != nil {
				t.Fatal(err)
			}
			half := stats.StudentQuantile((1+found.Confidence)/2, got.DF) * got.SE
			for name, pair := range map[string][2]float64{
				"value": {math.Exp(got.LogRatio), r.Estimate.Value}, "low": {math.Exp(got.LogRatio - half), *r.Estimate.Low},
				"high": {math.Exp(got.LogRatio + half), *r.Estimate.High},
			} {
				if math.Abs(pair[0]/pair[1]-1) > 1e-9 {
					t.Fatalf("seed %d, %s of %s: its %s is %v and the ratio's %v", seed, r.Candidate, of, name, pair[0], pair[1])
				}
			}
			if got.Blocks != r.Estimate.Blocks {
				t.Fatalf("%d blocks, and the ratio has %d", got.Blocks, r.Estimate.Blocks)
			}
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("only %d ratios were compared", compared)
	}
}

// TestAContrastIsPairedWithinBlocks compares with the definition: the mean over blocks of the difference of the arms' means.
func TestAContrastIsPairedWithinBlocks(t *testing.T) {
	run := simulated(t, 9, simulate.Machine{Seed: 3, Noise: quiet}, nil)
	found := run.analyze()
	of := contrast.Quantity{Point: "batchSize=8,pendingDelta=0", Metric: "latency", Statistic: experiment.StatisticMedian}
	logs := map[string]map[string]float64{}
	for _, r := range found.Ratios {
		if r.Point == of.Point && r.Metric == of.Metric && r.Statistic == of.Statistic {
			logs[r.Candidate] = map[string]float64{}
			for block, ratio := range r.PerBlock {
				logs[r.Candidate][block] = math.Log(ratio)
			}
		}
	}
	mean := func(over func(block string) float64) (sum, squares, n float64) {
		for block := range logs["fused-m4r"] {
			sum, n = sum+over(block), n+1
		}
		sum /= n
		for block := range logs["fused-m4r"] {
			squares += (over(block) - sum) * (over(block) - sum)
		}
		return sum, math.Sqrt(squares / (n - 1) / n), n
	}
	for name, tc := range map[string]struct {
		over, under []string
		of          func(block string) float64
	}{
		"two candidates": {[]string{"fused-m4r"}, []string{"fused-naive"},
			func(block string) float64 { return logs["fused-m4r"][block] - logs["fused-naive"][block] }},
		"the baseline over a candidate": {[]string{"loop"}, []string{"fused-m4r"},
			func(block string) float64 { return -logs["fused-m4r"][block] }},
		"an arm over several": {[]string{"fused-m4r"}, []string{"fused-naive", "loop"},
			func(block string) float64 { return logs["fused-m4r"][block] - logs["fused-naive"][block]/2 }},
		"several arms": {[]string{"fused-m4r", "fused-naive"}, []string{"loop"},
			func(block string) float64 { return (logs["fused-m4r"][block] + logs["fused-naive"][block]) / 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := contrast.Of(found, run.exp, of, tc.over, tc.under)
			value, se, n := mean(tc.of)
			if err != nil || math.Abs(got.LogRatio-value) > 1e-9 || math.Abs(got.SE-se) > 1e-9 || got.DF != n-1 {
				t.Errorf("got %+v (%v), want %v with %v over %v blocks", got, err, value, se, n)
			}
		})
	}
}

func TestAContrastThatCannotBeIsNoNumber(t *testing.T) {
	run := simulated(t, 6, simulate.Machine{Seed: 1, Noise: quiet}, nil)
	found := run.analyze()
	of := contrast.Quantity{Point: "batchSize=1,pendingDelta=0", Metric: "latency", Statistic: experiment.StatisticMedian}
	p95 := of
	p95.Statistic = experiment.StatisticP95
	apart := *found
	apart.Ratios = append([]analysis.RatioResult(nil), found.Ratios...)
	for i := range apart.Ratios {
		apart.Ratios[i].NodesDiffer = true
	}
	for name, tc := range map[string]struct {
		found       *analysis.Analysis
		of          contrast.Quantity
		over, under []string
		says        string
	}{
		"no arm on a side":                  {found, of, nil, []string{"loop"}, "name at least one"},
		"an arm that the run does not have": {found, of, []string{"head"}, []string{"loop"}, `arm "head" has no ratio to the baseline`},
		"the baseline alone":                {found, of, []string{"loop"}, []string{"loop"}, "only the baseline"},
		"a percentile of all blocks":        {found, p95, []string{"fused-m4r"}, []string{"loop"}, "judged over all blocks together"},
		"nodes that differ":                 {&apart, of, []string{"fused-m4r"}, []string{"loop"}, "differs between nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := contrast.Of(tc.found, run.exp, tc.of, tc.over, tc.under)
			if err == nil || !strings.Contains(err.Error(), tc.says) || got != (contrast.Contrast{}) {
				t.Errorf("got %+v and %v, want an error that says %q", got, err, tc.says)
			}
		})
	}
}
