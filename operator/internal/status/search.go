package status

import (
	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
)

// The API's limits of the search's lists and texts.
const (
	maxSearched   = 17
	maxConstraint = 128
)

// searchAnswers are the answers so far, for every arm.
func searchAnswers(results []analysis.SearchResult) []assayv1alpha1.SearchStatus {
	var out []assayv1alpha1.SearchStatus
	for _, result := range results[:min(len(results), maxSearched)] {
		status := assayv1alpha1.SearchStatus{
			Arm:         result.Arm,
			FeasibleMax: truncate(result.FeasibleMax, maxNumber), InfeasibleMin: truncate(result.InfeasibleMin, maxNumber),
			FirstBreach: truncate(result.FirstBreach, maxNumber), BindingConstraint: truncate(result.BindingConstraint, maxConstraint),
			Reason: truncate(result.Reason, maxText),
		}
		if result.Interval != nil {
			status.Interval = &assayv1alpha1.Interval{Low: truncate(result.Interval.Low, maxNumber), High: truncate(result.Interval.High, maxNumber)}
		}
		if result.Value != nil {
			status.Value = truncate(analysis.Describe(result.Value), maxShortText)
		}
		out = append(out, status)
	}
	return out
}
