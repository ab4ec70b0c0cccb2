// Package progress describes in a line or a page where a run stands, from its status alone.
package progress

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Ended reports whether the run will not change any more.
func Ended(run *assayv1alpha1.BenchmarkRun) bool {
	return meta.IsStatusConditionTrue(run.Status.Conditions, assayv1alpha1.ConditionComplete) ||
		meta.IsStatusConditionTrue(run.Status.Conditions, assayv1alpha1.ConditionFailed)
}

// Line is phase, trials done and planned, remaining time, how far the wanted precision is, and what the run waits for if it waits.
func Line(run *assayv1alpha1.BenchmarkRun) string {
	status := run.Status
	parts := []string{fmt.Sprintf("%-10s", orPending(status.Phase))}
	if status.Wave != nil {
		parts = append(parts, fmt.Sprintf("wave %d", *status.Wave))
	}
	if status.Trials.Planned > 0 {
		trials := fmt.Sprintf("%d/%d trials", status.Trials.Done, status.Trials.Planned)
		if bad := status.Trials.Failed + status.Trials.Invalid; bad > 0 {
			trials += fmt.Sprintf(" (%d failed or invalid)", bad)
		}
		parts = append(parts, trials)
	}
	if status.Remaining != nil && !Ended(run) {
		parts = append(parts, "remaining about "+status.Remaining.Round(time.Second).String())
	}
	if status.Expected != "" && !Ended(run) {
		parts = append(parts, status.Expected)
	}
	if why := Waits(run); why != "" {
		parts = append(parts, why)
	}
	return strings.Join(parts, "  ")
}

// Waits is what the run waits for; empty if it does not.
func Waits(run *assayv1alpha1.BenchmarkRun) string {
	for _, kind := range []string{assayv1alpha1.ConditionAccepted, assayv1alpha1.ConditionLedgerReady, assayv1alpha1.ConditionProgressing} {
		condition := meta.FindStatusCondition(run.Status.Conditions, kind)
		if condition != nil && condition.Status == "False" && !Ended(run) {
			return condition.Reason + ": " + condition.Message
		}
	}
	return ""
}

// Summary is what a person wants to read when the run has ended.
func Summary(out io.Writer, run *assayv1alpha1.BenchmarkRun) {
	status := run.Status
	if run.Spec.Search == nil {
		fmt.Fprintf(out, "\nVERDICT  %s\n", orNone(string(status.Verdict)))
	}
	answers(out, run)
	for _, candidate := range status.Candidates {
		fmt.Fprintf(out, "  %-16s %-13s %s\n", candidate.Name, candidate.Verdict, candidate.Gain)
	}
	if len(status.Gates) > 0 {
		fmt.Fprintln(out)
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "GATE\tCANDIDATE\tPOINT\tOUTCOME\tBOUND\tESTIMATE\tINTERVAL\tBLOCKS\tMDE")
		for _, gate := range status.Gates {
			interval := "-"
			if gate.Interval != nil {
				interval = "[" + gate.Interval.Low + ", " + gate.Interval.High + "]"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", gate.Name, gate.Candidate, orNone(gate.Point), gate.Outcome,
				orNone(gate.Bound), orNone(gate.Estimate), interval, gate.Blocks, orNone(gate.MinimumDetectableEffect))
		}
		_ = table.Flush()
	}
	for _, warning := range status.Warnings {
		fmt.Fprintln(out, "warning: "+warning)
	}
	fmt.Fprintf(out, "\nledger   %s\nreport   %s\n", orNone(status.Ledger), orNone(status.Report))
}

// answers are those of a search.
func answers(out io.Writer, run *assayv1alpha1.BenchmarkRun) {
	if len(run.Status.Search) == 0 {
		return
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ARM\tHIGHEST FEASIBLE\tLOWEST INFEASIBLE\tVALUE\tREASON")
	for _, answer := range run.Status.Search {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", answer.Arm, orNone(answer.FeasibleMax), orNone(answer.InfeasibleMin), orNone(answer.Value),
			answer.Reason)
	}
	_ = table.Flush()
}

func orPending(phase assayv1alpha1.Phase) assayv1alpha1.Phase {
	if phase == "" {
		return assayv1alpha1.PhasePending
	}
	return phase
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
