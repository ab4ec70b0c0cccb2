package analysis

import (
	"fmt"
	"math"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/simulate"
	"assay.dev/assay/operator/internal/specimen"
)

func TestHowManyBlocksAGateNeeds(t *testing.T) {
	// The interval of n blocks whose differences have a standard deviation of 2 %.
	of := func(value, bound float64, n int) GateResult {
		half := studentQuantile(0.9975, float64(n-1)) * 0.02 / math.Sqrt(float64(n))
		return GateResult{
			Gate: "faster", Candidate: "new", Op: experiment.RatioAtMost, Severity: experiment.Blocking, Bound: &bound, Confidence: 0.995,
			Estimate: &Estimate{Value: value, Ratio: true, Low: ptr.To(value * math.Exp(-half)), High: ptr.To(value * math.Exp(half)), Blocks: n},
		}
	}
	cases := map[string]struct {
		stop   float64
		gate   GateResult
		needed *int
	}{
		"a half width of 1 %":                    {0.01, of(0.98, 1, 10), ptr.To(36)},
		"the same from more blocks":              {0.01, of(0.98, 1, 30), ptr.To(36)},
		"it is reached already":                  {0.05, of(0.98, 1, 10), ptr.To(10)},
		"a decision 2 % away":                    {0, of(0.98, 1, 5), ptr.To(12)},
		"a decision 1 % away takes more":         {0, of(0.99, 1, 5), ptr.To(36)},
		"right at the bound no number would do":  {0, of(1, 1, 5), nil},
		"without an interval there is no answer": {0.01, GateResult{Estimate: &Estimate{Value: 1, Blocks: 2}, Bound: ptr.To(1.0)}, nil},
		"nor without an estimate":                {0.01, GateResult{}, nil},
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
			got := Precisions(exp, []GateResult{tc.gate})[0]
			if show(got.Needed) != show(tc.needed) {
				t.Errorf("%s blocks, want %s", show(got.Needed), show(tc.needed))
			}
		})
	}
}

// What a pilot of ten blocks says is what the run then takes, on average.
func TestAPilotForetellsTheRun(t *testing.T) {
	const runs, wanted = 200, 0.01
	var sum float64
	for seed := range uint64(runs) {
		exp, err := specimen.Pair(func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"}
		})
		if err != nil {
			t.Fatal(err)
		}
		wave, err := simulate.Wave(exp, 0, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		world := simulate.NewWorld(simulate.Scenario{Trial: 0.02}, 0, seed, 1)
		run := &simulatedRun{exp: exp, attempts: world.Run(exp, wave)}
		run.waves = append(run.waves, *wave)
		needed := Expected(exp, run.analyze().Gates)
		if needed == nil {
			t.Fatal("nothing is expected")
		}
		sum += float64(*needed)
	}
	// Two trials of 2 % in either arm: the block differences have 2 %, so that 35 blocks are needed.
	if average := sum / runs; average < 31 || average > 40 {
		t.Errorf("pilots foretell %.1f blocks on average, want about 35", average)
	}
}
