package main

import (
	"context"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/report/html"
	"assay.dev/assay/operator/internal/store"
)

func newReportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "report FOLDER", Short: "Size of the report of a ledger in a folder", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			figure, err := reportSize(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return calibrate.Print(cmd.OutOrStdout(), figure)
		},
	}
}

// reportSize renders the report of a ledger's newest wave with the present version.
func reportSize(ctx context.Context, folder string) (calibrate.Figure, error) {
	store, err := store.OpenFolder(ctx, folder)
	if err != nil {
		return calibrate.Figure{}, err
	}
	exp, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		return calibrate.Figure{}, err
	}
	wave, err := ledger.LastWave(ctx, store)
	if err != nil {
		return calibrate.Figure{}, err
	}
	evidence, err := ledger.ReadEvidence(ctx, store, wave)
	if err != nil {
		return calibrate.Figure{}, err
	}
	page, err := html.Render(exp, analyze.Evidence(exp, evidence, wave), evidence)
	if err != nil {
		return calibrate.Figure{}, err
	}
	return calibrate.MedianFigure("report.html_kib", "KiB", []float64{float64(len(page)) / 1024}, ""), nil
}
