package html

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report/chart"
)

// interval is the interval of the first blocks of a run.
type interval struct {
	blocks           int
	value, low, high float64
}

// The first interval has fewestBlocks, and of very many blocks about mostIntervals are drawn.
const fewestBlocks, mostIntervals = experiment.MinBlocks, 40

// running returns Student's interval of the mean logarithm of the ratios, after each block. Terms are the parameters that were fitted
// beside the mean. The analysis may widen its own interval further.
func running(ratios []float64, terms int, confidence float64) (out []interval) {
	sum, squares := 0.0, 0.0
	step := max(1, len(ratios)/mostIntervals)
	for i, ratio := range ratios {
		x := math.Log(ratio)
		sum, squares = sum+x, squares+x*x
		n := float64(i + 1)
		free := n - 1 - float64(terms)
		if i+1 < fewestBlocks || free < 1 || (len(ratios)-1-i)%step != 0 {
			continue
		}
		mean := sum / n
		half := stats.StudentQuantile((1+confidence)/2, free) * math.Sqrt(max(0, squares-n*mean*mean)/free/n)
		out = append(out, interval{i + 1, math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)})
	}
	return out
}

// withinSight leaves out the first intervals that are many times as wide as the last one, beside which that would be a point.
func withinSight(all []interval) []interval {
	if len(all) == 0 {
		return nil
	}
	const widest = 8
	width := func(i interval) float64 { return math.Log(i.high / i.low) }
	last := width(all[len(all)-1])
	from := slices.IndexFunc(all, func(i interval) bool { return width(i) <= widest*last })
	return all[from:]
}

// rulesOf are the levels of no change and of a bound, which may be the same.
func rulesOf(bound float64) []chart.Tick {
	if bound == 1 {
		return []chart.Tick{{At: 1, Label: "bound: no change"}}
	}
	return []chart.Tick{{At: 1, Label: "no change"}, {At: bound, Label: "bound"}}
}

// narrowing draws how the interval of the gate that the verdict rests on narrowed from block to block; empty for a gate without a ratio,
// and with fewer than two intervals.
func (b *builder) narrowing(gate *analysis.GateResult) template.HTML {
	if gate == nil || gate.Bound == nil || !gate.Op.OfRatio() || b.ratios[gate.Figure()] == nil {
		return ""
	}
	r := b.ratios[gate.Figure()]
	var ratios []float64
	for _, block := range slices.SortedFunc(maps.Keys(r.PerBlock), record.CompareNames) {
		if r.PerBlock[block] > 0 {
			ratios = append(ratios, r.PerBlock[block])
		}
	}
	found := withinSight(running(ratios, r.Terms, gate.Confidence))
	if len(found) < 2 {
		return ""
	}
	plot := chart.Lines{
		Title: fmt.Sprintf("after each block: %s, %s%s", gate.Gate, gate.Candidate, atPoint(gate.Point)), XLabel: "blocks so far", LogY: true,
		Y: numberOf(quantity.Times), Rules: rulesOf(*gate.Bound),
	}
	for i := range plot.Rules {
		plot.Rules[i].Label = "" // It would lie on the last intervals; the note names the lines.
	}
	arm := slices.IndexFunc(b.exp.Arms, func(a record.Arm) bool { return a.Name == gate.Candidate })
	series := chart.Series{Index: max(arm, 0)}
	for i := range found {
		one := &found[i]
		plot.XTicks = append(plot.XTicks, chart.Tick{At: float64(one.blocks), Label: fmt.Sprint(one.blocks)})
		series.Points = append(series.Points, chart.Point{
			X: float64(one.blocks), Y: one.value, Low: &one.low, High: &one.high,
			Title: fmt.Sprintf("%d blocks: %s [%s, %s]", one.blocks, quantity.Format(one.value, quantity.Times), quantity.Short(one.low, "1"),
				quantity.Short(one.high, "1")),
		})
	}
	plot.Series = []chart.Series{series}
	return plot.SVG()
}
