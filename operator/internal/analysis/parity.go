package analysis

import (
	"fmt"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// parityReport is what the outputs say, before any time is looked at.
type parityReport struct {
	// baseline describes how the baseline disagrees with itself. Then nothing can be compared with it.
	baseline string
	// wrong describes how an arm's outputs differ from the baseline's or from each other.
	wrong map[string]string
	// seen holds which arms gave an output at which points.
	seen map[cell]bool
	// compared is false when the template says that outputs legitimately differ, or the run that its arms have different inputs.
	compared bool
}

// refused is why an arm's times are not looked at; empty when they are.
func (p *parityReport) refused(arm string) string {
	if p.baseline != "" {
		return "the baseline is unusable: " + p.baseline
	}
	return p.wrong[arm]
}

// output is one digest and the first attempt that gave it.
type output struct {
	parity  record.Parity
	attempt string
}

func checkParity(exp *experiment.Experiment, attempts []*record.Attempt) *parityReport {
	report := &parityReport{wrong: map[string]string{}, seen: map[cell]bool{}, compared: exp.Plan.Parity != experiment.ParityNone}
	if !report.compared {
		return report
	}
	// An arm with inputs of its own is still held to its own outputs.
	report.compared = exp.Plan.Parity != experiment.ParityPerArm
	points, arms := indexes(exp)
	outputs := map[cell]output{}
	split := map[cell]string{}
	for _, attempt := range attempts {
		if attempt.Result == nil || attempt.Result.Parity == nil {
			continue
		}
		c := cell{points[attempt.Point], arms[attempt.Arm]}
		first, ok := outputs[c]
		if !ok {
			outputs[c], report.seen[c] = output{*attempt.Result.Parity, attempt.ID}, true
			continue
		}
		if split[c] == "" && first.parity != *attempt.Result.Parity {
			split[c] = fmt.Sprintf("at %s arm %s disagrees with itself: %s in %s, %s in %s", PointName(attempt.Point), attempt.Arm,
				digestName(first.parity), first.attempt, digestName(*attempt.Result.Parity), attempt.ID)
		}
	}

	baseline := exp.Baseline()
	for point := range exp.Points {
		reference, haveReference := outputs[cell{point, baseline}]
		for arm := range exp.Arms {
			c := cell{point, arm}
			name := exp.Arms[arm].Name
			mine, ok := outputs[c]
			reason := split[c]
			sameInputs := report.compared || exp.Arms[arm].Null
			if reason == "" && sameInputs && ok && haveReference && mine.parity != reference.parity {
				reason = fmt.Sprintf("at %s arm %s gives another output than the baseline: %s in %s, %s in %s", PointName(exp.Points[point].Key), name,
					digestName(mine.parity), mine.attempt, digestName(reference.parity), reference.attempt)
			}
			switch {
			case reason == "":
			case arm == baseline, exp.Arms[arm].Null:
				// The null arm is the baseline: if its output differs, the baseline's depends on where it runs from.
				if report.baseline == "" {
					report.baseline = reason
				}
			case report.wrong[name] == "":
				report.wrong[name] = reason
			}
		}
	}
	return report
}

func digestName(parity record.Parity) string {
	return fmt.Sprintf("%s:%.12s… over %d items", parity.Algorithm, parity.Digest, parity.Items)
}
