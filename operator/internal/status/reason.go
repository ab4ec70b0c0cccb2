package status

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
)

// maxReason limits a sentence that is a column of kubectl get.
const maxReason = 256

// setReason sets the sentence about the first cause: why the run failed, why its verdict is not Go, the reason for its wait, or a failure
// among the first trials of a wave. Result is nil without an analysis.
func setReason(out *assayv1alpha1.BenchmarkRunStatus, result *analysis.Analysis, failing string) {
	cause := ""
	if result != nil {
		cause = result.FirstCause()
	}
	is := func(kind string, value bool) string {
		condition := meta.FindStatusCondition(out.Conditions, kind)
		if condition == nil || (condition.Status == "True") != value {
			return ""
		}
		return condition.Reason + ": " + condition.Message
	}
	ended := is(assayv1alpha1.ConditionFailed, true)
	broken := strings.HasPrefix(ended, assayv1alpha1.ReasonSetupBroken+": ")
	over := ended != "" || is(assayv1alpha1.ConditionComplete, true) != ""
	switch {
	case ended != "" && (!broken || cause == ""):
		out.Reason = ended
	case cause != "" && over:
		out.Reason = cause
	case over:
		out.Reason = ""
	default:
		out.Reason = cmp.Or(failing, cause)
		for _, kind := range waits {
			if why := is(kind, false); why != "" {
				out.Reason = why
				break
			}
		}
	}
	out.Reason = record.Truncate(out.Reason, maxReason)
}

// waits are the conditions that stop a run while they are False, in the order of their importance.
var waits = []string{assayv1alpha1.ConditionAccepted, assayv1alpha1.ConditionLedgerReady, assayv1alpha1.ConditionProgressing}
