package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/status"
	"assay.dev/assay/operator/internal/store"
)

// gateAnswer is what assay gate prints as JSON, and what --save keeps for assay report.
type gateAnswer struct {
	// Title is the run's name in its file, which stays when the run gets a name of its own.
	Title     string                     `json:"title,omitempty"`
	Namespace string                     `json:"namespace"`
	Name      string                     `json:"name"`
	Verdict   assayv1alpha1.Verdict      `json:"verdict,omitempty"`
	Best      string                     `json:"best,omitempty"`
	Gain      string                     `json:"gain,omitempty"`
	Gates     []assayv1alpha1.GateStatus `json:"gates,omitempty"`
	Warnings  []string                   `json:"warnings,omitempty"`
	// File is the run's, as it was named.
	File string `json:"file,omitempty"`
	// Ledger is what assay report and assay results take, of a run on this machine; of one on a cluster they take its name.
	Ledger string `json:"ledger,omitempty"`
	Report string `json:"report,omitempty"`
	// Passed is what the exit code says, ExitCode that code, and Reason why it is not 0.
	Passed   bool   `json:"passed"`
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"reason,omitempty"`
}

type gateOptions struct {
	form, save string
	wait       time.Duration
	lenient    bool
	here       bool
	local      localOptions
}

func newGateCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var options gateOptions
	var what creation
	command := &cobra.Command{
		Use:   "gate [NAME]",
		Short: "Exit 0 only if the run is Go: for pipelines",
		Long: "Wait until the run ended and exit with its verdict. With -f the run is created first. With --local the " +
			"experiment in a file runs " +
			"on this machine instead, without a cluster; the codes are the same.\n\n" +
			exitHelp(true) + "\n\n" +
			"Inconclusive is not Go: a pipeline that lets it pass has no gate. Where it shall pass all the same, use --allow-inconclusive.\n\n" +
			"--save keeps the answer, whatever it is; assay report takes that file in place of the run's name, and shows it on GitHub, GitLab " +
			"or Jenkins.",
		Example: "  assay gate my-run --wait 1h\n  assay gate -f run.yaml --generate-name\n  assay gate --local run.yaml\n  assay gate my-run " +
			"-o json | " +
			"jq .gates",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns(flags, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := discard(options.save); err != nil {
				return err
			}
			answer := &gateAnswer{}
			defer func() {
				answer.finish(err)
				err = errors.Join(err, answer.keep(options.save))
			}()
			if answer.File = what.file; options.here && len(args) == 1 {
				answer.File = args[0]
			}
			if options.here {
				if what.name != "" || what.generate {
					return &exitCode{exitUsage, errors.New("--name and --generate-name are for runs on a cluster: leave them out with --local")}
				}
				if what.file, err = manifestOf(args, what.file); err != nil {
					return err
				}
				return gateHere(cmd.Context(), flags, what.file, &options, answer, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if (len(args) == 1) == (what.file != "") {
				return &exitCode{exitUsage, errors.New("name either a run, or with -f the file of one")}
			}
			cluster, err := connect(flags)
			if err != nil {
				return err
			}
			if what.file != "" {
				run, err := what.create(cmd.Context(), cluster, *flags.Namespace)
				if err != nil {
					return err
				}
				answer.Title, args = strings.TrimSuffix(cmp.Or(run.GenerateName, run.Name), "-"), []string{run.Name}
				fmt.Fprintf(cmd.ErrOrStderr(), "BenchmarkRun %s/%s created\n", run.Namespace, run.Name)
			}
			return gate(cmd.Context(), cluster, args[0], &options, answer, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addOutput(command, &options.form, "text", "json", "yaml")
	what.addFlags(command)
	options.local.addFlags(command, &options.here)
	command.Flags().DurationVar(&options.wait, "wait", 2*time.Hour, "how long to wait for the run on a cluster to end; 0 does not wait")
	command.Flags().BoolVar(&options.lenient, "allow-inconclusive", false, "exit 0 on Inconclusive too")
	command.Flags().StringVar(&options.save, "save", "", "file that the answer is written to as JSON too, whatever it is")
	return command
}

// gate waits for the run and answers with its verdict.
func gate(ctx context.Context, cluster *cluster, name string, options *gateOptions, answer *gateAnswer, stdout, stderr io.Writer) error {
	answer.Namespace, answer.Name = cluster.namespace, name
	run, err := waitForEnd(ctx, cluster, name, options.wait, stderr)
	if err != nil {
		return err
	}
	return answer.give(run, options, stdout)
}

// gateHere runs the experiment in a file on this machine and answers with its verdict.
func gateHere(ctx context.Context, flags *genericclioptions.ConfigFlags, file string, options *gateOptions, answer *gateAnswer,
	stdout, stderr io.Writer) error {
	here, result, err := runManifest(ctx, flags, file, options.local, stderr)
	if err != nil {
		return err
	}
	run := &assayv1alpha1.BenchmarkRun{}
	run.Namespace, run.Name = here.experiment.Run.Namespace, here.experiment.Run.Name
	status.Results(&run.Status, here.experiment, result, here.file(ledger.HTMLKey(result.Wave)))
	answer.Ledger = store.FolderURL(here.executor.Folder)
	run.Status.Ledger = here.executor.Folder
	run.Spec.Design.GateConfidence = quantity.Full(result.GateConfidence)
	return answer.give(run, options, stdout)
}

// give prints the answer of a run that has ended.
func (a *gateAnswer) give(run *assayv1alpha1.BenchmarkRun, options *gateOptions, stdout io.Writer) error {
	a.Title, a.Namespace, a.Name = cmp.Or(a.Title, run.Name), run.Namespace, run.Name
	a.Verdict, a.Best, a.Gain, a.Gates = run.Status.Verdict, run.Status.Best, run.Status.Gain, run.Status.Gates
	a.Warnings, a.Report = run.Status.Warnings, run.Status.Report
	verdict := gateError(run, options.lenient)
	a.finish(verdict)
	if done, err := printStructured(stdout, options.form, a); done {
		return errors.Join(verdict, err)
	}
	progress.Summary(stdout, run)
	return verdict
}

// finish notes how the command ends.
func (a *gateAnswer) finish(err error) {
	a.Passed, a.ExitCode, a.Reason = err == nil, exitCodeOf(err), ""
	if err != nil {
		a.Reason = err.Error()
	}
}

// readAnswer reads what --save kept.
func readAnswer(file string) (*gateAnswer, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := &gateAnswer{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return nil, &exitCode{exitUsage, fmt.Errorf("%s is not what assay gate --save wrote: %w", file, err)}
	}
	switch out.Verdict {
	case "", assayv1alpha1.VerdictGo, assayv1alpha1.VerdictNoGo, assayv1alpha1.VerdictInconclusive, assayv1alpha1.VerdictInvalid:
		return out, nil
	default:
		// A verdict becomes a line of what a job of GitHub gives to others.
		return nil, &exitCode{exitUsage, fmt.Errorf("%s is not what assay gate --save wrote: verdict: found %q", file, out.Verdict)}
	}
}

// source is the run that the answer is about, as other commands name it, with its namespace where it is one on a cluster.
func (a *gateAnswer) source() (namespace, where string, err error) {
	switch {
	case a.Ledger != "":
		return "", a.Ledger, nil
	case a.Name == "":
		return "", "", fmt.Errorf("the gate has no run: %s", a.Reason)
	default:
		return a.Namespace, a.Name, nil
	}
}

// discard removes an answer that an earlier gate saved in a file: it is none of this one, also where this one is killed before it has any.
func discard(file string) error {
	info, err := os.Lstat(file)
	if file == "" || err != nil || !info.Mode().IsRegular() {
		return nil // One that cannot be written says so at the end.
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// keep writes the answer to a file, unless none is named.
func (a *gateAnswer) keep(file string) error {
	if file == "" {
		return nil
	}
	raw, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		_, err = writeWhole(file, append(raw, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

func waitForEnd(ctx context.Context, cluster *cluster, name string, wait time.Duration, out io.Writer) (*assayv1alpha1.BenchmarkRun,
	error) {
	run, err := getRun(ctx, cluster, name)
	if err != nil || progress.Ended(run) {
		return run, err
	}
	if wait == 0 {
		return nil, fmt.Errorf("BenchmarkRun %s/%s has not ended: %s; --wait waits for it", run.Namespace, run.Name, progress.Line(run))
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	run, err = follow(limited, cluster, name, newLive(out).run())
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, fmt.Errorf("BenchmarkRun %s/%s did not end within --wait %s: it goes on; see %s watch %s", cluster.namespace, name, wait,
			program, name)
	}
	return run, err
}

// shownGates bounds how many gates an error names.
const shownGates = 5

// because names the gates that say what the run says, with what was measured.
func because(run *assayv1alpha1.BenchmarkRun) string {
	var parts []string
	for _, gate := range run.Status.Gates {
		if gate.Outcome != run.Status.Verdict || gate.Severity == assayv1alpha1.Advisory {
			continue
		}
		text := "gate " + gate.Name + " of " + gate.Candidate + atPoint(gate.Point)
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
