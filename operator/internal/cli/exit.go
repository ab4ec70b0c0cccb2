package cli

import (
	"errors"
	"fmt"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Exit codes: a script distinguishes a verdict from a failure by them. They are the same wherever a run is executed.
const (
	ExitDone         = 0
	ExitError        = 1
	ExitUsage        = 2
	ExitInconclusive = 3
	ExitNoGo         = 4
)

// ExitCodes is what each code means: of assay gate, and of every other command. The help, docs/reference/cli.md and
// docs/tasks/gate-a-pull-request.md show it.
var ExitCodes = []struct {
	Code         int
	Gate, Others string
}{
	{ExitDone, "the verdict is Go", "done; a run answered, be it Go or NoGo"},
	{ExitError, "the run failed, or did not end within --wait", "it failed"},
	{ExitUsage, "the arguments or the file are wrong", "the arguments or the file are wrong"},
	{ExitInconclusive, "the verdict is Inconclusive or Invalid, or there is none",
		"a run with gates ended Inconclusive, Invalid or without a verdict, or a search without a culprit"},
	{ExitNoGo, "the verdict is NoGo", "never"},
}

// ExitHelp is exitCodes in a sentence: of assay gate, or of the others.
func ExitHelp(gate bool) string {
	var parts []string
	for _, row := range ExitCodes {
		switch {
		case gate:
			parts = append(parts, fmt.Sprintf("%d %s", row.Code, row.Gate))
		case row.Others != "never":
			parts = append(parts, fmt.Sprintf("%d %s", row.Code, row.Others))
		}
	}
	return "Exit codes: " + strings.Join(parts, "; ") + "."
}

// CodedError is an error that knows how the process should end.
type CodedError struct {
	Code int
	err  error
}

func (e *CodedError) Error() string { return e.err.Error() }
func (e *CodedError) Unwrap() error { return e.err }

// WithCode is the error with the exit code that the process ends with.
func WithCode(code int, err error) error { return &CodedError{code, err} }

// UsageError is the error of wrong arguments or a wrong file.
func UsageError(err error) error { return WithCode(ExitUsage, err) }

func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	if coded, ok := errors.AsType[*CodedError](err); ok {
		return coded.Code
	}
	return ExitError
}

// VerdictError is how a verdict ends a command that is not a gate: nil when the run answered its question.
func VerdictError(verdict assayv1alpha1.Verdict, hasGates bool) error {
	switch {
	case verdict == assayv1alpha1.VerdictGo, verdict == assayv1alpha1.VerdictNoGo, verdict == "" && !hasGates:
		return nil
	case verdict == "":
		return WithCode(ExitInconclusive, errors.New("the run has gates and reached no verdict"))
	default:
		return WithCode(ExitInconclusive, fmt.Errorf("the verdict is %s", verdict))
	}
}
