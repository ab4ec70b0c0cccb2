package judge

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

func TestARejectionMayMakeAGatePreciseAndNotMoveIt(t *testing.T) {
	estimate := func(low, value, high float64) *analysis.Estimate {
		return &analysis.Estimate{Value: value, Ratio: true, Low: ptr.To(low), High: ptr.To(high), Blocks: 10}
	}
	cases := map[string]struct {
		op      experiment.Op
		outcome experiment.Verdict
		without *analysis.Estimate
		again   *analysis.Twice
		says    string
	}{
		"nothing was rejected": {outcome: goes, without: estimate(1.04, 1.05, 1.06)},
		"both say the same": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &analysis.Twice{Outcome: goes, Estimate: estimate(1.01, 1.08, 1.15)},
		},
		"the estimate stays where it was and is less sure: the rejection made it precise": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(0.95, 1.04, 1.13)},
		},
		"the estimate comes nearer to the bound than the interval is wide": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(0.92, 1.005, 1.1)},
			says: "Inconclusive, and leaving them out must not be what decides",
		},
		"the estimate lies on the other side": {
			outcome: goes, without: estimate(1.04, 1.06, 1.08), again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(0.85, 0.93, 1.01)},
			says: "must not be what decides",
		},
		"the verdict turns round": {
			outcome: goes, without: estimate(1.04, 1.06, 1.08), again: &analysis.Twice{Outcome: noGo, Estimate: estimate(0.85, 0.9, 0.95)}, says: "NoGo",
		},
		"a baseline that excuses its noise makes no NoGo": {
			outcome: noGo, without: estimate(0.92, 0.94, 0.96), again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(0.95, 1.02, 1.09)},
			says: "must not be what decides",
		},
		"a NoGo that stays where it was": {
			outcome: noGo, without: estimate(0.92, 0.94, 0.96), again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(0.85, 0.94, 1.03)},
		},
		"at most: a time that grows with them": {
			op: experiment.RatioAtMost, outcome: goes, without: estimate(0.94, 0.95, 0.96),
			again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(0.95, 1.05, 1.15)}, says: "must not be what decides",
		},
		"a time that grows with them by as large a part": {
			op: experiment.RatioAtMost, outcome: goes, without: estimate(0.4, 0.5, 0.9),
			again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(0.3, 0.56, 1.1)}, says: "must not be what decides",
		},
		"a figure that may be below zero moves by a difference": {
			op: experiment.AtMost, outcome: goes, without: estimate(-0.2, 0.3, 0.8),
			again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(-0.9, 0.4, 1.7)},
		},
		"one that begins at zero too": {
			op: experiment.AtMost, outcome: goes, without: estimate(0, 0.3, 0.8),
			again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(-0.9, 0.4, 1.7)},
		},
		"one that moves by more than is left": {
			op: experiment.AtMost, outcome: goes, without: estimate(-0.2, 0.3, 0.8),
			again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(-0.9, 0.6, 1.7)}, says: "must not be what decides",
		},
		"one that falls below zero": {
			op: experiment.AtLeast, outcome: goes, without: estimate(1.04, 1.05, 1.06),
			again: &analysis.Twice{Outcome: inconclusive, Estimate: estimate(-2, -0.5, 1.2)}, says: "must not be what decides",
		},
		"with them there is no interval at all": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &analysis.Twice{Outcome: invalid}, says: "it is Invalid",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate := &analysis.GateResult{Op: tc.op, Bound: ptr.To(1.0), Outcome: tc.outcome, Estimate: tc.without, WithRejected: tc.again}
			if gate.Op == "" {
				gate.Op = experiment.RatioAtLeast
			}
			if got := rejectionDecides(nil, nil, gate); (tc.says == "") != (got == "") || !strings.Contains(got, tc.says) {
				t.Errorf("says %q, want %q", got, tc.says)
			}
		})
	}
}
