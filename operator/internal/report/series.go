package report

import (
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// SeriesNote explains the columns of Series.
const SeriesNote = "Autocorrelation is the correlation of successive blocks, near 0 for independent blocks. Skewness is the " +
	"asymmetry of the distribution of blocks, near 0 for symmetric ones. Slow spread is the ratio of the slow variance between blocks to " +
	"the variance " +
	"expected from the trials inside them, about 1 if blocks differ by their trials alone. Clock step is the resolution of the metric's clock."

// Series summarizes whether the blocks satisfy the assumptions of their intervals, with a row for every gate on estimates. It is empty
// without such a gate.
func Series(result *analysis.Analysis) (says string, table Table) {
	table.Header = []string{"gate", "candidate", "point", "blocks", "autocorrelation", "skewness", "slow spread", "clock step",
		"the interval is"}
	widened, intervals := 0, 0
	for _, gate := range result.Gates {
		if !gate.Op.Timed() {
			continue
		}
		blocks, correlation, skewness, slow, step := "", "", "", "", ""
		var why []string
		if gate.Estimate != nil {
			blocks = strconv.Itoa(gate.Estimate.Blocks)
		}
		if series := gate.Series; series != nil {
			correlation, skewness = signed(series.Autocorrelation), signed(series.Skewness)
			if series.Unexplained != nil {
				slow = quantity.Decimals(*series.Unexplained, 1) + quantity.Times
			}
			if series.Dependent {
				why = append(why, "blocks depend on each other")
			}
			if series.Skewed {
				why = append(why, "blocks are skewed")
			}
		}
		if clock := gate.Resolution; clock != nil {
			step = quantity.Percent(clock.Relative, 2)
			if clock.Widened {
				why = append(why, "the clock resolution is low")
			}
		}
		if gate.Estimate != nil && gate.Estimate.Low != nil {
			intervals++
		}
		how := "from the spread of blocks"
		switch {
		case gate.Estimate == nil || gate.Estimate.Low == nil:
			how = "not there"
		case len(why) > 0:
			widened++
			how = "wider: " + strings.Join(why, ", ")
		case experiment.Percentiles[gate.Statistic] != 0:
			how = "drawn from whole blocks"
		case gate.Series == nil:
			how += ", and too few or too similar to show more"
		}
		table.add(gate.Gate, gate.Candidate, gate.Point, blocks, correlation, skewness, slow, step, how)
	}
	if table.Rows == nil {
		return "", table
	}
	if intervals == 0 {
		return "No gate on a figure has an interval.", table
	}
	if widened == 0 {
		return "No interval was widened. There is no evidence of dependent or skewed blocks, " +
			"or of insufficient clock resolution.", table
	}
	return fmt.Sprintf("%d of %d intervals were widened because of dependent or skewed blocks or the clock resolution.",
		widened, intervals), table
}

func signed(value *float64) string {
	if value == nil {
		return ""
	}
	return quantity.Signed(*value, 2)
}

// series writes the diagnostics of the blocks and the undetectable effects.
func (v *view) series(out *document) {
	says, table := Series(v.result)
	if says == "" {
		return
	}
	out.heading("Diagnostics of the blocks")
	out.line("%s", says)
	out.line("")
	out.table(table)
	out.line("\n%s", SeriesNote)
}
