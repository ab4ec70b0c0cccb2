package status

import (
	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
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
			FeasibleMax: record.Truncate(result.FeasibleMax, maxNumber), InfeasibleMin: record.Truncate(result.InfeasibleMin, maxNumber),
			FirstBreach: record.Truncate(result.FirstBreach, maxNumber), BindingConstraint: record.Truncate(result.BindingConstraint, maxConstraint),
			Reason: record.Truncate(result.Reason, maxText),
		}
		if result.Interval != nil {
			status.Interval = &assayv1alpha1.Interval{
				Low: record.Truncate(result.Interval.Low, maxNumber), High: record.Truncate(result.Interval.High, maxNumber),
			}
		}
		if result.Value != nil {
			status.Value = record.Truncate(analysis.Describe(result.Value), maxShortText)
		}
		out = append(out, status)
	}
	return out
}
