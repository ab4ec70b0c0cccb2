package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/progress"
)

// exitNoGo tells a script that the run answered, and that the answer is no.
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
	// Passed is what the exit code says.
	Passed bool `json:"passed"`
}

func newGateCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	var form string
	var wait time.Duration
	var lenient bool
	command := &cobra.Command{
		Use:   "gate NAME",
		Short: "Exit 0 only if the run is Go: for pipelines",
		Long: "Wait until the run ended and exit with its verdict: 0 Go, 4 NoGo, 3 Inconclusive, Invalid or no verdict, 1 when the run failed or did not end in time.\n\n" +
			"Inconclusive is not Go: a pipeline that lets it pass has no gate. --allow-inconclusive says that this is meant.",
		Example:           "  kubectl apply -f run.yaml && assay gate my-run --wait 1h",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: completeRuns(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkForm(form, "text", "json"); err != nil {
				return err
			}
			cluster, err := connect(flags)
			if err != nil {
				return err
			}
			progressTo := cmd.ErrOrStderr()
			run, err := waitForEnd(cmd.Context(), cluster, args[0], wait, progressTo)
			if err != nil {
				return err
			}
			verdict := gateError(run, lenient)
			if form == "json" {
				answer := gateAnswer{
					Namespace: run.Namespace, Name: run.Name, Verdict: run.Status.Verdict, Best: run.Status.Best, Gain: run.Status.Gain,
					Gates: run.Status.Gates, Warnings: run.Status.Warnings, Report: run.Status.Report, Passed: verdict == nil,
				}
				if err := printJSON(cmd.OutOrStdout(), answer); err != nil {
					return err
				}
			} else {
				progress.Summary(cmd.OutOrStdout(), run)
			}
			return verdict
		},
	}
	command.Flags().StringVarP(&form, "output", "o", "text", "text or json")
	command.Flags().DurationVar(&wait, "wait", 2*time.Hour, "how long to wait for the run to end; 0 does not wait")
	command.Flags().BoolVar(&lenient, "allow-inconclusive", false, "exit 0 on Inconclusive too")
	flags.AddFlags(command.Flags())
	return command
}

func waitForEnd(ctx context.Context, cluster *cluster, name string, wait time.Duration, out io.Writer) (*assayv1alpha1.BenchmarkRun, error) {
	run, err := getRun(ctx, cluster, name)
	if err != nil || progress.Ended(run) {
		return run, err
	}
	if wait == 0 {
		return nil, fmt.Errorf("BenchmarkRun %s/%s has not ended: %s; --wait waits for it", run.Namespace, run.Name, progress.Line(run))
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	run, err = follow(limited, cluster, name, out)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, fmt.Errorf("BenchmarkRun %s/%s did not end within --wait %s: it goes on; see assay watch %s", cluster.namespace, name, wait, name)
	}
	return run, err
}

// gateError is nil for a run that may pass.
func gateError(run *assayv1alpha1.BenchmarkRun, lenient bool) error {
	if condition := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionFailed); condition != nil && condition.Status == "True" {
		return fmt.Errorf("BenchmarkRun %s/%s failed: %s: %s", run.Namespace, run.Name, condition.Reason, condition.Message)
	}
	switch run.Status.Verdict {
	case assayv1alpha1.VerdictGo:
		return nil
	case assayv1alpha1.VerdictNoGo:
		return &exitCode{exitNoGo, errors.New("the verdict is NoGo")}
	case assayv1alpha1.VerdictInconclusive:
		if lenient {
			return nil
		}
		return &exitCode{exitInconclusive, errors.New("the verdict is Inconclusive: more blocks, a quieter machine or a wider bound would decide")}
	case assayv1alpha1.VerdictInvalid:
		return &exitCode{exitInconclusive, errors.New("the verdict is Invalid: too little valid data is left to judge")}
	default:
		return &exitCode{exitInconclusive, errors.New("the run has no verdict: it has no blocking gates")}
	}
}
