package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"assay.dev/assay/operator/internal/report"
)

// resultForms are the forms of assay results, its own first; report is what md was called once.
var resultForms = []string{"table", "json", "yaml", "csv", "parquet", "benchstat", "attempts", "archive", "md", "html", "report"}

func newResultsCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	from := source{flags: flags}
	var output, format, table string
	command := &cobra.Command{
		Use:   "results NAME",
		Short: "Print what a run measured, for people and other tools",
		Long: "Print what a run measured, from its ledger. " + sourceHelp + "\n\n" +
			"Forms: table; json and yaml, the whole analysis; csv, a row per point and arm; parquet, a row per attempt, metric and statistic; " +
			"benchstat, the Go benchmark format; attempts, every attempt as it was written, one JSON object a line; archive, the ledger in one " +
			"file, which everything that reads a ledger reads again; md and html, the report.\n\n" +
			"--table prints one of the tables that spec.report.tables asks for, as md or csv.",
		Example: "  assay results my-run\n  assay results my-run -o attempts.parquet\n  assay results out/before -o benchstat > before.txt\n" +
			"  assay results my-run -o json | jq .gates\n" +
			"  assay results my-run --table document -o document.csv\n  assay results my-run -o my-run.tar.zst",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRunsOrFolders(flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if table != "" {
				to, err := whereTo(output, format, "md", "csv")
				if err != nil {
					return err
				}
				return deliverTable(cmd.Context(), &from, args[0], table, to, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			to, err := whereTo(output, format, resultForms...)
			if err != nil {
				return err
			}
			return deliver(cmd.Context(), &from, args[0], to, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addDestination(command, &output, &format, resultForms[:len(resultForms)-1]...)
	command.Flags().StringVar(&table, "table", "", "name of a table of spec.report.tables to print in place of the results")
	from.addFlags(command)
	return command
}

// deliverTable puts one of the run's own tables where it was asked for.
func deliverTable(ctx context.Context, from *source, where, name string, to destination, stdout, stderr io.Writer) error {
	result, err := from.open(ctx, where)
	if err != nil {
		return err
	}
	var names []string
	for _, table := range report.OwnTables(result.experiment, result.analysis) {
		if table.Name == name {
			raw := table.Markdown()
			if to.form == "csv" {
				raw = table.CSV()
			}
			return to.write(stdout, stderr, raw)
		}
		names = append(names, table.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no table %q: its spec.report.tables asks for none", where, name)
	}
	return fmt.Errorf("%s has no table %q: its spec.report.tables has %s", where, name, strings.Join(names, ", "))
}

// addDestination gives a command --output, a form, the first by itself, or a file, and --format.
func addDestination(command *cobra.Command, output, format *string, forms ...string) {
	command.Flags().StringVarP(output, "output", "o", "",
		"form to print, or file to write whose extension selects the form (default "+forms[0]+", printed)")
	command.Flags().StringVar(format, "format", "", "form of a file whose extension does not select one: "+list(forms))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveDefault))
	_ = command.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// deliver puts what a run measured where it was asked for.
func deliver(ctx context.Context, from *source, where string, to destination, stdout, stderr io.Writer) error {
	result, err := from.open(ctx, where)
	if err != nil {
		return err
	}
	if to.form == "table" && to.file == "" {
		return report.Terminal(stdout, result.experiment, result.analysis)
	}
	raw, err := inForm(ctx, result, to.form)
	if err != nil {
		return err
	}
	return to.write(stdout, stderr, raw)
}
