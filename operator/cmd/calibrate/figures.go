package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/calibrate"
)

func newFiguresCommand() *cobra.Command {
	var s simulateOptions
	r := realOptions{}
	command := &cobra.Command{
		Use: "figures", Short: "Print the figures of verdicts, one JSON line each", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tallies, err := s.simulate(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			figures := calibrate.Figures(tallies)
			r.slowdowns = nil
			measured, err := r.measure(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if share, ok := calibrate.Flagged(measured); ok {
				figures = append(figures, calibrate.Figure{
					Figure: "verdict.neighbour.flagged", Value: share.Value(), Unit: "1", Low: share.Low, High: share.High, Samples: share.Of,
				})
			}
			for of, times := range map[size]int{{"10k", 10_000}: 5, {"100k", 100_000}: 3} {
				cost, err := analyzeCost(cmd.Context(), r.binDir, of, times)
				if err != nil {
					return err
				}
				figures = append(figures, cost...)
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			for _, figure := range figures {
				if err := out.Encode(figure); err != nil {
					return err
				}
			}
			return nil
		},
	}
	s.flags(command)
	flags := command.Flags()
	flags.IntVar(&r.runs, "real-runs", 5, "runs beside every neighbour")
	flags.StringSliceVar(&r.workloads, "workload", []string{"spin"}, "programs to run beside a neighbour")
	flags.StringSliceVar(&r.neighbours, "neighbour", []string{"cpu", "memory"}, "neighbours: cpu, memory, disk, or none")
	flags.StringVar(&r.root, "root", ".", "the project's folder")
	flags.StringVar(&r.binDir, "bin-dir", "bin", "folder with assay, assay-runner, the programs and assay-neighbour")
	r.seed = 1
	return command
}
