package estimate_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// The median of two nodes of which one is slower lies between the two, where a few samples more of either make another one of it. So the
// ratio of two such medians need not be near that of any node, and an interval that holds both nodes' has to hold the estimate too.
func TestPercentile_OfTwoNodesLiesInItsInterval(t *testing.T) {
	t.Parallel()
	for name, fewer := range map[string]int{"as many samples of both arms": 0, "two less of the candidate on the fast node": 2} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) {
				spec.Gates = []assayv1alpha1.Gate{
					{Name: "same", Metric: "time", Statistic: assayv1alpha1.StatisticP50, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"},
				}
			})
			for i := range l.Attempts {
				a := &l.Attempts[i]
				node, seconds, samples := "fast", 1.0, 20
				if fixture.BlockNumber(t, a)%2 == 1 {
					node, seconds = "slow", 1.2
				}
				if a.Arm == "new" {
					if node == "fast" {
						samples -= fewer
					} else {
						seconds *= 1.02 // So that the nodes differ.
					}
				}
				values := make([]float64, samples)
				for j := range values {
					values[j] = seconds * math.Exp(0.001*random.NormFloat64())
				}
				result := *a.Result
				result.Metrics = map[string]*record.Metric{"time": {Unit: "s", Samples: values}}
				a.Result, a.Environment.Soft = &result, map[string]any{"nodeName": node}
			}
			got := l.Analyze()
			gate := got.Gates[0]
			fixture.CheckEstimate(t, gate.Gate, *gate.Estimate)
			if gate.Outcome == fixture.Go && gate.Estimate.Value > 1.05 {
				t.Errorf("%s: %s", gate.Outcome, gate.Message)
			}
		})
	}
}

// A time may be 0. One of thousands moves no median, on however many nodes the others were, and whichever of them had it.
func TestPercentile_ZeroSampleKeepsScale(t *testing.T) {
	t.Parallel()
	const nodes = 5
	measured := func(zero bool) *analysis.GateResult {
		random := rand.New(rand.NewPCG(5, 6))
		l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) {
			spec.Gates = []assayv1alpha1.Gate{
				{Name: "fast", Metric: "time", Statistic: assayv1alpha1.StatisticP50, Op: assayv1alpha1.AtMost, Bound: "0.5"},
			}
		})
		for i := range l.Attempts {
			a := &l.Attempts[i]
			values := make([]float64, 20)
			for j := range values {
				values[j] = math.Exp(0.01 * random.NormFloat64())
			}
			if zero && a.Arm == "new" && i < 4 {
				values[0] = 0
			}
			result := *a.Result
			result.Metrics = map[string]*record.Metric{"time": {Unit: "s", Samples: values}}
			a.Result, a.Environment.Soft = &result, map[string]any{"nodeName": "node-" + strconv.Itoa(fixture.BlockNumber(t, a)%nodes)}
		}
		return &l.Analyze().Gates[0]
	}
	without, with := measured(false), measured(true)
	if without.Outcome != fixture.NoGo || with.Outcome != fixture.NoGo || math.Abs(with.Estimate.Value/without.Estimate.Value-1) > 0.01 {
		t.Errorf("%s: %s\nwith a sample of 0 %s: %s", without.Outcome, without.Message, with.Outcome, with.Message)
	}
}
