package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/calibrate"
)

func newEstimatorsCommand() *cobra.Command {
	return newTableCommand("estimators", "Compare the mean of the blocks with trimmed means, where noise is not normal", 8000,
		calibrate.Estimators)
}

func newRejectionsCommand() *cobra.Command {
	return newTableCommand("rejections", "Compare what a noisy reading may take out of the comparison, for 2 to 16 arms", 2000,
		calibrate.Rejections)
}

// newTableCommand makes a table from simulated runs, and puts it where a document has the markers of that name.
func newTableCommand(name, short string, rows int, table func(runs int, seed uint64) string) *cobra.Command {
	var runs int
	var seed uint64
	var document string
	command := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := table(runs, seed)
			fmt.Fprint(cmd.OutOrStdout(), text)
			return update(document, name, text)
		},
	}
	command.Flags().IntVar(&runs, "runs", rows, "runs of every row")
	command.Flags().Uint64Var(&seed, "seed", 1, "seed of all random numbers")
	command.Flags().StringVar(&document, "update", "", "also put the table into this document, between its markers")
	return command
}
