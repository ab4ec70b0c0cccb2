package calibrate

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
)

func TestRealArms_Figures(t *testing.T) {
	estimate := func(half float64) *analysis.Estimate {
		return &analysis.Estimate{Value: 1, Low: ptr.To(1 - half), High: ptr.To(1 + half)}
	}
	gate := func(candidate string, half float64, again *analysis.Recomputed) analysis.GateResult {
		return analysis.GateResult{Gate: "faster", Candidate: candidate, Metric: "latency", Estimate: estimate(half), WithRejected: again}
	}
	result := &analysis.Analysis{
		Verdict: "Inconclusive", ValidBlocks: 12, Trials: analysis.Trials{Planned: 100, Warmups: 20, Used: 76},
		Gates: []analysis.GateResult{
			gate("same", 0.01, nil), gate("slower", 0.01, &analysis.Recomputed{Estimate: estimate(0.02)}), gate("alone", 0.03,
				&analysis.Recomputed{}),
		},
		Candidates: []analysis.Candidate{{Name: "same", Verdict: "NoGo"}, {Name: "slower", Verdict: "NoGo"}, {Name: "alone", Verdict: "Go"}},
		Ratios:     []analysis.RatioResult{{Candidate: "slower", Metric: "latency", Estimate: *estimate(0.03)}},
	}
	run := Conclude(result, nil, map[string]float64{"slower": 0.02, "alone": 0.05}, nil)
	tally := RealTally{Workload: "spin", Arms: 6, Runs: []RealRun{run}}
	if wrong := tally.Wrong(); wrong != 2 {
		t.Errorf("%d wrong verdicts, want the Go of alone and the NoGo of same", wrong)
	}
	figures := RealArms(tally)
	if len(figures) != 2 || figures[0].Value != 0.95 || figures[1].Value != 0.5 || figures[1].High != 1 || figures[1].Samples != 2 {
		t.Errorf("%+v, want 76 of 80 used, and half widths of 1 and 0.5 relative to no rejection", figures)
	}
	if table := ArmsTable([]RealTally{tally}); !strings.Contains(table, "| 6 | 1 | 12.0 | 0.9500") ||
		!strings.Contains(table, "| 0.500 | 0.500 | 1.000 | 0.6667") {
		t.Error(table)
	}
	if table := RealTable([]RealTally{tally}); strings.Contains(table, "spin") {
		t.Errorf("a run with many arms is in the table of pairs:\n%s", table)
	}
	power := RealPower(RealTally{Budget: 60, Runs: []RealRun{{Verdict: "NoGo", Blocks: 30}, {Verdict: "Inconclusive", Blocks: 60}}})
	if power.Value != 0.5 || !strings.Contains(power.Note, "45.0 of 60 blocks") {
		t.Errorf("%+v", power)
	}
}

func TestRealTally_OneFalseGoMissesTheTarget(t *testing.T) {
	for count, missed := range []int{0, 1} {
		if got := Check([]Figure{NewShare(count, 10000).Figure(SelfNoiseFigure)}); len(got) != missed {
			t.Errorf("%d false Go: %q", count, got)
		}
	}
}
