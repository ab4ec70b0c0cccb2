package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/compare"
	"assay.dev/assay/operator/internal/ledger"
)

func newCompareCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	var form, secret string
	command := &cobra.Command{
		Use:   "compare A B",
		Short: "Set two runs side by side, figure by figure",
		Long: "Set two runs side by side. A and B are names of runs, folders of ledgers, or URLs of ledgers.\n\n" +
			"This gives no verdict: trials of two runs did not run beside each other, so whatever changed between them is in the ratios and not in their intervals. " +
			"To decide, make both versions arms of one run. Runs from different machines get no ratio; the fingerprint's keys that differ are named.",
		Example: "  assay compare scan-monday scan-friday\n  assay compare out/before out/after -o json",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkForm(form, "table", "json"); err != nil {
				return err
			}
			var runs [2]compare.Run
			for i, arg := range args {
				var err error
				if runs[i], err = newestAnalysis(cmd.Context(), flags, arg, secret); err != nil {
					return err
				}
			}
			result := compare.Runs(runs[0], runs[1])
			if form == "json" {
				return printJSON(cmd.OutOrStdout(), result)
			}
			return printComparison(cmd.OutOrStdout(), result)
		},
	}
	command.Flags().StringVarP(&form, "output", "o", "table", "table or json")
	command.Flags().StringVar(&secret, "secret", "assay-ledger", "Secret with the object store's credentials, in the run's namespace")
	flags.AddFlags(command.Flags())
	return command
}

// newestAnalysis reads the newest analysis of a run, wherever its ledger is.
func newestAnalysis(ctx context.Context, flags *genericclioptions.ConfigFlags, where, secret string) (compare.Run, error) {
	none := compare.Run{}
	store, closeStore, err := openAnyLedger(ctx, flags, where, secret)
	if err != nil {
		return none, err
	}
	defer closeStore()
	frozen, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		return none, fmt.Errorf("%s: %w", where, err)
	}
	wave, err := ledger.LastWave(ctx, store)
	if err != nil {
		return none, fmt.Errorf("find the newest wave of %s: %w", where, err)
	}
	for ; wave >= 0; wave-- {
		raw, err := store.Get(ctx, ledger.AnalysisKey(wave))
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return none, err
		}
		var found analysis.Analysis
		if err := json.Unmarshal(raw, &found); err != nil {
			return none, fmt.Errorf("%s of %s: %w", ledger.AnalysisKey(wave), where, err)
		}
		return compare.Run{Experiment: frozen, Analysis: &found}, nil
	}
	return none, fmt.Errorf("%s has no analysis yet: assay analyze --ledger URL --write makes one", where)
}

// openAnyLedger opens the ledger of a run by its name, a folder or a URL.
func openAnyLedger(ctx context.Context, flags *genericclioptions.ConfigFlags, where, secret string) (ledger.Store, func(), error) {
	url := ""
	if strings.Contains(where, "://") {
		url = where
	} else if info, err := os.Stat(where); err == nil && info.IsDir() {
		folder, err := filepath.Abs(where)
		if err != nil {
			return nil, nil, err
		}
		url = ledger.FolderURL(folder)
	}
	if url != "" {
		store, err := openLedger(ctx, url)
		return store, func() {}, err
	}
	cluster, err := connect(flags)
	if err != nil {
		return nil, nil, fmt.Errorf("%q is no folder and no URL, and no cluster answers: %w", where, err)
	}
	run, err := getRun(ctx, cluster, where)
	if err != nil {
		return nil, nil, err
	}
	if run.Status.Ledger == "" {
		return nil, nil, fmt.Errorf("BenchmarkRun %s/%s has measured nothing yet: see assay watch %s", run.Namespace, run.Name, run.Name)
	}
	return openRunLedger(ctx, cluster, run, secret)
}

func printComparison(out io.Writer, c compare.Comparison) error {
	if len(c.Environment) > 0 {
		fmt.Fprintf(out, "%s and %s ran on machines that cannot be compared; there are no ratios. What differs:\n", c.A, c.B)
		for _, d := range c.Environment {
			fmt.Fprintf(out, "  %s: %s and %s\n", d.Key, d.A, d.B)
		}
		fmt.Fprintln(out)
	}
	for _, d := range c.Parameters {
		fmt.Fprintf(out, "parameter %s differs: %s and %s\n", d.Key, d.A, d.B)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "POINT\tARM\tMETRIC\tA\tB\tB/A")
	for _, row := range c.Rows {
		ratio := "-"
		if row.Ratio != nil {
			ratio = analysis.Describe(row.Ratio)
		}
		fmt.Fprintf(table, "%s\t%s\t%s %s\t%s\t%s\t%s\n", dash(row.Point), row.Arm, row.Metric, row.Statistic, analysis.Describe(&row.A), analysis.Describe(&row.B), ratio)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, only := range c.OnlyA {
		fmt.Fprintf(out, "only in %s: %s\n", c.A, only)
	}
	for _, only := range c.OnlyB {
		fmt.Fprintf(out, "only in %s: %s\n", c.B, only)
	}
	_, err := fmt.Fprintf(out, "\nThe two runs were not interleaved: what changed between them is in the ratios and not in their %g %% intervals. To decide, make both arms of one run.\n", 100*c.Confidence)
	return err
}
