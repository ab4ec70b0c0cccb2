package html

import (
	"cmp"
	"html/template"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report/chart"
)

// mostGates limits the rows of the plot of all gates.
const mostGates = 24

// gatesPlot has the gates of a run on one axis.
type gatesPlot struct {
	// Narrow is the plot for a phone and Wide for a screen.
	Narrow, Wide template.HTML
	// Shown of All gates with an interval and a positive bound are drawn.
	Shown, All int
}

// Left is the number of gates that are not drawn.
func (p *gatesPlot) Left() int { return p.All - p.Shown }

// allGates draws the intervals of all gates on one axis, whose unit is the bound of each gate. A lower bound is divided by its figure, and
// a figure by its upper bound, so that every gate holds left of 1. The gates with the least room are the first. It is nil with fewer than
// two gates.
func allGates(gates []analysis.GateResult) *gatesPlot {
	var rows []chart.Estimate
	for i := range gates {
		if row, drawn := ofBound(&gates[i]); drawn {
			rows = append(rows, row)
		}
	}
	if len(rows) < 2 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b chart.Estimate) int { return cmp.Compare(b.High, a.High) })
	out := &gatesPlot{All: len(rows), Shown: min(len(rows), mostGates)}
	plot := chart.Forest{
		Title: "figure over bound, of every gate", Rows: rows[:out.Shown], Ratio: true, From: math.Inf(-1), To: 1,
		Number: func(v float64) string { return quantity.Short(v, quantity.Times) },
	}
	out.Narrow, out.Wide = plot.SVG(), plot.Wide()
	return out
}

// ofBound returns the interval of a gate in units of its bound, or of the nearer one of two bounds. Gates on outputs, on completion and on
// differences, and those with a figure of 0, are not drawn.
func ofBound(g *analysis.GateResult) (row chart.Estimate, drawn bool) {
	subject := g.Op.Subject()
	if subject != experiment.SubjectRatio && subject != experiment.SubjectLevel || g.Bound == nil || g.Estimate == nil ||
		g.Estimate.Low == nil || g.Estimate.High == nil || *g.Bound <= 0 || *g.Estimate.Low <= 0 {
		return row, false
	}
	row = within(g.Condition().Region(), *g.Estimate.Low, g.Estimate.Value, *g.Estimate.High)
	row.Name, row.Class = g.Candidate+atPoint(g.Point)+": "+g.Gate, VerdictClass(g.Outcome)
	return row, true
}

// within returns a positive figure and its interval as parts of the end of a region that is nearest to each: at most 1 inside.
func within(region experiment.Region, low, value, high float64) chart.Estimate {
	part := func(figure float64) float64 { return max(figure/region.High, region.Low/figure) }
	out := chart.Estimate{Value: part(value), Low: min(part(low), part(high)), High: max(part(low), part(high))}
	if centre := math.Sqrt(region.Low * region.High); low < centre && centre < high {
		out.Low = part(centre)
	}
	return out
}
