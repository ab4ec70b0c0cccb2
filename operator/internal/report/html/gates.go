package html

import (
	"fmt"
	"html/template"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	summary "assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/chart"
)

// describeGates selects the explanations below the gates: that of completed trials, of the side of the bound, and of the line of no change,
// which a bound of 1 covers.
func (r *report) describeGates() {
	for _, g := range r.Gates {
		r.Completes = r.Completes || g.Op == experiment.Completes
		r.Drawn = r.Drawn || g.Plot != ""
		r.Neutral = r.Neutral || g.Plot != "" && g.Op.OfRatio() && *g.Bound != 1
	}
}

func (b *builder) gates() []gate {
	var out []gate
	agreeing := map[[2]string]int{}
	for _, g := range b.result.Gates {
		// Outputs that agree at every point are one line, not one for each.
		if g.Op == experiment.ParityEqual && g.Outcome == experiment.VerdictGo {
			if at, ok := agreeing[[2]string{g.Gate, g.Candidate}]; ok {
				out[at].points++
				out[at].Point = fmt.Sprintf("%d points", out[at].points)
				continue
			}
			agreeing[[2]string{g.Gate, g.Candidate}] = len(out)
		}
		shown := gate{
			GateResult: g, Class: VerdictClass(g.Outcome), Asked: analysis.Asked(b.exp, g.Condition()), Detectable: summary.Detectable(&g),
			Share: analysis.DescribeShare(b.levels[g.Figure()]), Plot: intervalPlot(g), points: 1,
		}
		shown.Message = summary.Message(&g)
		if g.Estimate != nil {
			shown.Message = strings.TrimPrefix(shown.Message, analysis.Describe(g.Estimate)+" ")
		}
		out = append(out, shown)
	}
	return out
}

func intervalPlot(g analysis.GateResult) template.HTML {
	if g.Estimate == nil || g.Estimate.Low == nil || g.Estimate.High == nil || g.Bound == nil {
		return ""
	}
	holds := g.Condition().Region()
	return chart.Interval{
		Title: fmt.Sprintf("%s for %s: %s", g.Gate, g.Candidate, analysis.Describe(g.Estimate)),
		Value: g.Estimate.Value, Low: *g.Estimate.Low, High: *g.Estimate.High,
		From: holds.Low, To: holds.High,
		Ratio: g.Op.OfRatio(), Class: VerdictClass(g.Outcome), Number: numberOf(g.Estimate.Shown()),
	}.SVG()
}

// numberOf formats a value of a unit for an axis: as reports show it, without zeros that say nothing. Long units are in the
// plot's title.
func numberOf(unit string) chart.Number {
	return func(v float64) string {
		text := quantity.Short(v, unit)
		if unit != "s" && unit != "1" && unit != quantity.Times {
			text = strings.TrimSpace(strings.TrimSuffix(text, quantity.Unit(unit)))
		}
		return text
	}
}
