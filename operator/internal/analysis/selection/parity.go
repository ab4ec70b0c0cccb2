package selection

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Parity is the result of comparing outputs, which precedes any comparison of times.
type Parity struct {
	// Baseline describes how outputs of the baseline differ from each other; empty if they agree. Otherwise nothing is compared with it.
	Baseline string
	// Wrong describes, by arm, how its outputs differ from the baseline's or from each other.
	Wrong map[string]string
	// Seen holds the cells with an output.
	Seen map[Cell]bool
	// Compared is false if the template declares that outputs differ, or the run that its arms have different inputs.
	Compared bool
}

// Refused explains why the times of an arm are not compared; empty if they are.
func (p *Parity) Refused(arm string) string {
	if p.Baseline != "" {
		return "the baseline is unusable: " + p.Baseline
	}
	return p.Wrong[arm]
}

// output is a digest and the first attempt with it.
type output struct {
	parity  record.Parity
	attempt string
}

// CheckParity compares the outputs of all attempts, including those that do not count.
func CheckParity(exp *experiment.Experiment, attempts []*record.Attempt) *Parity {
	report := &Parity{Wrong: map[string]string{}, Seen: map[Cell]bool{}, Compared: exp.Plan.Parity != experiment.ParityNone}
	if !report.Compared {
		return report
	}
	// The outputs of an arm with separate inputs must still agree with each other.
	report.Compared = exp.Plan.Parity != experiment.ParityPerArm
	points, arms := indexes(exp)
	outputs := map[Cell]output{}
	split := map[Cell]string{}
	for _, attempt := range attempts {
		if attempt.Result == nil || attempt.Result.Parity == nil {
			continue
		}
		c := Cell{points[attempt.Point], arms[attempt.Arm]}
		first, ok := outputs[c]
		if !ok {
			outputs[c], report.Seen[c] = output{*attempt.Result.Parity, attempt.ID}, true
			continue
		}
		if split[c] == "" && first.parity != *attempt.Result.Parity {
			split[c] = fmt.Sprintf("at %s arm %s disagrees with itself: %s in %s, %s in %s", analysis.PointName(attempt.Point), attempt.Arm,
				digestName(first.parity), first.attempt, digestName(*attempt.Result.Parity), attempt.ID)
		}
	}

	baseline := exp.Baseline()
	for point := range exp.Points {
		reference, haveReference := outputs[Cell{point, baseline}]
		for arm := range exp.Arms {
			c := Cell{point, arm}
			name := exp.Arms[arm].Name
			mine, ok := outputs[c]
			reason := split[c]
			role := experiment.RoleOf(exp.Arms[arm])
			sameInputs := report.Compared || role.RepeatsBaseline()
			if reason == "" && sameInputs && ok && haveReference && mine.parity != reference.parity {
				reason = fmt.Sprintf("at %s arm %s gives another output than the baseline: %s in %s, %s in %s",
					analysis.PointName(exp.Points[point].Key), name, digestName(mine.parity), mine.attempt, digestName(reference.parity),
					reference.attempt)
			}
			switch {
			case reason == "":
			case !role.Judged():
				// The null arm runs the baseline: if its output differs, the output of the baseline depends on its path.
				if report.Baseline == "" {
					report.Baseline = reason
				}
			case report.Wrong[name] == "":
				report.Wrong[name] = reason
			}
		}
	}
	return report
}

func digestName(parity record.Parity) string {
	return fmt.Sprintf("%s:%.12s… over %d items", parity.Algorithm, parity.Digest, parity.Items)
}
