package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newTableCommand creates a table from simulated runs, and writes it between the markers of that name.
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
