package judge_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// A constant figure exactly at its bound is at its bound, in spite of the rounding of sums, logarithms and decimals, and also with
// corrections for many gates.
func TestGate_FigureExactlyAtBoundHolds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	figures := 300
	if testing.Short() {
		figures = 15
	}
	for range figures {
		// A decimal of up to four digits and a ratio of decimals. The unit is not a time, because the interval of a time includes its step.
		base, times := 1+random.IntN(9999), 1+random.IntN(300)
		for op, bound := range map[assayv1alpha1.GateOperator]string{
			assayv1alpha1.AtMost: "", assayv1alpha1.AtLeast: "",
			assayv1alpha1.RatioAtMost: fmt.Sprintf("%.2f", float64(times)/100), assayv1alpha1.RatioAtLeast: fmt.Sprintf("%.2f", float64(times)/100),
		} {
			old, candidate := float64(base)/1e4, float64(base)*float64(times)/1e6
			if bound == "" {
				bound = fmt.Sprintf("%d.%06d", base*times/1000000, base*times%1000000)
			}
			l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) {
				spec.Gates = []assayv1alpha1.Gate{{Name: "exact", Metric: "time", Op: op, Bound: bound, AllowWorse: true}}
				newer := *spec.Arms[1].DeepCopy()
				newer.Name = "newer"
				spec.Arms = append(spec.Arms, newer)
			})
			for i := range l.Attempts {
				value := old
				if l.Attempts[i].Arm != "old" {
					value = candidate
				}
				l.Attempts[i].Result.Metrics = map[string]*record.Metric{"time": {Unit: "By", Value: ptr.To(value)}}
			}
			l.Exp.Plan.Metrics[0].Unit = "By"
			got := l.Analyze()
			for i, one := range got.Candidates {
				if gate := got.Gates[i]; gate.Outcome != fixture.Go || one.Verdict != fixture.Go {
					t.Fatalf("%s %s of %g and %g: %s: %s; %s is %s: %s", op, bound, old, candidate, gate.Outcome, gate.Message, one.Name,
						one.Verdict, one.Reason)
				}
			}
		}
	}
}

func TestLevelGate_MeanIsArithmetic(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "mean", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "20ms"}}
	})
	// Of the trials that count, nine in ten take 10 ms and one a quarter of a second: 34 ms on average, 13.8 ms in the geometric mean.
	for i := range l.Attempts {
		value := 0.01
		if i/6%5 == 0 && l.Attempts[i].Slot%experiment.VisitTrials == 1 {
			value = 0.25
		}
		l.Attempts[i].Result.Metrics = map[string]*record.Metric{"time": {Unit: "s", Value: ptr.To(value)}}
	}
	got := l.Analyze()
	if gate := got.Gates[0]; gate.Outcome == fixture.Go || math.Abs(gate.Estimate.Value-0.034) > 1e-9 {
		t.Errorf("%s: %s", gate.Outcome, gate.Message)
	}
}

func TestGate_RewardingWorseDirectionIsInvalid(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulatePair(t, 1.2, nil)
	l.Exp.Plan.Gates[0].Op = experiment.RatioAtLeast
	if got := l.Analyze(); got.Gates[0].Outcome != fixture.Invalid || got.Verdict != fixture.Invalid {
		t.Errorf("%s: %s", got.Verdict, got.Gates[0].Message)
	}
	l.Exp.Plan.Gates[0].AllowWorse = true
	if got := l.Analyze(); got.Verdict != fixture.Go {
		t.Errorf("one that is meant: %s: %s", got.Verdict, got.Gates[0].Message)
	}
}
