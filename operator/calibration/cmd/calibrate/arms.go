package main

import (
	"fmt"
	"strconv"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// armEffects are the true slowdowns of the candidates of a run with many arms, repeated cyclically.
var armEffects = []float64{0, 0.01, 0.02, 0.05}

const (
	fewestArms, mostArms = 2, 16
	// stopAt is the half width of the gate's interval at which an adaptive run ends. It is almost three standard errors, so that at 1.2 %
	// an effect of 2 % is nearly two standard errors beyond it and is detected 19 times in 20 if the blocks suffice.
	stopAt = "1.2%"
)

// manyArms gives a spin run the given number of arms: the baseline, candidates with known slowdowns, and from three arms on a null arm. It
// returns the candidates' true slowdowns by name.
func manyArms(run *assayv1alpha1.BenchmarkRun, arms int) (map[string]float64, error) {
	if arms < fewestArms || arms > mostArms {
		return nil, fmt.Errorf("--arms: %d; a run has from %d to %d arms", arms, fewestArms, mostArms)
	}
	run.Name = fmt.Sprintf("calibration-spin-%d-arms", arms)
	run.Spec.Arms = run.Spec.Arms[:1]
	run.Spec.Design.NullArm = arms > fewestArms
	candidates := arms - 1
	if run.Spec.Design.NullArm {
		candidates--
	}
	truth := map[string]float64{}
	for i := range candidates {
		effect := armEffects[i%len(armEffects)]
		name := fmt.Sprintf("slower-%g-%d", 100*effect, i)
		truth[name] = effect
		run.Spec.Arms = append(run.Spec.Arms, assayv1alpha1.Arm{
			Name: name, Parameters: assayv1alpha1.ParameterValues{"work": strconv.Itoa(int(1000 * (1 + effect)))},
		})
	}
	// The budget counts trials, and every arm has as many as the arms of a pair.
	run.Spec.Budget.Trials = run.Spec.Budget.Trials * int32(arms) / fewestArms
	return truth, nil
}

// adaptive lets a run continue until its gate is precise, up to the given number of blocks.
func adaptive(run *assayv1alpha1.BenchmarkRun, blocks int32) {
	run.Spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: stopAt}
	run.Spec.Design.Blocks.Max = blocks
	perBlock := int32(len(run.Spec.Arms)) * 4 // Two of every arm, and room for warm-ups.
	run.Spec.Budget.Trials = max(run.Spec.Budget.Trials, blocks*perBlock)
}
