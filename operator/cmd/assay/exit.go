package main

import (
	"errors"
	"fmt"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Exit codes: a script distinguishes a verdict from a failure by them. They are the same wherever a run is executed.
const (
	exitDone         = 0
	exitError        = 1
	exitUsage        = 2
	exitInconclusive = 3
	exitNoGo         = 4
)

// exitCodes is what each code means: of assay gate, and of every other command. The help, docs/reference/cli.md and
// docs/tasks/gate-a-pull-request.md show it.
var exitCodes = []struct {
	code         int
	gate, others string
}{
	{exitDone, "the verdict is Go", "done; a run answered, be it Go or NoGo"},
	{exitError, "the run failed, or did not end within --wait", "it failed"},
	{exitUsage, "the arguments or the file are wrong", "the arguments or the file are wrong"},
	{exitInconclusive, "the verdict is Inconclusive or Invalid, or there is none",
		"a run with gates ended Inconclusive, Invalid or without a verdict, or a search without a culprit"},
	{exitNoGo, "the verdict is NoGo", "never"},
}

// exitHelp is exitCodes in a sentence: of assay gate, or of the others.
func exitHelp(gate bool) string {
	var parts []string
	for _, row := range exitCodes {
		switch {
		case gate:
			parts = append(parts, fmt.Sprintf("%d %s", row.code, row.gate))
		case row.others != "never":
			parts = append(parts, fmt.Sprintf("%d %s", row.code, row.others))
		}
	}
	return "Exit codes: " + strings.Join(parts, "; ") + "."
}

// exitCode is an error that knows how the process should end.
type exitCode struct {
	code int
	err  error
}

func (e *exitCode) Error() string { return e.err.Error() }
func (e *exitCode) Unwrap() error { return e.err }

// withCode is the error with the exit code that the process ends with.
func withCode(code int, err error) error { return &exitCode{code, err} }

// usageError is the error of wrong arguments or a wrong file.
func usageError(err error) error { return withCode(exitUsage, err) }

func exitCodeOf(err error) int {
	if err == nil {
		return exitDone
	}
	if coded, ok := errors.AsType[*exitCode](err); ok {
		return coded.code
	}
	return exitError
}

// verdictError is how a verdict ends a command that is not a gate: nil when the run answered its question.
func verdictError(verdict assayv1alpha1.Verdict, hasGates bool) error {
	switch {
	case verdict == assayv1alpha1.VerdictGo, verdict == assayv1alpha1.VerdictNoGo, verdict == "" && !hasGates:
		return nil
	case verdict == "":
		return withCode(exitInconclusive, errors.New("the run has gates and reached no verdict"))
	default:
		return withCode(exitInconclusive, fmt.Errorf("the verdict is %s", verdict))
	}
}

// gateError is how a run ends assay gate: nil for one that may pass.
func gateError(run *assayv1alpha1.BenchmarkRun, lenient bool) error {
	if err := failure(run); err != nil {
		return err
	}
	switch run.Status.Verdict {
	case assayv1alpha1.VerdictGo:
		return nil
	case assayv1alpha1.VerdictNoGo:
		return withCode(exitNoGo, errors.New("the verdict is NoGo"+because(run)))
	case assayv1alpha1.VerdictInconclusive:
		if lenient {
			return nil
		}
		return withCode(exitInconclusive,
			errors.New("the verdict is Inconclusive"+because(run)+": more blocks, a quieter machine or a wider bound would decide"))
	case assayv1alpha1.VerdictInvalid:
		return withCode(exitInconclusive, errors.New("the verdict is Invalid: too little valid data is left to judge"))
	default:
		return withCode(exitInconclusive, errors.New("the run has no verdict: it has no blocking gates"))
	}
}
