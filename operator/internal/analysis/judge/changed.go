package judge

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis/estimate"
)

// changed describes how what a gate looks at was not one program throughout the run; empty when it was.
func changed(d *estimate.Data, candidate int, relative bool) string {
	arms := []int{candidate}
	if baseline := d.Exp.Baseline(); relative && baseline >= 0 {
		arms = append(arms, baseline)
	}
	for _, arm := range arms {
		if how := d.Chosen.Changed[arm]; how != "" {
			return fmt.Sprintf("arm %s changed during the run: %s; name its image by digest, build nothing while it runs, and run again",
				d.Exp.Arms[arm].Name, how)
		}
	}
	return ""
}
