package experiment

import (
	"fmt"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// RewardsWorse says how a comparison rewards what its metric's direction calls worse; empty where it does not, or where the run
// says that this is meant. A bound on the other side than 1, as in RatioAtMost 1.05 of a time, allows a loss and rewards none.
func RewardsWorse(op assayv1alpha1.GateOperator, allowWorse bool, metric *assayv1alpha1.Metric) string {
	opposite := map[assayv1alpha1.GateOperator]assayv1alpha1.GateOperator{
		assayv1alpha1.AtLeast: assayv1alpha1.AtMost, assayv1alpha1.RatioAtLeast: assayv1alpha1.RatioAtMost,
	}
	worse := assayv1alpha1.LowerIsBetter
	if op == assayv1alpha1.AtMost || op == assayv1alpha1.RatioAtMost {
		opposite = map[assayv1alpha1.GateOperator]assayv1alpha1.GateOperator{
			assayv1alpha1.AtMost: assayv1alpha1.AtLeast, assayv1alpha1.RatioAtMost: assayv1alpha1.RatioAtLeast,
		}
		worse = assayv1alpha1.HigherIsBetter
	}
	meant, compares := opposite[op]
	if !compares || allowWorse || metric.Direction != worse {
		return ""
	}
	return fmt.Sprintf("%s of metric %q rewards what is worse, as its direction is %s: write %s, or say that it is meant with allowWorse: true",
		op, metric.Name, metric.Direction, meant)
}
