// Package results has the commands that print, compare, gate and publish results.
package results

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/report"
)

// resultForms are the forms of assay results, the default first. report is an alias of md.
var resultForms = []string{"table", "json", "yaml", "csv", "parquet", "benchstat", "attempts", "archive", "md", "html", "report"}

func NewResultsCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	from := cli.Source{Flags: flags}
	var output, format, table string
	command := &cobra.Command{
		Use:   "results NAME",
		Short: "Print the results of a run in various forms",
		Long: "Print the results of a run from its ledger. " + cli.SourceHelp + "\n\n" +
			"Forms: table; json and yaml, the whole analysis; csv, a row per point and arm; parquet, a row per attempt, metric and statistic; " +
			"benchstat, the Go benchmark format; attempts, every attempt as one line of JSON; archive, the ledger as one " +
			"file that all commands accept in place of the ledger; md and html, the report.\n\n" +
			"--table prints one of the tables that spec.report.tables asks for, as md or csv.",
		Example: "  assay results my-run\n  assay results my-run -o attempts.parquet\n  assay results out/before -o benchstat > before.txt\n" +
			"  assay results my-run -o json | jq .gates\n" +
			"  assay results my-run --table document -o document.csv\n  assay results my-run -o my-run.tar.zst",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteRunsOrFolders(flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if table != "" {
				to, err := cli.ParseDestination(output, format, "md", "csv")
				if err != nil {
					return err
				}
				return writeTable(cmd.Context(), &from, args[0], table, to, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			to, err := cli.ParseDestination(output, format, resultForms...)
			if err != nil {
				return err
			}
			return writeResult(cmd.Context(), &from, args[0], to, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cli.AddDestination(command, &output, &format, resultForms[:len(resultForms)-1]...)
	command.Flags().StringVar(&table, "table", "", "print this table of spec.report.tables")
	from.AddFlags(command)
	return command
}

// writeTable writes a table of spec.report.tables to the destination.
func writeTable(ctx context.Context, from *cli.Source, where, name string, to cli.Destination, stdout, stderr io.Writer) error {
	result, err := from.Open(ctx, where)
	if err != nil {
		return err
	}
	var names []string
	for _, table := range report.OwnTables(result.Experiment, result.Analysis) {
		if table.Name == name {
			raw := table.Markdown()
			if to.Form == "csv" {
				raw = table.CSV()
			}
			return to.Write(stdout, stderr, raw)
		}
		names = append(names, table.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no table %q, because its spec.report.tables is empty", where, name)
	}
	return fmt.Errorf("%s has no table %q; spec.report.tables has %s", where, name, strings.Join(names, ", "))
}

// writeResult writes the results of a run to the destination.
func writeResult(ctx context.Context, from *cli.Source, where string, to cli.Destination, stdout, stderr io.Writer) error {
	result, err := from.Open(ctx, where)
	if err != nil {
		return err
	}
	if to.Form == "table" && to.File == "" {
		return report.Terminal(stdout, result.Experiment, result.Analysis)
	}
	raw, err := render(ctx, result, to.Form)
	if err != nil {
		return err
	}
	return to.Write(stdout, stderr, raw)
}
