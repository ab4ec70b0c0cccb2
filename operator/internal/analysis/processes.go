package analysis

import (
	"math"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// ProcessUse is what the processes of an arm used, over all trials that count: the mean of one trial, and of memory the most
// of any. A number that no trial has is absent.
type ProcessUse struct {
	Arm    string             `json:"arm"`
	Trials int                `json:"trials"`
	Used   map[string]float64 `json:"used,omitempty"`
}

// processUse sums up what is known of every process, by arm. With several points it is over all of them, which every arm has in
// the same numbers but for lost trials; gates and tables name the same quantities point by point.
func processUse(exp *experiment.Experiment, chosen *selection) []ProcessUse {
	byArm := make([][]*record.Attempt, len(exp.Arms))
	for _, attempt := range chosen.used {
		arm := chosen.cells[attempt].arm
		byArm[arm] = append(byArm[arm], attempt)
	}
	var out []ProcessUse
	for arm, attempts := range byArm {
		if len(attempts) == 0 {
			continue
		}
		use := ProcessUse{Arm: exp.Arms[arm].Name, Trials: len(attempts), Used: map[string]float64{}}
		for _, quantity := range record.ProcessQuantities {
			var sum, most float64
			n := 0
			for _, attempt := range attempts {
				if metric, ok := attempt.Metric(record.ProcessPrefix + quantity.Name); ok {
					sum, most, n = sum+*metric.Value, math.Max(most, *metric.Value), n+1
				}
			}
			switch {
			case n == 0:
			case quantity.Unit == "By":
				use.Used[quantity.Name] = round(most)
			default:
				use.Used[quantity.Name] = round(sum / float64(n))
			}
		}
		out = append(out, use)
	}
	return out
}
