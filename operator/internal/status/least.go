package status

import (
	"fmt"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// Least is a status without all that is only told to people: what decisions are made from, and which conditions hold since when. It is
// written where the API server refuses the whole status, so that a run ends and gives its nodes back all the same. The ledger has the rest.
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
