package report

import (
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// SeriesNote explains what the columns of Series mean.
const SeriesNote = "Autocorrelation is how much a block is like the one that ran before it, from -1 to 1: independent blocks are near 0. " +
	"Skewness is how lopsided " +
	"the blocks' numbers are: symmetric ones are near 0. Slow spread is the slow part of the variance between blocks, over what the spread " +
	"of the trials inside them " +
	"explains: about 1 where blocks differ by their trials alone. The clock step is the finest difference that the metric's clock can resolve."

// Series reports whether the blocks behave as their intervals take for granted, and has a row for every gate on figures. It is empty if
// there is no such gate.
func Series(result *analysis.Analysis) (says string, table Table) {
	table.Header = []string{"gate", "candidate", "point", "blocks", "autocorrelation", "skewness", "slow spread", "clock step",
		"the interval is"}
	widened := 0
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
				why = append(why, "the clock is coarse")
			}
		}
		how := "as blocks spread"
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
	if widened == 0 {
		return "No interval had to be widened: as far as they show, blocks are independent of each other and symmetric, " +
			"and clocks fine enough.", table
	}
	return fmt.Sprintf("%d of %d intervals are wider than the spread of their blocks makes them, for what the blocks or the clock showed.",
		widened, len(table.Rows)), table
}

func signed(value *float64) string {
	if value == nil {
		return ""
	}
	return quantity.Signed(*value, 2)
}

// series is what the blocks' numbers do over the run, and what so many blocks cannot have seen.
func (v *view) series(out *document) {
	says, table := Series(v.result)
	if says == "" {
		return
	}
	out.heading("What the blocks can show")
	out.line("%s", says)
	if v.result.Unseen != "" {
		out.line("\nNot seen: %s.", Escape(v.result.Unseen))
	}
	out.line("")
	out.table(table)
	out.line("\n%s", SeriesNote)
}
