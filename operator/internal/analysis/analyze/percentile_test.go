package analyze

import (
	"math"
	"math/rand/v2"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// The median of two nodes of which one is slower lies between the two, where a few samples more of either make another one of it. So the
// ratio of two such medians need not be near that of any node, and an interval that holds both nodes' has to hold the estimate too.
func TestAPercentileOfTwoNodesLiesInItsInterval(t *testing.T) {
	for name, fewer := range map[string]int{"as many samples of both arms": 0, "two less of the candidate on the fast node": 2} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			l := pair(t, 1, func(spec *runSpec) {
				spec.Gates = []assayv1alpha1.Gate{
					{Name: "same", Metric: "time", Statistic: assayv1alpha1.StatisticP50, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"},
				}
			})
			for i := range l.attempts {
				a := &l.attempts[i]
				node, seconds, samples := "fast", 1.0, 20
				if numbered(t, a)%2 == 1 {
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
			got := l.analyze()
			gate := got.Gates[0]
			checkEstimate(t, gate.Gate, *gate.Estimate)
			if gate.Outcome == goes && gate.Estimate.Value > 1.05 {
				t.Errorf("%s: %s", gate.Outcome, gate.Message)
			}
		})
	}
}
