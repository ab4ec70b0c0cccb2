package judge

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestRejection_MayNarrowAndNotMoveAGate(t *testing.T) {
	estimate := func(low, value, high float64) *analysis.Estimate {
		return &analysis.Estimate{Value: value, Ratio: true, Low: ptr.To(low), High: ptr.To(high), Blocks: 10}
	}
	cases := map[string]struct {
		op      experiment.Op
		outcome experiment.Verdict
		without *analysis.Estimate
		again   *analysis.Recomputed
		says    string
	}{
		"nothing was rejected": {outcome: goes, without: estimate(1.04, 1.05, 1.06)},
		"both say the same": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &analysis.Recomputed{Outcome: goes, Estimate: estimate(1.01, 1.08, 1.15)},
		},
		"the estimate stays where it was and is less sure: the rejection made it precise": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(0.95, 1.04, 1.13)},
		},
		"the estimate comes nearer to the bound than the interval is wide": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(0.92, 1.005, 1.1)},
			says: "Inconclusive, so their exclusion would decide",
		},
		"the estimate lies on the other side": {
			outcome: goes, without: estimate(1.04, 1.06, 1.08), again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(0.85, 0.93, 1.01)},
			says: "their exclusion would decide",
		},
		"the verdict turns round": {
			outcome: goes, without: estimate(1.04, 1.06, 1.08), again: &analysis.Recomputed{Outcome: noGo, Estimate: estimate(0.85, 0.9, 0.95)}, says: "NoGo",
		},
		"a baseline that excuses its noise makes no NoGo": {
			outcome: noGo, without: estimate(0.92, 0.94, 0.96), again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(0.95, 1.02, 1.09)},
			says: "their exclusion would decide",
		},
		"a NoGo that stays where it was": {
			outcome: noGo, without: estimate(0.92, 0.94, 0.96), again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(0.85, 0.94, 1.03)},
		},
		"at most: a time that grows with them": {
			op: experiment.RatioAtMost, outcome: goes, without: estimate(0.94, 0.95, 0.96),
			again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(0.95, 1.05, 1.15)}, says: "their exclusion would decide",
		},
		"a time that grows with them by as large a part": {
			op: experiment.RatioAtMost, outcome: goes, without: estimate(0.4, 0.5, 0.9),
			again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(0.3, 0.56, 1.1)}, says: "their exclusion would decide",
		},
		"a figure that may be below zero moves by a difference": {
			op: experiment.AtMost, outcome: goes, without: estimate(-0.2, 0.3, 0.8),
			again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(-0.9, 0.4, 1.7)},
		},
		"one that begins at zero too": {
			op: experiment.AtMost, outcome: goes, without: estimate(0, 0.3, 0.8),
			again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(-0.9, 0.4, 1.7)},
		},
		"one that moves by more than is left": {
			op: experiment.AtMost, outcome: goes, without: estimate(-0.2, 0.3, 0.8),
			again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(-0.9, 0.6, 1.7)}, says: "their exclusion would decide",
		},
		"one that falls below zero": {
			op: experiment.AtLeast, outcome: goes, without: estimate(1.04, 1.05, 1.06),
			again: &analysis.Recomputed{Outcome: inconclusive, Estimate: estimate(-2, -0.5, 1.2)}, says: "their exclusion would decide",
		},
		"with them there is no interval at all": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &analysis.Recomputed{Outcome: invalid}, says: "it is Invalid",
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

// A neighbour does not select arms, so uneven rejections at one point are detected with any number of other points.
func TestRejection_OnePointAmongManyIsDetected(t *testing.T) {
	for name, tc := range map[string]struct {
		points, mine int
		says         string
	}{
		"as many as at the other points":        {60, 1, ""},
		"8 of 20 beside 1 of 20, the one point": {1, 8, "8 of 20 trials of new and 1 of 20 of old over all points"},
		"at one of 60, where both lose one":     {60, 8, "8 of 20 trials of new and 1 of 20 of old at size=0"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := &experiment.Experiment{Arms: []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}}}
			d := &estimate.Data{Exp: exp, Trials: map[selection.Cell][]*record.Attempt{}, Rejected: map[selection.Cell]int{}}
			for point := range tc.points {
				exp.Points = append(exp.Points, record.Point{Key: fmt.Sprintf("size=%d", point)})
				for arm := range exp.Arms {
					rejected := 1
					if point == 0 && arm == 1 {
						rejected = tc.mine
					}
					c := selection.At(point, arm)
					d.Rejected[c], d.Trials[c] = rejected, make([]*record.Attempt, 20-rejected)
				}
			}
			gate := &analysis.GateResult{
				Candidate: "new", Point: "size=0", Op: experiment.RatioAtMost, Outcome: goes, WithRejected: &analysis.Recomputed{Outcome: inconclusive},
			}
			if got := rejectedUnevenly(d, nil, gate); (tc.says == "") != (got == "") || !strings.Contains(got, tc.says) {
				t.Errorf("says %q, want %q", got, tc.says)
			}
		})
	}
}
