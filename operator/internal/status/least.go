package status

import (
	"fmt"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// Least returns a status without the fields that are only for users: it has the inputs of decisions, and the conditions with their times.
// It is written if the API server rejects the complete status, so that a run can end and release its nodes. The results are in the ledger.
func Least(before, after assayv1alpha1.BenchmarkRunStatus, refused error) assayv1alpha1.BenchmarkRunStatus {
	why := record.Truncate(fmt.Sprintf("the API server refused the status, results are in the ledger alone: %v", refused), maxText)
	out := assayv1alpha1.BenchmarkRunStatus{
		ObservedGeneration: after.ObservedGeneration, Phase: after.Phase, AcceptanceTries: after.AcceptanceTries,
		StartTime: after.StartTime, CompletionTime: after.CompletionTime,
		SuspendedSince: after.SuspendedSince, SuspendedTime: after.SuspendedTime,
		Queue: after.Queue, Grace: after.Grace, Leases: after.Leases,
		Wave: after.Wave, Execution: after.Execution, Experiment: after.Experiment, Ledger: after.Ledger,
		Trials: before.Trials, Progress: before.Progress,
	}
	for _, condition := range after.Conditions {
		condition.Message = why
		out.Conditions = append(out.Conditions, condition)
	}
	return out
}
