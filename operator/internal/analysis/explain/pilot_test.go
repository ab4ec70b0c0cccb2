package explain_test

import (
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/internal/fixture"
)

// The number of blocks that a pilot of ten blocks predicts is that of the run, on average.
func TestExpected_PilotPredictsBlocksOfTheRun(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs, wanted = 200, 0.01
	var sum float64
	for seed := range uint64(runs) {
		exp, err := fixture.PairExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"}
		})
		if err != nil {
			t.Fatal(err)
		}
		wave, err := fixture.Wave(exp, 0, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		world := fixture.NewWorld(fixture.Scenario{Trial: 0.02}, 0, seed, 1)
		run := &analyzed.Run{Exp: exp, Attempts: world.Run(exp, wave)}
		run.Waves = append(run.Waves, *wave)
		needed := explain.Expected(exp, run.Analyze().Gates)
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
