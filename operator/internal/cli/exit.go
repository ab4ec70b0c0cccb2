// Package cli has the parts that all commands share: exit codes, output, connections to clusters, and sources of runs.
package cli

import (
	"errors"
	"fmt"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/outcome"
)

// Exit codes distinguish a verdict from a failure. They are the same for local runs and runs on a cluster. Package outcome defines those of
// verdicts.
const (
	ExitDone         = outcome.CodePassed
	ExitError        = outcome.CodeFailed
	ExitUsage        = 2
	ExitInconclusive = outcome.CodeUndecided
	ExitNoGo         = outcome.CodeMissed
)

// JudgingCommands are the commands whose exit code is that of a verdict. All others answer, and exit with 0 for any verdict.
const JudgingCommands = "gate, bench --require, suite --require, run --series, changes and bisect"

// ExitCodes defines the meaning of each code for the judging commands and for all others. The help, docs/reference/cli.md and
// docs/tasks/gate-a-pull-request.md show this table.
var ExitCodes = []struct {
	Code            int
	Judging, Others string
}{
	{ExitDone, "the verdict is Go, no regression is open, or the culprit is an improvement", "success, with any verdict"},
	{ExitError, "the run failed for another reason than a broken setup, or did not end within --wait", "the command failed"},
	{ExitUsage, "the arguments or the file are wrong", "the arguments or the file are wrong"},
	{ExitInconclusive, "the verdict is Inconclusive, Invalid or missing, the setup is broken, or a search found no culprit", never},
	{ExitNoGo, "the verdict is NoGo, or a series has a regression or an alert", never},
}

const never = "never"

// ExitHelp formats ExitCodes as one sentence for help texts, with the meanings for judging commands if judging is set.
func ExitHelp(judging bool) string {
	var parts []string
	for _, row := range ExitCodes {
		switch {
		case judging:
			parts = append(parts, fmt.Sprintf("%d %s", row.Code, row.Judging))
		case row.Others != never:
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

// VerdictError returns the error of judging commands for the verdict of an analysed run, or nil for Go. detail follows the verdict in its
// message.
func VerdictError(verdict assayv1alpha1.Verdict, detail string) error {
	code := outcome.Code(experiment.Verdict(verdict))
	switch {
	case code == ExitDone:
		return nil
	case verdict == "":
		return WithCode(code, errors.New("the run has no verdict, because it has no blocking gates"))
	}
	return WithCode(code, fmt.Errorf("the verdict is %s%s", verdict, detail))
}
