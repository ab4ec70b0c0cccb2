package analyze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A figure exactly at its bound is at its bound, whatever sums, logarithms and decimals do to it, and however many others are as well: of
// what does not spread nothing is left to chance.
func TestAFigureExactlyAtItsBoundHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		// A decimal of up to four digits and a ratio of decimals, of what no clock measures: the interval of a time holds its step.
		base, times := 1+random.IntN(9999), 1+random.IntN(300)
		for op, bound := range map[assayv1alpha1.GateOperator]string{
			assayv1alpha1.AtMost: "", assayv1alpha1.AtLeast: "",
			assayv1alpha1.RatioAtMost: fmt.Sprintf("%.2f", float64(times)/100), assayv1alpha1.RatioAtLeast: fmt.Sprintf("%.2f", float64(times)/100),
		} {
			old, candidate := float64(base)/1e4, float64(base)*float64(times)/1e6
			if bound == "" {
				bound = fmt.Sprintf("%d.%06d", base*times/1000000, base*times%1000000)
			}
			l := pair(t, 1, func(spec *runSpec) {
				spec.Gates = []assayv1alpha1.Gate{{Name: "exact", Metric: "time", Op: op, Bound: bound, AllowWorse: true}}
				newer := *spec.Arms[1].DeepCopy()
				newer.Name = "newer"
				spec.Arms = append(spec.Arms, newer)
			})
			for i := range l.attempts {
				value := old
				if l.attempts[i].Arm != "old" {
					value = candidate
				}
				l.attempts[i].Result.Metrics = map[string]*record.Metric{"time": {Unit: "By", Value: ptr.To(value)}}
			}
			l.exp.Plan.Metrics[0].Unit = "By"
			got := l.analyze()
			for i, one := range got.Candidates {
				if gate := got.Gates[i]; gate.Outcome != goes || one.Verdict != goes {
					t.Fatalf("%s %s of %g and %g: %s: %s; %s is %s: %s", op, bound, old, candidate, gate.Outcome, gate.Message, one.Name,
						one.Verdict, one.Reason)
				}
			}
		}
	}
}

func TestABoundOnAMeanIsHeldAgainstTheArithmeticMean(t *testing.T) {
	l := pair(t, 1, func(spec *runSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "mean", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "20ms"}}
	})
	// Nine trials in ten take 10 ms and one a quarter of a second: 34 ms on average, 13.8 ms in the geometric mean.
	for i := range l.attempts {
		value := 0.01
		if l.attempts[i].Slot == 0 && i/4%5 == 0 || l.attempts[i].Slot == 1 && i/4%5 == 0 {
			value = 0.25
		}
		l.attempts[i].Result.Metrics = map[string]*record.Metric{"time": {Unit: "s", Value: ptr.To(value)}}
	}
	got := l.analyze()
	if gate := got.Gates[0]; gate.Outcome == goes || math.Abs(gate.Estimate.Value-0.034) > 1e-9 {
		t.Errorf("%s: %s", gate.Outcome, gate.Message)
	}
}

func TestAGateThatRewardsTheWorseDirectionJudgesNothing(t *testing.T) {
	l := pair(t, 1.2, nil)
	l.exp.Plan.Gates[0].Op = experiment.RatioAtLeast
	if got := l.analyze(); got.Gates[0].Outcome != invalid || got.Verdict != invalid {
		t.Errorf("%s: %s", got.Verdict, got.Gates[0].Message)
	}
	l.exp.Plan.Gates[0].AllowWorse = true
	if got := l.analyze(); got.Verdict != goes {
		t.Errorf("one that is meant: %s: %s", got.Verdict, got.Gates[0].Message)
	}
}
