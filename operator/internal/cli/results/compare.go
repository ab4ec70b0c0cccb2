package results

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/compare"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/pairs"
)

func NewCompareCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	from := cli.Source{Flags: flags}
	var output, format string
	var all bool
	command := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare the results of two runs, or of any two of several",
		Long: "Compare the results of two runs. A and B are runs, or folders or URLs of ledgers, as for assay results.\n\n" +
			"There is no verdict, because the trials of two runs are not interleaved. Their intervals do not cover drift between the runs. " +
			"For a decision, make both versions arms of one run. Runs on machines with different fingerprints have no ratios; the " +
			"differing keys are printed instead.\n\n" +
			fmt.Sprintf("The form html is a page that lists 2 to %d runs and compares any two of them, which its reader selects. With --all it "+
				"has the newest runs of the namespace.", pairs.MostRuns),
		Example: "  assay compare scan-monday scan-friday\n  assay compare out/before out/after -o json\n" +
			"  assay compare assay-ledger/* -o runs.html\n  assay compare --all -n bench -o runs.html",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cli.CompleteRunsOrFolders(flags, pairs.MostRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := cli.ParseDestination(output, format, comparisonForms...)
			if err != nil {
				return err
			}
			if args, err = comparedRuns(cmd.Context(), flags, args, all, to.Form == "html", cmd.ErrOrStderr()); err != nil {
				return err
			}
			var runs []pairs.Run
			for _, arg := range args {
				result, err := from.Open(cmd.Context(), arg)
				if err != nil {
					return err
				}
				one := pairs.Run{Run: compare.Run{Experiment: result.Experiment, Analysis: result.Analysis}, Where: arg}
				if to.Form == "html" {
					if one.Began, err = ledger.Began(cmd.Context(), result.Store); err != nil {
						return fmt.Errorf("the first trial of %s: %w", arg, err)
					}
				}
				runs = append(runs, one)
			}
			raw, err := renderComparison(runs, to.Form, report.Width(cmd.OutOrStdout()))
			if err != nil {
				return err
			}
			return to.Write(cmd.OutOrStdout(), cmd.ErrOrStderr(), raw)
		},
	}
	cli.AddDestination(command, &output, &format, comparisonForms...)
	command.Flags().BoolVar(&all, "all", false, "with the form html: compare the newest runs of the namespace that have results")
	from.AddFlags(command)
	return command
}

// comparisonForms are the forms of assay compare, the default first. Only html has more than two runs.
var comparisonForms = []string{"table", "json", "yaml", "html"}

// comparedRuns returns the names of the runs to compare: those that were given, or the newest of the namespace.
func comparedRuns(ctx context.Context, flags *genericclioptions.ConfigFlags, args []string, all, page bool,
	stderr io.Writer) ([]string, error) {
	switch {
	case all && !page:
		return nil, cli.UsageError(errors.New("--all compares any two of several runs: write a page with -o FILE.html"))
	case all && len(args) > 0:
		return nil, cli.UsageError(errors.New("--all and names of runs are mutually exclusive"))
	case page && !all && (len(args) < 2 || len(args) > pairs.MostRuns):
		return nil, cli.UsageError(fmt.Errorf("invalid number of runs %d: a page compares 2 to %d", len(args), pairs.MostRuns))
	case !page && len(args) != 2:
		return nil, cli.UsageError(fmt.Errorf("invalid number of runs %d: name two, or more with -o FILE.html", len(args)))
	case !all:
		return args, nil
	}
	cluster, err := cli.Connect(flags)
	if err != nil {
		return nil, err
	}
	var runs assayv1alpha1.BenchmarkRunList
	if err := cluster.List(ctx, &runs, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("list the runs of namespace %s: %w", cluster.Namespace, err)
	}
	names, left := newestRuns(runs.Items)
	if len(names) < 2 {
		return nil, fmt.Errorf("namespace %s has %s with results, and a comparison needs two", cluster.Namespace,
			quantity.Count(len(names), "run"))
	}
	if left > 0 {
		cli.PrintLine(stderr, "%s with results: the page has the newest %d\n", quantity.Count(len(names)+left, "run"), len(names))
	}
	return names, nil
}

// newestRuns returns the names of the newest runs that have an accepted analysis, the newest first, as many as a page can have, and the
// number of the others.
func newestRuns(runs []assayv1alpha1.BenchmarkRun) (names []string, left int) {
	runs = slices.DeleteFunc(slices.Clone(runs), func(run assayv1alpha1.BenchmarkRun) bool { return run.Status.Analysis == nil })
	slices.SortStableFunc(runs, func(a, b assayv1alpha1.BenchmarkRun) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	for i := range runs[:min(len(runs), pairs.MostRuns)] {
		names = append(names, runs[i].Name)
	}
	return names, len(runs) - len(names)
}

func renderComparison(runs []pairs.Run, form string, width int) ([]byte, error) {
	if form == "html" {
		return pairs.Page(runs)
	}
	result, err := compare.Runs(runs[0].Run, runs[1].Run)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if done, err := cli.PrintStructured(&out, form, result); done {
		return out.Bytes(), err
	}
	err = printComparison(&out, result, width)
	return out.Bytes(), err
}

func printComparison(to io.Writer, c compare.Comparison, width int) error {
	out := &strings.Builder{}
	if len(c.Environment) > 0 {
		cli.PrintLine(out, "%s and %s have no ratios, because the fingerprints of their machines differ:\n", c.A, c.B)
		for _, d := range c.Environment {
			cli.PrintLine(out, "  %s: %s and %s\n", d.Key, d.A, d.B)
		}
		fmt.Fprintln(out)
	}
	for _, d := range c.Parameters {
		cli.PrintLine(out, "parameter %s differs: %s and %s\n", d.Key, d.A, d.B)
	}
	rows := [][]string{{"POINT", "ARM", "METRIC", "A" + report.Interval(c.ConfidenceA), "B" + report.Interval(c.ConfidenceB),
		"B/A" + report.Interval(c.Confidence)}}
	for _, row := range c.Rows {
		ratio := "-"
		if row.Ratio != nil {
			ratio = analysis.Describe(row.Ratio)
		}
		rows = append(rows, []string{cmp.Or(row.Point, "-"), row.Arm, fmt.Sprintf("%s %s", row.Metric, row.Statistic), analysis.Describe(&row.A),
			analysis.Describe(&row.B), ratio})
	}
	for _, text := range report.Columns(rows, 3, 1, width) {
		fmt.Fprintln(out, text)
	}
	each := func(format, run string, lines []string) {
		for _, text := range lines {
			cli.PrintLine(out, format, run, text)
		}
	}
	each("only in %s: %s\n", c.A, c.OnlyA)
	each("only in %s: %s\n", c.B, c.OnlyB)
	each("warning of %s: %s\n", c.A, c.WarningsA)
	each("warning of %s: %s\n", c.B, c.WarningsB)
	each("note of %s: %s\n", c.A, c.NotesA)
	each("note of %s: %s\n", c.B, c.NotesB)
	cli.PrintLine(out, "\nThe runs were not interleaved, so that the %s intervals do not cover drift between them. For a decision, make both "+
		"versions arms of one run.\n", report.Confidence(c.Confidence))
	_, err := io.WriteString(to, report.PrintableLines(out.String()))
	return err
}
