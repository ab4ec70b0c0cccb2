// Package cli has the parts that all commands share: exit codes, output, connections to clusters, and sources of runs.
package cli

import (
	"errors"
	"fmt"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Exit codes distinguish a verdict from a failure. They are the same for local runs and runs on a cluster.
const (
	ExitDone         = 0
	ExitError        = 1
	ExitUsage        = 2
	ExitInconclusive = 3
	ExitNoGo         = 4
)

// ExitCodes defines the meaning of each code for assay gate and for all other commands. The help, docs/reference/cli.md and
// docs/tasks/gate-a-pull-request.md show this table.
var ExitCodes = []struct {
	Code         int
	Gate, Others string
}{
	{ExitDone, "the verdict is Go", "success; a run may have ended Go or NoGo"},
	{ExitError, "the run failed, or did not end within --wait", "the command failed"},
	{ExitUsage, "the arguments or the file are wrong", "the arguments or the file are wrong"},
	{ExitInconclusive, "the verdict is Inconclusive or Invalid, or missing",
		"a run with gates ended Inconclusive, Invalid or without a verdict, or a search without a culprit"},
	{ExitNoGo, "the verdict is NoGo", "never"},
}

// ExitHelp formats ExitCodes as one sentence for help texts, with the meanings for assay gate if gate is set.
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

// CodedError is an error with the exit code of the process.
type CodedError struct {
	Code int
	err  error
}

func (e *CodedError) Error() string { return e.err.Error() }
func (e *CodedError) Unwrap() error { return e.err }

// WithCode wraps err with the exit code of the process.
func WithCode(code int, err error) error { return &CodedError{code, err} }

// UsageError wraps err with the exit code for invalid arguments or files.
func UsageError(err error) error { return WithCode(ExitUsage, err) }

// ExitCode returns the exit code for err: ExitDone for nil, ExitError for an error without a code.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	if coded, ok := errors.AsType[*CodedError](err); ok {
		return coded.Code
	}
	return ExitError
}

// VerdictError returns the error of commands other than assay gate for a verdict. It is nil for Go and NoGo, and for a missing verdict of a
// run without gates.
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
