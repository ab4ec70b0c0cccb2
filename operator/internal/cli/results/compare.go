package results

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/compare"
	"assay.dev/assay/operator/internal/report"
)

func NewCompareCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	from := cli.Source{Flags: flags}
	var form string
	command := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare the results of two runs",
		Long: "Compare the results of two runs. A and B are runs, or folders or URLs of ledgers, as for assay results.\n\n" +
			"There is no verdict, because the trials of two runs are not interleaved. Their intervals do not cover drift between the runs. " +
			"For a decision, make both versions arms of one run. Runs on machines with different fingerprints have no ratios; the " +
			"differing keys are printed instead.",
		Example:           "  assay compare scan-monday scan-friday\n  assay compare out/before out/after -o json",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: cli.CompleteRunsOrFolders(flags, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var runs [2]compare.Run
			for i, arg := range args {
				result, err := from.Open(cmd.Context(), arg)
				if err != nil {
					return err
				}
				runs[i] = compare.Run{Experiment: result.Experiment, Analysis: result.Analysis}
			}
			result, err := compare.Runs(runs[0], runs[1])
			if err != nil {
				return err
			}
			if done, err := cli.PrintStructured(cmd.OutOrStdout(), form, result); done {
				return err
			}
			return printComparison(cmd.OutOrStdout(), result)
		},
	}
	cli.AddOutput(command, &form, "table", "json", "yaml")
	from.AddFlags(command)
	return command
}

func printComparison(to io.Writer, c compare.Comparison) error {
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
	for _, text := range report.Columns(rows, 3, 1, report.Width(to)) {
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
