// Package outcome defines how a run ends: its phase, the reason of its last condition, its verdict, and the exit code of the commands that
// judge it. The operator, the CLI and docs/concepts.md use this one table.
package outcome

import (
	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// Exit codes of commands that judge.
const (
	CodePassed    = 0
	CodeFailed    = 1
	CodeUndecided = 3
	CodeMissed    = 4
)

// Row is one way in which a run ends.
type Row struct {
	// Situation describes the row for people.
	Situation string
	Phase     assayv1alpha1.Phase
	// Reason is that of the condition Complete or Failed; empty for several reasons, which the condition then names.
	Reason string
	// Verdict is empty where nothing is judged.
	Verdict experiment.Verdict
	// Code is the exit code of judging commands.
	Code int
}

// Rows with a special condition. The verdict selects the others.
var (
	setupBroken = Row{"the baseline or every arm cannot be measured, for a reason that a repetition does not change (program missing, start " +
		"fails, output unreadable, killed by the kernel)", assayv1alpha1.PhaseFailed, assayv1alpha1.ReasonSetupBroken,
		experiment.VerdictInvalid, CodeUndecided}
	noGates = Row{"the run has no blocking gate", assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonNoVerdict, "", CodeUndecided}
)

// Table lists the outcomes in the order of documentation. Rows of one verdict have one code, and rows of one reason have one phase.
var Table = []Row{
	setupBroken,
	{"a candidate cannot be measured, and the baseline completes: the gate `completes` is missed", assayv1alpha1.PhaseSucceeded,
		assayv1alpha1.ReasonVerdictReached, experiment.VerdictNoGo, CodeMissed},
	{"arms lose trials alike, or for reasons of the platform or of noise, and too few remain", assayv1alpha1.PhaseSucceeded,
		assayv1alpha1.ReasonTooFewTrials, experiment.VerdictInvalid, CodeUndecided},
	{"the same, and the remaining trials do not decide", assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached,
		experiment.VerdictInconclusive, CodeUndecided},
	{"all blocking gates of a candidate hold", assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached, experiment.VerdictGo,
		CodePassed},
	{"no candidate is Go, and a gate is not decided", assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached,
		experiment.VerdictInconclusive, CodeUndecided},
	{"every candidate misses a gate", assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached, experiment.VerdictNoGo, CodeMissed},
	{"a series has a regression or an alert", assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached, experiment.VerdictNoGo,
		CodeMissed},
	noGates,
	{"the run ended without an analysis", assayv1alpha1.PhaseFailed, "", "", CodeFailed},
}

// Of returns the outcome of an analysed run with gates. broken reports whether its setup is broken.
func Of(broken bool, verdict experiment.Verdict) Row {
	if broken {
		return setupBroken
	}
	for _, row := range Table {
		if row.Verdict == verdict && row.Phase == assayv1alpha1.PhaseSucceeded {
			return row
		}
	}
	return noGates
}

// Phase returns the phase of a run that ended with an analysis, by the reason of its condition.
func Phase(reason string) assayv1alpha1.Phase {
	for _, row := range Table {
		if row.Reason == reason {
			return row.Phase
		}
	}
	return assayv1alpha1.PhaseSucceeded // The budget ended, or a search.
}

// Code returns the exit code of judging commands for a verdict.
func Code(verdict experiment.Verdict) int { return Of(false, verdict).Code }
