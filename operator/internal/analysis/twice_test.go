package analysis

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/simulate"
)

func TestARejectionMayMakeAGatePreciseAndNotMoveIt(t *testing.T) {
	estimate := func(low, value, high float64) *Estimate {
		return &Estimate{Value: value, Ratio: true, Low: ptr.To(low), High: ptr.To(high), Blocks: 10}
	}
	cases := map[string]struct {
		op      experiment.Op
		outcome experiment.Verdict
		without *Estimate
		again   *Twice
		says    string
	}{
		"nothing was rejected": {outcome: goes, without: estimate(1.04, 1.05, 1.06)},
		"both say the same": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &Twice{Outcome: goes, Estimate: estimate(1.01, 1.08, 1.15)},
		},
		"the estimate stays where it was and is less sure: the rejection made it precise": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &Twice{Outcome: inconclusive, Estimate: estimate(0.95, 1.04, 1.13)},
		},
		"the estimate comes nearer to the bound than the interval is wide": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &Twice{Outcome: inconclusive, Estimate: estimate(0.92, 1.005, 1.1)},
			says: "Inconclusive, and leaving them out must not be what decides",
		},
		"the estimate lies on the other side": {
			outcome: goes, without: estimate(1.04, 1.06, 1.08), again: &Twice{Outcome: inconclusive, Estimate: estimate(0.85, 0.93, 1.01)},
			says: "must not be what decides",
		},
		"the verdict turns round": {
			outcome: goes, without: estimate(1.04, 1.06, 1.08), again: &Twice{Outcome: noGo, Estimate: estimate(0.85, 0.9, 0.95)}, says: "NoGo",
		},
		"a baseline that excuses its noise makes no NoGo": {
			outcome: noGo, without: estimate(0.92, 0.94, 0.96), again: &Twice{Outcome: inconclusive, Estimate: estimate(0.95, 1.02, 1.09)},
			says: "must not be what decides",
		},
		"a NoGo that stays where it was": {
			outcome: noGo, without: estimate(0.92, 0.94, 0.96), again: &Twice{Outcome: inconclusive, Estimate: estimate(0.85, 0.94, 1.03)},
		},
		"at most: a time that grows with them": {
			op: experiment.RatioAtMost, outcome: goes, without: estimate(0.94, 0.95, 0.96),
			again: &Twice{Outcome: inconclusive, Estimate: estimate(0.95, 1.05, 1.15)}, says: "must not be what decides",
		},
		"with them there is no interval at all": {
			outcome: goes, without: estimate(1.04, 1.05, 1.06), again: &Twice{Outcome: invalid}, says: "it is Invalid",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate := &GateResult{Op: tc.op, Bound: ptr.To(1.0), Outcome: tc.outcome, Estimate: tc.without, WithRejected: tc.again}
			if gate.Op == "" {
				gate.Op = experiment.RatioAtLeast
			}
			if got := rejectionDecides(nil, nil, gate); (tc.says == "") != (got == "") || !strings.Contains(got, tc.says) {
				t.Errorf("says %q, want %q", got, tc.says)
			}
		})
	}
}

// Whatever the analysis says stays what it says when every limit is off and the same trials are counted: that is what it is with.
func TestWithRejectedIsTheRunWithoutLimits(t *testing.T) {
	limits := assayv1alpha1.NoiseLimits{OtherWork: "off", Steal: "off"}
	tamper := beside(cpuNeighbour, nil, 3, 7)
	run := simulated(t, 12, simulate.Machine{Seed: 5, Noise: quiet, Seconds: factor(1.2)}, gates(gainAt8("1.1")))
	open := simulated(t, 12, simulate.Machine{Seed: 5, Noise: quiet, Seconds: factor(1.2)}, func(spec *runSpec, template *templateSpec) {
		gates(gainAt8("1.1"))(spec, template)
		spec.Environment = &assayv1alpha1.Environment{Noise: limits}
	})
	tamper(run)
	tamper(open)
	with, all := run.analyze(), open.analyze()
	for i, gate := range with.Gates {
		if !gate.Op.Timed() {
			continue
		}
		again := gate.WithRejected
		if again == nil || again.Outcome != all.Gates[i].Outcome || again.Estimate.Value != all.Gates[i].Estimate.Value ||
			*again.Estimate.Low != *all.Gates[i].Estimate.Low {
			t.Errorf("%s: with the rejected trials %+v, without limits %+v", gate.Title(), again, all.Gates[i])
		}
		if again.Rejected != 8 || again.Without != goes {
			t.Errorf("%s: %+v, want 8 trials of its two arms rejected, and Go without them", gate.Title(), again)
		}
		if all.Gates[i].WithRejected != nil {
			t.Errorf("%s: nothing was rejected and %+v is said", gate.Title(), all.Gates[i].WithRejected)
		}
	}
}

// One reading costs one trial: the other arms of the block keep theirs, and its own arm what is left of it there.
func TestAnArmKeepsWhatIsLeftOfItInABlock(t *testing.T) {
	run := simulated(t, 12, simulate.Machine{Seed: 5, Noise: quiet, Seconds: factor(1.2)}, gates(gainAt8("1.1")))
	var hit *record.Attempt
	for i := range run.attempts {
		a := &run.attempts[i]
		if a.Block == "w000-b0004" && a.Arm == "fused-m4r" && !a.Warmup && a.Parameters["batchSize"] == "8" &&
			a.Parameters["pendingDelta"] == "0" {
			hit = a
			break
		}
	}
	simulate.Neighbour{Slowdown: 3, OtherWork: 0.5}.Disturb(hit)
	got := run.analyze()
	for _, gate := range got.Gates {
		if gate.Estimate.Blocks != 12 {
			t.Errorf("%s of %s rests on %d blocks, want all 12", gate.Title(), gate.Candidate, gate.Estimate.Blocks)
		}
	}
	if got.Trials.Used != 12*24-1 || got.LostBlocks != 0 {
		t.Errorf("%d trials used and %d blocks lost, want all but one and none", got.Trials.Used, got.LostBlocks)
	}
}

// A load that an arm sustains only in the trials that its own other work does not slow down is not one that it sustains.
func TestASearchCannotExcuseItsOwnNoise(t *testing.T) {
	exp := searchExperiment(t, nil)
	machine := simulate.Machine{Seed: 1, Noise: quiet, Seconds: served(map[string]float64{"loop": 1200, "fused-m4r": 1200})}
	trial := 0
	found := searchTo(t, exp, machine, func(a *record.Attempt) {
		if a.Arm == "fused-m4r" && a.Parameters["rate"] == "800" {
			if trial++; trial%2 == 0 {
				simulate.Neighbour{Slowdown: 3, OtherWork: 0.4}.Disturb(a)
			}
		}
	})
	for _, answer := range found.Search {
		want := map[string]string{"loop": "800", "fused-m4r": "400"}[answer.Arm]
		if answer.FeasibleMax != want {
			t.Errorf("%s sustains %s, want %s: %+v", answer.Arm, answer.FeasibleMax, want, answer)
		}
	}
}
