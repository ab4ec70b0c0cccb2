package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
)

type getOptions struct {
	form, selector string
	all, watch     bool
}

func NewGetCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var options getOptions
	command := &cobra.Command{
		Use:   "get [NAME...]",
		Short: "List runs with their verdicts, or show one",
		Long: "List runs with their verdicts, or show one with its gates and warnings. REASON is the first cause: why a run waits or " +
			"failed, or why its verdict is not Go.\n\n" +
			"With --watch a line is printed on every change of a run until the command is interrupted; assay watch exits when the run ends.",
		Example:           "  assay get\n  assay get my-run\n  assay get -A -l team=storage -o wide\n  assay get my-run -o json",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cli.CompleteRuns(flags, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			selector, err := labels.Parse(options.selector)
			if err != nil {
				return cli.UsageError(fmt.Errorf("--selector %q: %w", options.selector, err))
			}
			if len(args) > 0 && (options.selector != "" || options.all) {
				return cli.UsageError(errors.New("names cannot be combined with --selector or --all-namespaces"))
			}
			cluster, err := cli.Connect(flags)
			if err != nil {
				return err
			}
			if options.all {
				cluster.Namespace = ""
			}
			if options.watch {
				return watchRuns(cmd.Context(), cluster, args, selector, options.form, cmd.OutOrStdout())
			}
			return get(cmd.Context(), cluster, args, selector, options.form, cmd.OutOrStdout())
		},
	}
	cli.AddOutput(command, &options.form, "table", "wide", "json", "yaml", "name")
	command.Flags().BoolVarP(&options.all, "all-namespaces", "A", false, "list the runs of every namespace")
	command.Flags().StringVarP(&options.selector, "selector", "l", "", "label selector, such as team=storage")
	command.Flags().BoolVarP(&options.watch, "watch", "w", false, "watch, and print each change")
	return command
}

func get(ctx context.Context, cluster *cli.Cluster, names []string, selector labels.Selector, form string, out io.Writer) error {
	runs, err := namedOrSelected(ctx, cluster, names, selector)
	if err != nil {
		return err
	}
	if len(names) == 1 {
		if done, err := cli.PrintStructured(out, form, &runs[0]); done {
			return err
		}
		if form == "table" {
			fmt.Fprintln(out, progress.LineAt(&runs[0], time.Now()))
			progress.Summary(out, &runs[0])
			return nil
		}
	}
	listed := assayv1alpha1.BenchmarkRunList{Items: runs}
	listed.SetGroupVersionKind(assayv1alpha1.GroupVersion.WithKind("BenchmarkRunList"))
	if done, err := cli.PrintStructured(out, form, listed); done {
		return err
	}
	return listRuns(out, runs, form, true, time.Now())
}

func namedOrSelected(ctx context.Context, cluster *cli.Cluster, names []string, selector labels.Selector) ([]assayv1alpha1.BenchmarkRun,
	error) {
	if len(names) == 0 {
		var runs assayv1alpha1.BenchmarkRunList
		if err := cluster.List(ctx, &runs, client.InNamespace(cluster.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, fmt.Errorf("list BenchmarkRuns: %w", err)
		}
		for i := range runs.Items {
			runs.Items[i].SetGroupVersionKind(cli.RunKind)
		}
		return runs.Items, nil
	}
	var out []assayv1alpha1.BenchmarkRun
	for _, name := range names {
		run, err := cli.GetRun(ctx, cluster, name)
		if err != nil {
			return nil, err
		}
		out = append(out, *run)
	}
	return out, nil
}

// watchRuns prints the runs, and each run again when it changes.
func watchRuns(ctx context.Context, cluster *cli.Cluster, names []string, selector labels.Selector, form string, out io.Writer) error {
	if _, err := namedOrSelected(ctx, cluster, names, selector); err != nil {
		return err
	}
	seen, header := map[string]string{}, true
	show := func(run *assayv1alpha1.BenchmarkRun) error {
		// A resumed watch repeats all runs.
		if len(names) > 0 && !slices.Contains(names, run.Name) || seen[string(run.UID)] == run.ResourceVersion {
			return nil
		}
		seen[string(run.UID)] = run.ResourceVersion
		run.SetGroupVersionKind(cli.RunKind)
		done, err := cli.PrintStructured(out, form, run)
		if !done {
			err = listRuns(out, []assayv1alpha1.BenchmarkRun{*run}, form, header, time.Now())
			header = false
		}
		return err
	}
	var away outage
	for {
		events, err := cluster.Watch(ctx, &assayv1alpha1.BenchmarkRunList{}, client.InNamespace(cluster.Namespace),
			client.MatchingLabelsSelector{Selector: selector})
		switch {
		case ctx.Err() != nil:
			return nil
		case !away.tolerates(err):
			return fmt.Errorf("watch BenchmarkRuns: %w", err)
		case err == nil:
			if err := showEach(events, show); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(PollInterval):
		}
	}
}

// showEach passes the runs of a watch to show until the watch ends.
func showEach(events watch.Interface, show func(*assayv1alpha1.BenchmarkRun) error) error {
	defer events.Stop()
	for event := range events.ResultChan() {
		if run, ok := event.Object.(*assayv1alpha1.BenchmarkRun); ok {
			if err := show(run); err != nil {
				return err
			}
		}
	}
	return nil
}

func listRuns(out io.Writer, runs []assayv1alpha1.BenchmarkRun, form string, header bool, now time.Time) error {
	if form == "name" {
		for _, run := range runs {
			fmt.Fprintf(out, "benchmarkrun.assay.dev/%s\n", run.Name)
		}
		return nil
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintln(out, "no BenchmarkRuns in this namespace; "+cli.Program+" get -A lists the runs of all namespaces")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	line := func(cells ...string) {
		for i, cell := range cells {
			if i > 0 {
				cell = cmp.Or(cell, "-")
			}
			cells[i] = report.Printable(cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	titles := []string{"NAMESPACE", "NAME", "PHASE", "VERDICT", "BEST", "GAIN", "PROGRESS", "AGE", "REASON"}
	if form == "wide" {
		titles = append(titles, "WAVE", "NODES", "REMAINING")
	}
	if header {
		line(titles...)
	}
	for _, run := range runs {
		status := run.Status
		cells := []string{
			run.Namespace, run.Name, string(status.Phase), string(status.Verdict), status.Best, status.Gain, status.Progress,
			duration.HumanDuration(now.Sub(run.CreationTimestamp.Time)), runReason(&run),
		}
		if form == "wide" {
			cells = append(cells, wideColumns(&run)...)
		}
		line(cells...)
	}
	return table.Flush()
}

// wideColumns returns the additional columns of -o wide.
func wideColumns(run *assayv1alpha1.BenchmarkRun) []string {
	wave, remaining := "", ""
	if run.Status.Wave != nil {
		wave = fmt.Sprint(*run.Status.Wave)
	}
	var nodes []string
	for _, lease := range run.Status.Leases {
		nodes = append(nodes, lease.Node)
	}
	if !progress.Unattended(run, time.Now()).IsZero() {
		remaining = "no operator"
	} else if run.Status.Remaining != nil && !progress.Ended(run) {
		remaining = quantity.Seconds(run.Status.Remaining.Duration)
	}
	return []string{wave, strings.Join(nodes, ","), remaining}
}

// runReason returns the first cause of a run's state, or "".
func runReason(run *assayv1alpha1.BenchmarkRun) string {
	return cmp.Or(run.Status.Reason, progress.Waits(run))
}
