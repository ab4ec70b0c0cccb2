package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/status"
	"assay.dev/assay/operator/internal/store"
)

// gateError returns the error of assay gate for the run, or nil if the gate passes. lenient accepts Inconclusive.
func gateError(run *assayv1alpha1.BenchmarkRun, lenient bool) error {
	if err := runs.RunFailure(run); err != nil {
		return err
	}
	detail := gateSummary(run)
	switch run.Status.Verdict {
	case assayv1alpha1.VerdictInconclusive:
		if lenient {
			return nil
		}
		detail += "; use more blocks, a quieter machine or a wider bound"
	case assayv1alpha1.VerdictInvalid:
		detail = cmp.Or(detail, ", because too few trials are valid")
		if run.Status.Reason != "" {
			detail = ": " + report.Printable(run.Status.Reason)
		}
		if cause := runs.BrokenSetup(run); cause != "" {
			detail = ": " + assayv1alpha1.ReasonSetupBroken + ": " + report.Printable(cause)
		}
	default:
	}
	return cli.VerdictError(run.Status.Verdict, detail)
}

type gateOptions struct {
	form, save string
	wait       time.Duration
	lenient    bool
	here       bool
	local      runs.LocalOptions
}

func NewGateCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var options gateOptions
	var what runs.Creation
	command := &cobra.Command{
		Use:   "gate [NAME]",
		Short: "Wait for a run and exit with its verdict, for pipelines",
		Long: "Wait for a run and exit with its verdict. With -f the run is created first. With --local the experiment in a file runs " +
			"on this machine without a cluster, with the same exit codes.\n\n" +
			cli.ExitHelp(true) + "\n\n" +
			"Inconclusive fails the gate; use --allow-inconclusive to accept it.\n\n" +
			"--save writes the answer to a file, also on failure. assay report accepts this file as NAME and publishes it on GitHub, GitLab " +
			"or Jenkins.",
		Example: "  assay gate my-run --wait 1h\n  assay gate -f run.yaml --generate-name\n  assay gate --local run.yaml\n  assay gate my-run " +
			"-o json | " +
			"jq .gates",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteRuns(flags, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := removeOldAnswer(options.save); err != nil {
				return err
			}
			answer := &cli.GateAnswer{}
			defer func() {
				answer.SetOutcome(err)
				err = errors.Join(err, answer.Save(options.save))
			}()
			if answer.File = what.File; options.here && len(args) == 1 {
				answer.File = args[0]
			}
			if err := options.local.Steps.Check(options.here, true); err != nil {
				return cli.UsageError(err)
			}
			if options.here {
				if what.Name != "" || what.Generate {
					return cli.UsageError(errors.New("--name and --generate-name cannot be combined with --local"))
				}
				if what.File, err = cli.ManifestArgument(args, what.File); err != nil {
					return err
				}
				return gateHere(cmd.Context(), flags, what.File, &options, answer, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if (len(args) == 1) == (what.File != "") {
				return cli.UsageError(errors.New("name either a run or, with -f, a file"))
			}
			cluster, err := cli.Connect(flags)
			if err != nil {
				return err
			}
			if what.File != "" {
				run, err := what.Create(cmd.Context(), cluster, *flags.Namespace)
				if err != nil {
					return err
				}
				answer.Title, args = strings.TrimSuffix(cmp.Or(run.GenerateName, run.Name), "-"), []string{run.Name}
				fmt.Fprintf(cmd.ErrOrStderr(), "BenchmarkRun %s/%s created\n", run.Namespace, run.Name)
			}
			return gate(cmd.Context(), cluster, args[0], &options, answer, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cli.AddOutput(command, &options.form, "text", "json", "yaml")
	what.AddFlags(command)
	options.local.AddFlags(command, &options.here)
	command.Flags().DurationVar(&options.wait, "wait", 2*time.Hour, "timeout for the run on a cluster; 0 does not wait")
	command.Flags().BoolVar(&options.lenient, "allow-inconclusive", false, "exit 0 on Inconclusive")
	command.Flags().StringVar(&options.save, "save", "", "file for the answer as JSON, written also on failure")
	return command
}

// gate waits for the run and prints its answer.
func gate(ctx context.Context, cluster *cli.Cluster, name string, options *gateOptions, answer *cli.GateAnswer, stdout,
	stderr io.Writer) error {
	answer.Namespace, answer.Name = cluster.Namespace, name
	run, err := waitForEnd(ctx, cluster, name, options.wait, stderr)
	if err != nil {
		return err
	}
	return printAnswer(answer, run, options, stdout)
}

// gateHere runs the experiment in a file on this machine and prints its answer.
func gateHere(ctx context.Context, flags *genericclioptions.ConfigFlags, file string, options *gateOptions, answer *cli.GateAnswer,
	stdout, stderr io.Writer) error {
	here, result, err := runs.RunManifest(ctx, flags, file, options.local, stderr)
	if err != nil {
		return err
	}
	run := &assayv1alpha1.BenchmarkRun{}
	run.Namespace, run.Name = here.Experiment.Run.Namespace, here.Experiment.Run.Name
	status.Results(&run.Status, here.Experiment, result, here.ObjectPath(ledger.HTMLKey(result.Wave)))
	status.Judged(&run.Status, result)
	answer.Ledger = store.FolderURL(here.Executor.Folder)
	run.Status.Ledger = here.Executor.Folder
	run.Spec.Design.GateConfidence = quantity.Full(result.GateConfidence)
	return printAnswer(answer, run, options, stdout)
}

// printAnswer prints the answer of a finished run and returns the error for its verdict.
func printAnswer(a *cli.GateAnswer, run *assayv1alpha1.BenchmarkRun, options *gateOptions, stdout io.Writer) error {
	a.Title, a.Namespace, a.Name = cmp.Or(a.Title, run.Name), run.Namespace, run.Name
	a.Verdict, a.Best, a.Gain, a.Gates = run.Status.Verdict, run.Status.Best, run.Status.Gain, run.Status.Gates
	a.Cause, a.Warnings, a.Report = run.Status.Reason, run.Status.Warnings, run.Status.Report
	verdict := gateError(run, options.lenient)
	a.SetOutcome(verdict)
	if done, err := cli.PrintStructured(stdout, options.form, a); done {
		return errors.Join(verdict, err)
	}
	progress.Summary(stdout, run)
	return verdict
}

// removeOldAnswer removes the file of an earlier gate, which would be mistaken for the answer of this one if this process were killed.
func removeOldAnswer(file string) error {
	info, err := os.Lstat(file)
	if file == "" || err != nil || !info.Mode().IsRegular() {
		return nil // A file that cannot be written fails at the end.
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

func waitForEnd(ctx context.Context, cluster *cli.Cluster, name string, wait time.Duration, out io.Writer) (*assayv1alpha1.BenchmarkRun,
	error) {
	run, err := cli.GetRun(ctx, cluster, name)
	if err != nil || progress.Ended(run) {
		return run, err
	}
	if wait == 0 {
		return nil, fmt.Errorf("BenchmarkRun %s/%s has not ended: %s; wait for it with --wait", run.Namespace, run.Name, progress.Line(run))
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	run, err = runs.FollowRun(limited, cluster, name, runs.NewLiveLine(out).PrintRun())
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, fmt.Errorf("BenchmarkRun %s/%s did not end within --wait %s and continues; follow it with %s watch %s", cluster.Namespace,
			name, wait,
			cli.Program, name)
	}
	return run, err
}

// shownGates is the maximum number of gates in an error.
const shownGates = 5

// gateSummary formats the blocking gates that determine the verdict, with their estimates.
func gateSummary(run *assayv1alpha1.BenchmarkRun) string {
	var parts []string
	for _, gate := range run.Status.Gates {
		if gate.Outcome != run.Status.Verdict || gate.Severity == assayv1alpha1.Advisory {
			continue
		}
		text := "gate " + gate.Name + " of " + gate.Candidate + cli.AtPoint(gate.Point)
		if gate.Message != "" {
			text += ": " + gate.Message
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	if more := len(parts) - shownGates; more > 0 {
		parts = append(parts[:shownGates], fmt.Sprintf("%d more", more))
	}
	return ": " + strings.Join(parts, "; ")
}
