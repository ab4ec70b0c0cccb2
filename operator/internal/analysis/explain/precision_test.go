package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/test/cputime"
)

func TestPrecision_BlocksOfAGate(t *testing.T) {
	// The interval of n blocks whose differences have a standard deviation of 2 %.
	of := func(value, bound float64, n int) analysis.GateResult {
		half := stats.StudentQuantile(0.9975, float64(n-1)) * 0.02 / math.Sqrt(float64(n))
		return analysis.GateResult{
			Gate: "faster", Candidate: "new", Op: experiment.RatioAtMost, Severity: experiment.Blocking, Bound: &bound, Confidence: 0.995,
			Estimate: &analysis.Estimate{
				Value: value, Ratio: true, Low: ptr.To(value * math.Exp(-half)), High: ptr.To(value * math.Exp(half)), Blocks: n,
			},
		}
	}
	cases := map[string]struct {
		stop   float64
		gate   analysis.GateResult
		needed *int
	}{
		"a half width of 1 %":                    {0.01, of(0.98, 1, 10), ptr.To(36)},
		"the same from more blocks":              {0.01, of(0.98, 1, 30), ptr.To(36)},
		"it is reached already":                  {0.05, of(0.98, 1, 10), ptr.To(10)},
		"a decision 2 % away":                    {0, of(0.98, 1, 5), ptr.To(12)},
		"a decision 1 % away takes more":         {0, of(0.99, 1, 5), ptr.To(36)},
		"right at the bound no number would do":  {0, of(1, 1, 5), nil},
		"without an interval there is no answer": {0.01, analysis.GateResult{Estimate: &analysis.Estimate{Value: 1, Blocks: 2}, Bound: ptr.To(1.0)}, nil},
		"nor without an estimate":                {0.01, analysis.GateResult{}, nil},
	}
	show := func(n *int) string {
		if n == nil {
			return "none"
		}
		return fmt.Sprint(*n)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp := &experiment.Experiment{}
			if tc.stop > 0 {
				exp.Plan.Design.Stop = &experiment.Stop{RelativeHalfWidth: tc.stop}
			}
			got := Precisions(exp, []analysis.GateResult{tc.gate})[0]
			if show(got.Needed) != show(tc.needed) {
				t.Errorf("%s blocks, want %s", show(got.Needed), show(tc.needed))
			}
		})
	}
}

// The total is that of the gate that needs most, for any number of gates.
func TestExpected_BlocksOfManyGates(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	exp := &experiment.Experiment{}
	draw := func(kinds int) (gates []analysis.GateResult) {
		for range 1 + random.IntN(40) {
			value, half := math.Exp(0.1*random.NormFloat64()), 0.05*random.Float64()
			gates = append(gates, analysis.GateResult{
				Op: experiment.RatioAtMost, Severity: experiment.Blocking, Bound: ptr.To(1.0), Confidence: 0.995,
				Estimate: &analysis.Estimate{
					Value: value, Low: ptr.To(value * math.Exp(-half)), High: ptr.To(value * math.Exp(half)), Blocks: 8 + random.IntN(kinds),
				},
			})
		}
		return gates
	}
	for range 50 {
		gates := draw(4)
		var want *int
		for _, p := range Precisions(exp, gates) {
			if p.Needed == nil {
				want = nil
				break
			}
			if want == nil || *p.Needed > *want {
				want = p.Needed
			}
		}
		if got := Expected(exp, gates); (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%v blocks, want %v", got, want)
		}
	}
	// The analysis is untrusted, and the operator shows it.
	var many []analysis.GateResult
	for len(many) < 40_000 {
		many = append(many, draw(30_000)...)
	}
	used := cputime.Start()
	if Expected(exp, many); used() > 2*time.Second {
		t.Errorf("%d gates took %s", len(many), used())
	}
}
