package main

import (
	"fmt"
	"io"
	"time"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/calibration/rehearse"
	"assay.dev/assay/operator/internal/quantity"
)

// bisect simulates searches for culprits.
func (o *historyOptions) bisect(log io.Writer) ([]calibrate.Figure, string) {
	var rows []rehearse.Searches
	var figures []calibrate.Figure
	for _, history := range rehearse.Histories() {
		started := time.Now()
		row := rehearse.Bisect(history, o.bisections, o.parallel, o.seed)
		rows = append(rows, row)
		fmt.Fprintf(log, "%d culprits of %g %%: %d searches in %s\n", history.Culprits, 100*history.Shift, row.Of,
			quantity.Duration(time.Since(started), time.Millisecond))
		if history.Culprits != 1 {
			continue
		}
		size := quantity.Decimals(100*history.Shift, 0) + "pct"
		figures = append(figures, calibrate.NewShare(row.Exact, row.Of).Figure("bisect.correct_rate."+size))
		if history.Shift == rehearse.PromisedShift {
			figures = append(figures, mean("bisect.waves", "waves", row.Waves, "mean for one culprit of "+size+"; the last wave verifies")...)
		}
	}
	text := rehearse.SearchTable(rows, func(count, of int) string { return calibrate.NewShare(count, of).String() })
	return figures, fmt.Sprintf("`calibrate history --bisections %d --seed %d`.\n\n%s", o.bisections, o.seed, text)
}
