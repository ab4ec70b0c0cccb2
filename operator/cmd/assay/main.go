// Command assay plans, runs, watches and judges benchmark runs, with or without a cluster. Installed as kubectl-assay it
// is a kubectl plugin.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set when the program is built.
var version = "0.1.0"

// Exit codes: a script can tell a verdict from a failure.
const (
	exitError        = 1
	exitUsage        = 2
	exitInconclusive = 3
)

// exitCode is an error that knows how the process should end.
type exitCode struct {
	code int
	err  error
}

func (e *exitCode) Error() string { return e.err.Error() }
func (e *exitCode) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "assay: "+err.Error())
		var coded *exitCode
		if errors.As(err, &coded) {
			os.Exit(coded.code)
		}
		os.Exit(exitError)
	}
}

func newRootCommand() *cobra.Command {
	name := "assay"
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		name = "kubectl assay"
	}
	root := &cobra.Command{
		Use:           "assay",
		Short:         "Benchmark verdicts you can trust",
		Long:          "assay runs an experiment written as a BenchmarkRun, on a cluster or on this machine, and tells what it says.\n\nExit codes: 0 done, 1 error, 2 wrong input, 3 no verdict could be reached (Inconclusive or Invalid).",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitCode{exitUsage, err} })
	root.AddCommand(newRunCommand(), newWatchCommand(), newResultsCommand(), newAnalyzeCommand(), newLedgerCommand(),
		newPlanCommand(), newGetCommand(), newGateCommand(), newCompareCommand(), newLogsCommand(), newCancelCommand(), newDoctorCommand(), newPreflightCommand())
	return root
}
