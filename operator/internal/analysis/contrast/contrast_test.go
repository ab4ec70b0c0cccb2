package contrast

import (
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// analyzed returns the analysis of a run of three arms at one point with the given number of blocks, with two statistics.
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

// TestContrast_PairedWithinBlocks compares with the definition: the mean over blocks of the difference of the arms' means.
func TestContrast_PairedWithinBlocks(t *testing.T) {
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

func TestContrast_ImpossibleComparisonIsAnError(t *testing.T) {
	exp, found, of := analyzed(6)
	p95 := of
	p95.Statistic = experiment.StatisticP95
	apart := *found
	apart.Ratios = append([]analysis.RatioResult(nil), found.Ratios...)
	for i := range apart.Ratios {
		apart.Ratios[i].NodesDiffer = true
	}
	doubts := func(doubts ...analysis.Doubt) *analysis.Analysis {
		out := *found
		out.Doubts = doubts
		return &out
	}
	doubt := func(arms ...string) analysis.Doubt {
		return analysis.Doubt{Reason: "measured-unlike", Detail: "they differ", Arms: arms}
	}
	builds := *found
	builds.Ratios = append([]analysis.RatioResult(nil), found.Ratios...)
	for i := range builds.Ratios {
		builds.Ratios[i].Builds = 3
	}
	worthless := func(ratio float64) *analysis.Analysis {
		out := *found
		out.Ratios = append([]analysis.RatioResult(nil), found.Ratios...)
		for i := range out.Ratios {
			if out.Ratios[i].PerBlock != nil {
				out.Ratios[i].PerBlock = maps.Clone(out.Ratios[i].PerBlock)
				out.Ratios[i].PerBlock["w000-b0002"] = ratio
			}
		}
		return &out
	}
	for name, tc := range map[string]struct {
		found       *analysis.Analysis
		of          Quantity
		over, under []string
		says        string
	}{
		"a ratio of nothing": {worthless(0), of, []string{"fused-m4r"}, []string{"loop"}, `has a ratio of 0 in block w000-b0002`},
		"a ratio below 0": {worthless(-1), of, []string{"fused-m4r"}, []string{"loop"},
			`has a ratio of -1 in block w000-b0002`},
		"no arm on a side":                  {found, of, nil, []string{"loop"}, "name at least one"},
		"a figure at a point":               {found, of, nil, []string{"loop"}, "latency.median at batchSize=8: "},
		"an arm that the run does not have": {found, of, []string{"head"}, []string{"loop"}, `arm "head" has no ratio to the baseline`},
		"the baseline alone":                {found, of, []string{"loop"}, []string{"loop"}, "only the baseline"},
		"a percentile of all blocks":        {found, p95, []string{"fused-m4r"}, []string{"loop"}, "judged over all blocks together"},
		"an arm of several builds":          {&builds, of, []string{"fused-m4r"}, []string{"loop"}, "is several builds"},
		"arms that are not alike":           {doubts(doubt("fused-m4r", "fused-naive")), of, []string{"fused-naive"}, []string{"fused-m4r"}, "they differ (measured-unlike)"},
		"an arm that is not like the baseline, which is not among them": {
			doubts(doubt("fused-m4r", "loop")), of, []string{"fused-m4r"}, []string{"fused-naive"}, "they differ",
		},
		"an arm of itself":  {doubts(doubt("fused-m4r")), of, []string{"fused-naive"}, []string{"loop", "fused-m4r"}, "they differ"},
		"all of the run":    {doubts(doubt()), of, []string{"fused-naive"}, []string{"loop"}, "they differ"},
		"nodes that differ": {&apart, of, []string{"fused-m4r"}, []string{"loop"}, "differs between nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(tc.found, exp, tc.of, tc.over, tc.under)
			if err == nil || !strings.Contains(err.Error(), tc.says) || got != (Contrast{}) {
				t.Errorf("got %+v and %v, want an error that says %q", got, err, tc.says)
			}
		})
	}
}

// A doubt about other arms, about arms of one side or about another figure does not prevent a contrast.
func TestContrast_DoubtAppliesToItsArmsAndFigures(t *testing.T) {
	both, loop := []string{"fused-m4r", "fused-naive"}, []string{"loop"}
	for name, tc := range map[string]struct {
		doubt       analysis.Doubt
		over, under []string
	}{
		"two arms of one side":            {analysis.Doubt{Arms: both}, both, loop},
		"another arm":                     {analysis.Doubt{Arms: both[:1]}, both[1:], loop},
		"another arm beside the baseline": {analysis.Doubt{Arms: []string{"fused-m4r", "loop"}}, both[1:], loop},
		"another point":                   {analysis.Doubt{Point: "batchSize=1"}, both, loop},
		"another metric":                  {analysis.Doubt{Metric: "throughput"}, both, loop},
		"another statistic":               {analysis.Doubt{Metric: "latency", Statistic: experiment.StatisticMean}, both, loop},
	} {
		t.Run(name, func(t *testing.T) {
			exp, found, of := analyzed(9)
			found.Doubts = []analysis.Doubt{tc.doubt}
			if _, err := Of(found, exp, of, tc.over, tc.under); err != nil {
				t.Error(err)
			}
		})
	}
}

// The widening of a contrast equals that of a ratio's interval.
func TestContrast_WidenedByClockResolution(t *testing.T) {
	shared, own := &analysis.ClockResolution{Relative: 0.1}, &analysis.ClockResolution{Relative: 0.2, Own: true}
	for name, tc := range map[string]struct {
		loop, naive, m4r *analysis.ClockResolution
		over, under      []string
		width            float64
	}{
		"no clock shows":                     {nil, nil, nil, []string{"fused-m4r"}, []string{"loop"}, 0},
		"one clock errs in one direction":    {shared, nil, shared, []string{"fused-m4r"}, []string{"loop"}, math.Log(1.1)},
		"another arm has it":                 {shared, nil, nil, []string{"fused-m4r"}, []string{"fused-naive"}, 0},
		"each has a separate clock":          {own, nil, own, []string{"fused-m4r"}, []string{"loop"}, 2 * math.Log(1.2)},
		"one beside the shared one":          {shared, nil, own, []string{"fused-m4r"}, []string{"loop"}, math.Log(1.1) + math.Log(1.2)},
		"one of a side of two":               {nil, nil, own, []string{"fused-m4r", "fused-naive"}, []string{"loop"}, math.Log(1.2) / 2},
		"the two sides without the baseline": {nil, own, own, []string{"fused-m4r"}, []string{"fused-naive"}, 2 * math.Log(1.2)},
		"a negative step, which is invalid": {nil, nil, &analysis.ClockResolution{Relative: -5, Own: true},
			[]string{"fused-m4r"}, []string{"loop"}, 0},
		"a bucket that is narrow":                        {nil, nil, &analysis.ClockResolution{Relative: 1e-4, Bucket: true}, []string{"fused-m4r"}, []string{"loop"}, 0},
		"a bucket of a fifteenth of the interval's half": {nil, nil, &analysis.ClockResolution{Relative: 0.004, Bucket: true}, []string{"fused-m4r"}, []string{"loop"}, 0},
		"a bucket of a fifth of it":                      {nil, nil, &analysis.ClockResolution{Relative: 0.012, Bucket: true}, []string{"fused-m4r"}, []string{"loop"}, math.Log(1.012)},
		"a bucket that is wide":                          {nil, nil, &analysis.ClockResolution{Relative: 0.3, Bucket: true}, []string{"fused-m4r"}, []string{"loop"}, math.Log(1.3)},
	} {
		t.Run(name, func(t *testing.T) {
			exp, found, of := analyzed(9)
			plain, err := Of(found, exp, of, tc.over, tc.under)
			if err != nil {
				t.Fatal(err)
			}
			for arm, clock := range map[string]*analysis.ClockResolution{"loop": tc.loop, "fused-naive": tc.naive, "fused-m4r": tc.m4r} {
				found.Arms = append(found.Arms, analysis.ArmResult{
					Point: of.Point, Arm: arm, Metric: of.Metric, Statistic: of.Statistic, Clock: clock,
				})
			}
			got, err := Of(found, exp, of, tc.over, tc.under)
			width := stats.StudentQuantile(0.975, got.DF) * (got.SE - plain.SE)
			if err != nil || math.Abs(width-tc.width) > 1e-9 || got.LogRatio != plain.LogRatio {
				t.Errorf("its interval is wider by %v (%v), want %v", width, err, tc.width)
			}
		})
	}
}

func TestLeftOut_ExclusionMayNotMoveAContrast(t *testing.T) {
	moved := func(perBlock map[string]float64, by float64) map[string]float64 {
		out := map[string]float64{}
		for block, ratio := range perBlock {
			out[block] = ratio * by
		}
		return out
	}
	for name, tc := range map[string]struct {
		naive, m4r float64 // The factors of their ratios with all trials.
		over       []string
		everywhere bool
		says       string
	}{
		"nothing moves":                     {1, 1, []string{"fused-m4r"}, false, ""},
		"within the interval":               {1, 1.001, []string{"fused-m4r"}, false, ""},
		"beyond it":                         {1, 2, []string{"fused-m4r"}, false, "that noise limits leave out"},
		"another arm":                       {2, 1, []string{"fused-m4r"}, false, ""},
		"two arms of a side and not itself": {0.5, 2, []string{"fused-m4r", "fused-naive"}, false, ""},
		"with other environments":           {1, 0.5, []string{"fused-m4r"}, true, "of other environments"},
	} {
		t.Run(name, func(t *testing.T) {
			exp, found, of := analyzed(9)
			for i := range found.Ratios {
				r := &found.Ratios[i]
				with := moved(r.PerBlock, map[string]float64{"fused-naive": tc.naive, "fused-m4r": tc.m4r}[r.Candidate])
				if r.WithRejected = with; tc.everywhere {
					r.WithRejected, r.Everywhere = nil, with
				}
			}
			c, err := Of(found, exp, of, tc.over, []string{"loop"})
			if err != nil {
				t.Fatal(err)
			}
			why := LeftOut(found, exp, of, tc.over, []string{"loop"}, c)
			if (why == "") != (tc.says == "") || !strings.Contains(why, tc.says) {
				t.Errorf("it says %q, want %q", why, tc.says)
			}
		})
	}
}

// Blocks that all say the same leave an interval of no width, and rounding is not beyond it.
func TestLeftOut_ConstantBlocksAreUnaffected(t *testing.T) {
	exp, found, of := analyzed(6)
	for i := range found.Ratios {
		for block := range found.Ratios[i].PerBlock {
			found.Ratios[i].PerBlock[block] = 1.7
		}
		found.Ratios[i].WithRejected = found.Ratios[i].PerBlock
	}
	c, err := Of(found, exp, of, []string{"fused-m4r"}, []string{"loop"})
	if err != nil || c.SE > 1e-9 {
		t.Fatal(c, err)
	}
	if why := LeftOut(found, exp, of, []string{"fused-m4r"}, []string{"loop"}, c); why != "" {
		t.Error(why)
	}
}

// A ratio of 0 or less has no logarithm. An analysis may hold one: every holder of a key of the namespace can write it.
func TestContrast_NonPositiveRatioIsAnError(t *testing.T) {
	for _, ratio := range []float64{0, -1} {
		exp, found, of := analyzed(6)
		c, err := Of(found, exp, of, []string{"fused-m4r"}, []string{"loop"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range found.Ratios {
			if r := &found.Ratios[i]; r.Candidate == "fused-m4r" {
				r.WithRejected = map[string]float64{record.BlockName(0, 0): ratio}
			}
		}
		if why := LeftOut(found, exp, of, []string{"fused-m4r"}, []string{"loop"}, c); !strings.Contains(why, "ratios are above 0") {
			t.Errorf("with the excluded trials a ratio is %g: %q", ratio, why)
		}
		for i := range found.Ratios {
			if r := &found.Ratios[i]; len(r.PerBlock) > 0 {
				r.PerBlock[record.BlockName(0, 0)] = ratio
			}
		}
		c, err = Of(found, exp, of, []string{"fused-m4r"}, []string{"loop"})
		if err == nil || !strings.Contains(err.Error(), "ratios are above 0") {
			t.Errorf("a ratio of %g: %+v, %v", ratio, c, err)
		}
	}
}
