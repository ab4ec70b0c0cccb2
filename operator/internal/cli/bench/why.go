package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/report/causes"
	"assay.dev/assay/operator/internal/why"
	"assay.dev/assay/operator/internal/why/instrument"
)

// explain runs the cause waves of every candidate. Explanations are printed after the answer; with -o json or yaml, which print the
// analysis, they are only in the ledger.
func (o *benchOptions) explain(ctx context.Context, here *runs.LocalRun, result *analysis.Analysis, form string, stdout,
	stderr io.Writer) error {
	figure := why.WallTime
	if o.by == bench.CPUTime {
		figure = why.CPUTime
	}
	screen := runs.NewLiveLine(stderr)
	asks := &runs.Why{
		Run: here, Result: result, Figure: figure, Metric: bench.MetricOf(cmp.Or(o.by, bench.WallTime)), Budget: o.whyBudget,
		Instruments: instrument.All, Log: screen,
	}
	for _, candidate := range here.Experiment.Candidates() {
		screen.Printf("looking for the causes of %s", candidate)
		explanation, err := asks.Explain(ctx, candidate)
		screen.Clear()
		if err != nil {
			return err
		}
		folder := filepath.Join(here.Executor.Folder, runs.WhyFolder, candidate)
		if form != "text" {
			fmt.Fprintf(stderr, "why: %s (%s)\n", explanation.Sentence, filepath.Join(folder, runs.WhyExplanationFile))
			continue
		}
		fmt.Fprintln(stdout)
		if err := causes.Text(stdout, explanation); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "causes  %s\n", folder)
	}
	return nil
}
