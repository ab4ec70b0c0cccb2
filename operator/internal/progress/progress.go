// Package progress describes in a line or a page where a run stands, from its status alone.
package progress

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
)

// Ended reports whether the run will not change any more.
func Ended(run *assayv1alpha1.BenchmarkRun) bool {
	return meta.IsStatusConditionTrue(run.Status.Conditions, assayv1alpha1.ConditionComplete) ||
		meta.IsStatusConditionTrue(run.Status.Conditions, assayv1alpha1.ConditionFailed)
}

// answerGrace is the time beyond the operator's own estimate after which a run without any write of its status counts as unattended.
const answerGrace = time.Minute

// Unattended returns the time of the operator's last write to a run that it should have written since, or the zero time. That is a run
// whose remaining time has passed, or a new run without a status. A run that waits, or whose trials take long, has no such time.
func Unattended(run *assayv1alpha1.BenchmarkRun, now time.Time) time.Time {
	last, wrote := run.CreationTimestamp.Time, false
	for _, entry := range run.ManagedFields {
		if entry.Subresource == "status" && entry.Time != nil {
			wrote = true
			if entry.Time.After(last) {
				last = entry.Time.Time
			}
		}
	}
	expected := time.Duration(0)
	switch {
	case Ended(run) || last.IsZero():
		return time.Time{}
	case run.Status.Remaining != nil:
		expected = run.Status.Remaining.Duration
	case wrote || run.Status.Phase != "":
		return time.Time{}
	}
	if now.Sub(last) <= expected+answerGrace {
		return time.Time{}
	}
	return last
}

// LineAt is Line at a time. For an unattended run it says that no operator answers, in place of an estimate.
func LineAt(run *assayv1alpha1.BenchmarkRun, now time.Time) string {
	since := Unattended(run, now)
	if since.IsZero() {
		return Line(run)
	}
	run = run.DeepCopy()
	run.Status.Remaining, run.Status.Expected = nil, ""
	return Line(run) + "  no operator has answered since " + since.UTC().Format(time.RFC3339) + ": see assay doctor"
}

// Line formats phase, trials, remaining time, precision and the first cause of a wait or an end of a run in one line.
func Line(run *assayv1alpha1.BenchmarkRun) string {
	status := run.Status
	parts := []string{fmt.Sprintf("%-10s", cmp.Or(status.Phase, assayv1alpha1.PhasePending))}
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
		parts = append(parts, "remaining about "+quantity.Seconds(status.Remaining.Duration))
	}
	if status.Expected != "" && !Ended(run) {
		parts = append(parts, status.Expected)
	}
	if why := cmp.Or(status.Reason, Waits(run)); why != "" {
		parts = append(parts, why)
	}
	return report.Printable(strings.Join(parts, "  "))
}

// Waits returns the reason that the run waits, or "".
func Waits(run *assayv1alpha1.BenchmarkRun) string {
	for _, kind := range []string{assayv1alpha1.ConditionAccepted, assayv1alpha1.ConditionLedgerReady, assayv1alpha1.ConditionProgressing} {
		condition := meta.FindStatusCondition(run.Status.Conditions, kind)
		if condition != nil && condition.Status == "False" && !Ended(run) {
			return condition.Reason + ": " + condition.Message
		}
	}
	return ""
}

// Summary prints verdict, gates, warnings and URLs of a finished run in lines that fit the width of the writer.
func Summary(out io.Writer, run *assayv1alpha1.BenchmarkRun) {
	status, width := run.Status, report.Width(out)
	line := func(format string, args ...any) {
		for _, part := range report.Wrap(report.Printable(fmt.Sprintf(format, args...)), width) {
			fmt.Fprintln(out, part)
		}
	}
	table := func(keys int, rows ...[]string) {
		fmt.Fprintln(out)
		for _, row := range report.Columns(rows, keys, 1, width) {
			fmt.Fprintln(out, row)
		}
	}
	if run.Spec.Search == nil {
		fmt.Fprintf(out, "\nVERDICT  %s\n", report.Printable(or(string(status.Verdict))))
	}
	if status.Gain != "" {
		line("GAIN     %s", status.Gain)
	}
	if status.Reason != "" {
		line("REASON   %s", status.Reason)
	}
	if len(status.Search) > 0 {
		rows := [][]string{{"ARM", "HIGHEST FEASIBLE", "LOWEST INFEASIBLE", "VALUE", "REASON"}}
		for _, answer := range status.Search {
			rows = append(rows, []string{answer.Arm, or(answer.FeasibleMax), or(answer.InfeasibleMin), or(answer.Value), answer.Reason})
		}
		table(1, rows...)
	}
	for _, candidate := range status.Candidates {
		line("  %-16s %-13s %s", candidate.Name, candidate.Verdict, candidate.Gain)
	}
	if len(status.Gates) > 0 {
		interval := "INTERVAL"
		if level, err := strconv.ParseFloat(run.Spec.Design.GateConfidence, 64); err == nil {
			interval += report.Interval(level)
		}
		rows := [][]string{{"GATE", "CANDIDATE", "POINT", "OUTCOME", "BOUND", "ESTIMATE", interval, "BLOCKS", "MDE"}}
		for _, gate := range status.Gates {
			between := "-"
			if gate.Interval != nil {
				between = "[" + gate.Interval.Low + ", " + gate.Interval.High + "]"
			}
			rows = append(rows, []string{gate.Name, gate.Candidate, or(gate.Point), string(gate.Outcome), or(gate.Bound),
				or(gate.Estimate),
				between, fmt.Sprint(gate.Blocks), or(gate.MinimumDetectableEffect)})
		}
		table(3, rows...)
	}
	for _, warning := range status.Warnings {
		line("warning: %s", warning)
	}
	fmt.Fprintf(out, "\nledger   %s\nreport   %s\n", report.Printable(or(status.Ledger)), report.Printable(or(status.Report)))
}

func or(text string) string { return cmp.Or(text, "-") }
