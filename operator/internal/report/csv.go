package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// CSV renders one row per point and arm: the axes, the arm, and for every statistic its estimate with interval, blocks, samples and ratio
// to the baseline. A search has a row per load with its outcomes. Missing numbers are empty fields.
func CSV(exp *experiment.Experiment, analyzed *analysis.Analysis) []byte {
	v := newView(exp, analyzed)
	var out sheet
	header := append(append([]string{}, v.axes...), "arm")
	for _, c := range v.columns {
		name := c.metric + "_" + string(c.statistic)
		header = append(header, fmt.Sprintf("%s (%s)", name, c.unit), name+"_low", name+"_high", name+"_blocks", name+"_samples")
		if v.baseline != "" {
			header = append(header, name+"_ratio", name+"_ratio_low", name+"_ratio_high")
		}
	}
	header = append(header, "ceiling", "share_of_ceiling")
	if exp.Plan.Search != nil {
		header = append(header, "outcome", "fresh_outcome", "constraint")
	}
	out.row(header)

	v.rows(func(cells []string, r row) {
		ceiling, share := "", ""
		for _, c := range v.columns {
			result, ok := v.levels[r.of(c.metric, c.statistic)]
			if ok {
				e := result.Estimate
				cells = append(cells, number(&e.Value), number(e.Low), number(e.High), strconv.Itoa(e.Blocks), strconv.Itoa(e.Samples))
				ceiling, share = result.Ceiling, number(result.ShareOfCeiling)
			} else {
				cells = append(cells, "", "", "", "", "")
			}
			if v.baseline == "" {
				continue
			}
			if ratio, ok := v.ratios[r.of(c.metric, c.statistic)]; ok {
				cells = append(cells, number(&ratio.Estimate.Value), number(ratio.Estimate.Low), number(ratio.Estimate.High))
			} else {
				cells = append(cells, "", "", "")
			}
		}
		cells = append(cells, ceiling, share)
		if exp.Plan.Search != nil {
			level, fresh := v.tried[r], ""
			if level.Fresh != nil {
				fresh = string(level.Fresh.Outcome)
			}
			cells = append(cells, string(level.Probe.Outcome), fresh, deciding(level))
		}
		out.row(cells)
	})
	return out.Bytes()
}

// sheet collects rows of CSV.
type sheet struct{ bytes.Buffer }

// row writes cells. Cells other than numbers that begin like a formula get an apostrophe, because parameters and units are untrusted text
// that a spreadsheet would evaluate (OWASP, CSV injection). Characters that are not shown are escaped.
func (s *sheet) row(cells []string) {
	inert := slices.Clone(cells)
	for i, cell := range cells {
		cell = Visible(cell)
		inert[i] = cell
		if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.ContainsAny(cell[:min(1, len(cell))], "=+-@\t\r\n|%") {
			inert[i] = "'" + cell
		}
	}
	w := csv.NewWriter(s)
	_ = w.Write(inert) // Writes to a bytes.Buffer do not fail.
	w.Flush()
}

func number(value *float64) string {
	if value == nil {
		return ""
	}
	return quantity.Full(*value)
}
