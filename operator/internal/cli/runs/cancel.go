package runs

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/progress"
)

// cancelled is the structured output of assay cancel.
type cancelled struct {
	Namespace string                `json:"namespace"`
	Name      string                `json:"name"`
	Verdict   assayv1alpha1.Verdict `json:"verdict,omitempty"`
	// Ended reports whether the run had already ended.
	Ended bool `json:"ended"`
}

func NewCancelCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var form string
	command := &cobra.Command{
		Use:               "cancel NAME",
		Short:             "End a run early; its results so far are analysed and retained",
		Example:           "  assay cancel my-run",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteRuns(flags, 1),
		RunE: cli.WithCluster(flags, func(cmd *cobra.Command, cluster *cli.Cluster, args []string) error {
			return cancelRun(cmd.Context(), cluster, args[0], form, cmd.OutOrStdout())
		}),
	}
	cli.AddOutput(command, &form, "text", "json", "yaml")
	return command
}

func cancelRun(ctx context.Context, cluster *cli.Cluster, name, form string, out io.Writer) error {
	run, err := cli.GetRun(ctx, cluster, name)
	if err != nil {
		return err
	}
	answer := cancelled{Namespace: run.Namespace, Name: run.Name, Verdict: run.Status.Verdict, Ended: progress.Ended(run)}
	if answer.Ended {
		return cli.PrintAnswer(out, form, answer, "BenchmarkRun %s/%s has ended already: %s\n", run.Namespace, run.Name,
			cmp.Or(string(run.Status.Verdict), "-"))
	}
	before := client.MergeFrom(run.DeepCopy())
	run.Spec.Cancel = ptr.To(true)
	if err := cluster.Patch(ctx, run, before); err != nil {
		return fmt.Errorf("cancel BenchmarkRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	return cli.PrintAnswer(out, form, answer, "BenchmarkRun %s/%s is being cancelled; follow it with %s watch %s\n", run.Namespace,
		run.Name, cli.Program, run.Name)
}
