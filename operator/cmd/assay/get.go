package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/progress"
)

func newGetCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	var form string
	var all bool
	command := &cobra.Command{
		Use:               "get [NAME]",
		Short:             "List runs with their verdicts, or show one",
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeRuns(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkForm(form, "table", "json"); err != nil {
				return err
			}
			cluster, err := connect(flags)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				run, err := getRun(cmd.Context(), cluster, args[0])
				if err != nil {
					return err
				}
				if form == "json" {
					return printJSON(cmd.OutOrStdout(), run)
				}
				fmt.Fprintln(cmd.OutOrStdout(), progress.Line(run))
				progress.Summary(cmd.OutOrStdout(), run)
				return nil
			}
			var runs assayv1alpha1.BenchmarkRunList
			options := []client.ListOption{client.InNamespace(cluster.namespace)}
			if all {
				options = nil
			}
			if err := cluster.List(cmd.Context(), &runs, options...); err != nil {
				return fmt.Errorf("list BenchmarkRuns: %w", err)
			}
			if form == "json" {
				return printJSON(cmd.OutOrStdout(), runs)
			}
			return listRuns(cmd.OutOrStdout(), runs.Items, time.Now())
		},
	}
	command.Flags().StringVarP(&form, "output", "o", "table", "table or json")
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the runs of every namespace")
	flags.AddFlags(command.Flags())
	return command
}

func listRuns(out io.Writer, runs []assayv1alpha1.BenchmarkRun, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tNAME\tPHASE\tVERDICT\tBEST\tGAIN\tPROGRESS\tAGE")
	for _, run := range runs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", run.Namespace, run.Name, dash(string(run.Status.Phase)), dash(string(run.Status.Verdict)),
			dash(run.Status.Best), dash(run.Status.Gain), dash(run.Status.Progress), duration.HumanDuration(now.Sub(run.CreationTimestamp.Time)))
	}
	return table.Flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// getRun reads a run and says where to look when there is none.
func getRun(ctx context.Context, cluster *cluster, name string) (*assayv1alpha1.BenchmarkRun, error) {
	var run assayv1alpha1.BenchmarkRun
	err := cluster.Get(ctx, types.NamespacedName{Namespace: cluster.namespace, Name: name}, &run)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no BenchmarkRun %q in namespace %q: see assay get -A", name, cluster.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("BenchmarkRun %s/%s: %w", cluster.namespace, name, err)
	}
	return &run, nil
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// checkForm refuses an --output that the command does not have.
func checkForm(form string, known ...string) error {
	text := ""
	for i, k := range known {
		if form == k {
			return nil
		}
		if i > 0 {
			text += ", "
		}
		text += k
	}
	return &exitCode{exitUsage, fmt.Errorf("--output is %q: use one of %s", form, text)}
}

// usage turns a wrong number of arguments into a usage error.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &exitCode{exitUsage, fmt.Errorf("%w\nUsage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

// completeRuns completes the names of runs.
func completeRuns(flags *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		cluster, err := connect(flags)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
		defer cancel()
		var runs assayv1alpha1.BenchmarkRunList
		if err := cluster.List(ctx, &runs, client.InNamespace(cluster.namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, run := range runs.Items {
			names = append(names, cobra.CompletionWithDesc(run.Name, string(run.Status.Verdict)))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
