package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/scan"
	"assay.dev/assay/operator/internal/steps"
)

// StepOptions are the commands around the trials of a run on this machine.
type StepOptions struct {
	setup, prepare, conclude, cleanup []string
	timeout                           time.Duration
}

// AddFlags adds the flags. when prefixes their help texts.
func (o *StepOptions) AddFlags(flags *pflag.FlagSet, when string) {
	each := "; once for all arms, or once for each, the baseline first"
	flags.StringArrayVar(&o.setup, "setup", nil, when+"command that runs once for each arm and point, before the first trial"+each)
	flags.StringArrayVar(&o.prepare, "prepare", nil, when+"untimed command directly before every trial"+each)
	flags.StringArrayVar(&o.conclude, "conclude", nil, when+"untimed command directly after every trial, also a failed or killed one"+each)
	flags.StringArrayVar(&o.cleanup, "cleanup", nil, when+"command that runs once for each arm and point, after the last trial"+each)
	flags.DurationVar(&o.timeout, "step-timeout", 5*time.Minute, when+"time limit of each --setup, --prepare, --conclude and --cleanup")
}

// Check returns an error for steps of a run that is not a single one on this machine.
func (o *StepOptions) Check(here, single bool) error {
	switch lines := o.Lines(); {
	case !lines.Any() || here && single:
		return nil
	case here:
		return errors.New("--setup, --prepare, --conclude and --cleanup cannot be combined with --series: measure the run alone")
	default:
		return errors.New("--setup, --prepare, --conclude and --cleanup need --local: a run on a cluster has no steps; prepare in the program, " +
			"or with a role of the template")
	}
}

// Lines returns the steps as they were given.
func (o *StepOptions) Lines() steps.Lines {
	return steps.Lines{steps.Setup: o.setup, steps.Prepare: o.prepare, steps.Conclude: o.conclude, steps.Cleanup: o.cleanup}
}

// Texts returns all lines.
func (o *StepOptions) Texts() (out []string) {
	lines := o.Lines()
	for _, kind := range steps.Kinds {
		out = append(out, lines[kind]...)
	}
	return out
}

// For gives a run its steps. values are those of the arm at a position in place of names in braces, beside the values of the point.
func (o *StepOptions) For(run *LocalRun, shell bool, values func(arm int) map[string]string) error {
	lines := o.Lines()
	if !lines.Any() {
		return nil
	}
	resolve := func(line string, arm int, point map[string]string) ([]string, error) {
		with := map[string]string{}
		for _, from := range []map[string]string{point, values(arm)} {
			for name, value := range from {
				with[name] = value
			}
		}
		words := []string{"/bin/sh", "-c", line}
		if !shell {
			var err error
			if words, err = bench.Words(line); err != nil {
				return nil, fmt.Errorf("%w; or write sh -c '…' as the step", err)
			}
		}
		for i, word := range words {
			var err error
			if len(with) == 0 {
				break // Braces have a meaning beside parameters only.
			}
			if words[i], err = scan.Fill(word, with); err != nil {
				return nil, err
			}
		}
		var err error
		words[0], err = stepProgram(words[0])
		return words, err
	}
	var inherited []string
	if run.inherited != nil {
		inherited = run.inherited.Names
	}
	around, err := steps.Of(run.Experiment, lines, o.timeout, inherited, resolve)
	if err != nil {
		return cli.UsageError(err)
	}
	run.Executor.Steps = around
	return nil
}

// stepProgram returns the path of the program of a step. One that is named by a path may be made by an earlier step.
func stepProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case strings.Contains(name, "/"):
		return filepath.Abs(name)
	case err != nil && !errors.Is(err, exec.ErrDot):
		return "", fmt.Errorf("program %q is not in PATH; use its path, or write sh -c '…' for a built-in of the shell", name)
	}
	return filepath.Abs(path)
}

// Around runs the setups of a run, then measure, and then the cleanups, also after an error or an interruption. A step that failed is the
// outcome SetupBroken.
func (r *LocalRun) Around(ctx context.Context, stderr io.Writer, measure func() error) error {
	if r.Executor.Steps == nil {
		return measure()
	}
	executor := *r.Executor
	executor.Log = io.Discard
	around := &local.Steps{Executor: &executor}
	err := around.Setup(ctx)
	if err == nil {
		err = measure()
	}
	if cleanup := around.Cleanup(ctx); cleanup != nil {
		fmt.Fprintf(stderr, "warning: %v\n", cleanup)
	}
	if broken, ok := errors.AsType[*local.BrokenSetup](err); ok {
		return cli.VerdictError(assayv1alpha1.VerdictInvalid, ": "+assayv1alpha1.ReasonSetupBroken+": "+broken.Reason)
	}
	return err
}
