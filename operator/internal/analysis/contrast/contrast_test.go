package contrast

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// analyzed is a run of three arms at one point with so many blocks, and what was found of two statistics.
func analyzed(blocks int) (*experiment.Experiment, *analysis.Analysis, Quantity) {
	of := Quantity{Point: "batchSize=8", Metric: "latency", Statistic: experiment.StatisticMedian}
	exp := &experiment.Experiment{
		Points: []record.Point{{Key: of.Point}},
		Arms:   []record.Arm{{Name: "loop", Baseline: true}, {Name: "fused-naive"}, {Name: "fused-m4r"}},
	}
	found := &analysis.Analysis{Confidence: 0.95, GateConfidence: 0.995}
	random := rand.New(rand.NewPCG(3, 3))
	for _, arm := range exp.Candidates() {
		perBlock := map[string]float64{}
		for block := range blocks {
			perBlock[record.BlockName(0, block)] = math.Exp(0.05 * random.NormFloat64())
		}
		found.Ratios = append(found.Ratios,
			analysis.RatioResult{Point: of.Point, Candidate: arm, Metric: of.Metric, Statistic: of.Statistic, PerBlock: perBlock},
			analysis.RatioResult{Point: of.Point, Candidate: arm, Metric: of.Metric, Statistic: experiment.StatisticP95})
	}
	return exp, found, of
}

// TestAContrastIsPairedWithinBlocks compares with the definition: the mean over blocks of the difference of the arms' means.
func TestAContrastIsPairedWithinBlocks(t *testing.T) {
	exp, found, of := analyzed(9)
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
			got, err := Of(found, exp, of, tc.over, tc.under)
			value, se, n := mean(tc.of)
			if err != nil || math.Abs(got.LogRatio-value) > 1e-9 || math.Abs(got.SE-se) > 1e-9 || got.DF != n-1 {
				t.Errorf("got %+v (%v), want %v with %v over %v blocks", got, err, value, se, n)
			}
		})
	}
}

func TestAContrastThatCannotBeIsNoNumber(t *testing.T) {
	exp, found, of := analyzed(6)
	p95 := of
	p95.Statistic = experiment.StatisticP95
	apart := *found
	apart.Ratios = append([]analysis.RatioResult(nil), found.Ratios...)
	for i := range apart.Ratios {
		apart.Ratios[i].NodesDiffer = true
	}
	builds := *found
	builds.Ratios = append([]analysis.RatioResult(nil), found.Ratios...)
	for i := range builds.Ratios {
		builds.Ratios[i].Builds = 3
	}
	for name, tc := range map[string]struct {
		found       *analysis.Analysis
		of          Quantity
		over, under []string
		says        string
	}{
		"no arm on a side":                  {found, of, nil, []string{"loop"}, "name at least one"},
		"an arm that the run does not have": {found, of, []string{"head"}, []string{"loop"}, `arm "head" has no ratio to the baseline`},
		"the baseline alone":                {found, of, []string{"loop"}, []string{"loop"}, "only the baseline"},
		"a percentile of all blocks":        {found, p95, []string{"fused-m4r"}, []string{"loop"}, "judged over all blocks together"},
		"an arm of several builds":          {&builds, of, []string{"fused-m4r"}, []string{"loop"}, "is several builds"},
		"nodes that differ":                 {&apart, of, []string{"fused-m4r"}, []string{"loop"}, "differs between nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(tc.found, exp, tc.of, tc.over, tc.under)
			if err == nil || !strings.Contains(err.Error(), tc.says) || got != (Contrast{}) {
				t.Errorf("got %+v and %v, want an error that says %q", got, err, tc.says)
			}
		})
	}
}
