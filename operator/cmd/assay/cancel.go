package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/progress"
)

func newCancelCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	command := &cobra.Command{
		Use:               "cancel NAME",
		Short:             "End a run early; what was measured is analysed and stays",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: completeRuns(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := connect(flags)
			if err != nil {
				return err
			}
			run, err := getRun(cmd.Context(), cluster, args[0])
			if err != nil {
				return err
			}
			if progress.Ended(run) {
				fmt.Fprintf(cmd.OutOrStdout(), "BenchmarkRun %s/%s has ended already: %s\n", run.Namespace, run.Name, dash(string(run.Status.Verdict)))
				return nil
			}
			before := client.MergeFrom(run.DeepCopy())
			run.Spec.Cancel = ptr.To(true)
			if err := cluster.Patch(cmd.Context(), run, before); err != nil {
				return fmt.Errorf("cancel BenchmarkRun %s/%s: %w", run.Namespace, run.Name, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "BenchmarkRun %s/%s is being cancelled; assay watch %s shows what was measured\n", run.Namespace, run.Name, run.Name)
			return nil
		},
	}
	flags.AddFlags(command.Flags())
	return command
}
