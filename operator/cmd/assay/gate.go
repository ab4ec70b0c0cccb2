package main

import (
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
	"assay.dev/assay/operator/internal/progress"
)

// exitNoGo is for a run that was decided, with a NoGo.
const exitNoGo = 4

// gateAnswer is what assay gate prints as JSON.
type gateAnswer struct {
	Namespace string                     `json:"namespace"`
	Name      string                     `json:"name"`
	Verdict   assayv1alpha1.Verdict      `json:"verdict,omitempty"`
	Best      string                     `json:"best,omitempty"`
	Gain      string                     `json:"gain,omitempty"`
	Gates     []assayv1alpha1.GateStatus `json:"gates,omitempty"`
	Warnings  []string                   `json:"warnings,omitempty"`
	Report    string                     `json:"report,omitempty"`
	// Passed is what the exit code says, and Reason why it does not say 0.
	Passed bool   `json:"passed"`
	Reason string `json:"reason,omitempty"`
}

type gateOptions struct {
	form, save string
	wait       time.Duration
	lenient    bool
}

func newGateCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var options gateOptions
	var what creation
	command := &cobra.Command{
		Use:   "gate [NAME]",
		Short: "Exit 0 only if the run is Go: for pipelines",
		Long: "Wait until the run ended and exit with its verdict: 0 Go, 4 NoGo, 3 Inconclusive, Invalid or no verdict, 2 wrong input, 1 when " +
			"the run failed or did not end in time. " +
			"With -f the run is created first.\n\n" +
			"Inconclusive is not Go: a pipeline that lets it pass has no gate. Where it shall pass all the same, use --allow-inconclusive.",
		Example:           "  assay gate my-run --wait 1h\n  assay gate -f run.yaml --generate-name\n  assay gate my-run -o json | jq .gates",
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeRuns(flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkForm(options.form, "text", "json", "yaml"); err != nil {
				return err
			}
			if (len(args) == 1) == (what.file != "") {
				return &exitCode{exitUsage, errors.New("name either a run, or with -f the file of one")}
			}
			cluster, err := connect(flags)
			if err != nil {
				return err
			}
			var name string
			if what.file != "" {
				run, err := what.create(cmd.Context(), cluster, *flags.Namespace)
				if err != nil {
					return err
				}
				name = run.Name
				fmt.Fprintf(cmd.ErrOrStderr(), "BenchmarkRun %s/%s created\n", run.Namespace, name)
			} else {
				name = args[0]
			}
			return gate(cmd.Context(), cluster, name, options, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addOutput(command, &options.form, "text", "json", "yaml")
	what.addFlags(command)
	command.Flags().DurationVar(&options.wait, "wait", 2*time.Hour, "how long to wait for the run to end; 0 does not wait")
	command.Flags().BoolVar(&options.lenient, "allow-inconclusive", false, "exit 0 on Inconclusive too")
	command.Flags().StringVar(&options.save, "save", "", "file that the answer is written to as JSON too, whatever it is")
	return command
}

// gate waits for the run and answers with its verdict.
func gate(ctx context.Context, cluster *cluster, name string, options gateOptions, stdout, stderr io.Writer) error {
	run, err := waitForEnd(ctx, cluster, name, options.wait, stderr)
	if err != nil {
		return err
	}
	verdict := gateError(run, options.lenient)
	answer := gateAnswer{
		Namespace: run.Namespace, Name: run.Name, Verdict: run.Status.Verdict, Best: run.Status.Best, Gain: run.Status.Gain,
		Gates: run.Status.Gates, Warnings: run.Status.Warnings, Report: run.Status.Report, Passed: verdict == nil,
	}
	if verdict != nil {
		answer.Reason = verdict.Error()
	}
	if options.save != "" {
		raw, err := json.MarshalIndent(answer, "", "  ")
		if err == nil {
			err = os.WriteFile(options.save, append(raw, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	if done, err := printStructured(stdout, options.form, answer); done {
		return errors.Join(verdict, err)
	}
	progress.Summary(stdout, run)
	return verdict
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
	run, err = follow(limited, cluster, name, lines(out))
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, fmt.Errorf("BenchmarkRun %s/%s did not end within --wait %s: it goes on; see %s watch %s", cluster.namespace, name, wait,
			program, name)
	}
	return run, err
}

// gateError is nil for a run that may pass.
func gateError(run *assayv1alpha1.BenchmarkRun, lenient bool) error {
	if err := failure(run); err != nil {
		return err
	}
	switch run.Status.Verdict {
	case assayv1alpha1.VerdictGo:
		return nil
	case assayv1alpha1.VerdictNoGo:
		return &exitCode{exitNoGo, errors.New("the verdict is NoGo" + because(run))}
	case assayv1alpha1.VerdictInconclusive:
		if lenient {
			return nil
		}
		return &exitCode{exitInconclusive,
			errors.New("the verdict is Inconclusive" + because(run) + ": more blocks, a quieter machine or a wider bound would decide")}
	case assayv1alpha1.VerdictInvalid:
		return &exitCode{exitInconclusive, errors.New("the verdict is Invalid: too little valid data is left to judge")}
	default:
		return &exitCode{exitInconclusive, errors.New("the run has no verdict: it has no blocking gates")}
	}
}

// shownGates bounds how many gates an error names.
const shownGates = 5

// because names the gates that say what the run says, with what was measured.
func because(run *assayv1alpha1.BenchmarkRun) string {
	var parts []string
	more := 0
	for _, gate := range run.Status.Gates {
		if gate.Outcome != run.Status.Verdict || gate.Severity == assayv1alpha1.Advisory {
			continue
		}
		if len(parts) == shownGates {
			more++
			continue
		}
		text := "gate " + gate.Name + " of " + gate.Candidate
		if gate.Point != "" {
			text += " at " + gate.Point
		}
		if gate.Message != "" {
			text += ": " + gate.Message
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return ": " + strings.Join(parts, "; ")
}
