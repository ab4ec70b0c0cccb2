package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/calibrate"
)

func newEstimatorsCommand() *cobra.Command {
	var runs int
	var seed uint64
	var document string
	command := &cobra.Command{
		Use: "estimators", Short: "Compare the mean of the blocks with trimmed means, where noise is not normal", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := calibrate.Estimators(runs, seed)
			fmt.Fprint(cmd.OutOrStdout(), table)
			if document != "" {
				return update(document, "estimators", table)
			}
			return nil
		},
	}
	command.Flags().IntVar(&runs, "runs", 8000, "runs of every row")
	command.Flags().Uint64Var(&seed, "seed", 1, "seed of all random numbers")
	command.Flags().StringVar(&document, "update", "", "also put the table into this document, between its markers")
	return command
}

func newRejectionsCommand() *cobra.Command {
	var runs int
	var seed uint64
	var document string
	command := &cobra.Command{
		Use: "rejections", Short: "Compare what a noisy reading may take out of the comparison, for 2 to 16 arms", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := calibrate.Rejections(runs, seed)
			fmt.Fprint(cmd.OutOrStdout(), table)
			if document != "" {
				return update(document, "rejections", table)
			}
			return nil
		},
	}
	command.Flags().IntVar(&runs, "runs", 2000, "runs of every row")
	command.Flags().Uint64Var(&seed, "seed", 1, "seed of all random numbers")
	command.Flags().StringVar(&document, "update", "", "also put the table into this document, between its markers")
	return command
}
