package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

func newQuantilesCommand() *cobra.Command {
	var folders []string
	command := &cobra.Command{
		Use:   "quantiles --ledger FOLDER...",
		Short: "How the noise readings of the trials in some ledgers are distributed, beside the default limits",
		Long: "Over ledgers of quiet runs this tells what the default limits have to let pass, over ledgers with a neighbour what they have " +
			"to catch. " +
			"Every ledger is judged by its own best readings.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ledgers := make([][]*record.Attempt, 0, len(folders))
			for _, folder := range folders {
				attempts, err := attemptsOf(cmd.Context(), folder)
				if err != nil {
					return err
				}
				ledgers = append(ledgers, attempts)
			}
			return printQuantiles(cmd.OutOrStdout(), noise.Summarize(ledgers...))
		},
	}
	command.Flags().StringArrayVar(&folders, "ledger", nil, "folder of a ledger; may be repeated")
	_ = command.MarkFlagRequired("ledger")
	return command
}

func attemptsOf(ctx context.Context, folder string) ([]*record.Attempt, error) {
	store, err := ledger.OpenFolder(ctx, folder)
	if err != nil {
		return nil, err
	}
	attempts, _, err := ledger.ReadAttempts(ctx, store, -1)
	if err != nil {
		return nil, err
	}
	if len(attempts) == 0 {
		return nil, fmt.Errorf("ledger %s has no attempt", folder)
	}
	out := make([]*record.Attempt, 0, len(attempts))
	for i := range attempts {
		out = append(out, &attempts[i])
	}
	return out, nil
}

func printQuantiles(out io.Writer, summaries []noise.Summary) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"limit", "read", "of"}
	for _, level := range noise.Levels {
		head = append(head, fmt.Sprintf("p%g", 100*level))
	}
	fmt.Fprintln(table, strings.Join(append(head, "default", "beyond"), "\t")+"\t")
	for _, s := range summaries {
		row := []string{string(s.Kind), fmt.Sprint(s.Read), fmt.Sprint(s.Trials)}
		for i := range noise.Levels {
			if i < len(s.Quantiles) {
				row = append(row, quantity.PercentTo(s.Quantiles[i], 2))
			} else {
				row = append(row, "")
			}
		}
		row = append(row, fmt.Sprintf("%g %%", 100*s.Limit), fmt.Sprint(s.Beyond))
		fmt.Fprintln(table, strings.Join(row, "\t")+"\t")
	}
	return table.Flush()
}
