package html

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

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

// scale is that on which the mean of the blocks is taken: of ratios their logarithms, of levels themselves.
type scale struct{ of, back func(float64) float64 }

var (
	plain       = scale{func(v float64) float64 { return v }, func(v float64) float64 { return v }}
	logarithmic = scale{math.Log, math.Exp}
)

// width of an interval on the scale.
func (s scale) width(i interval) float64 { return s.of(i.high) - s.of(i.low) }

// running returns Student's interval of the mean of the blocks' values on a scale, after each block. Terms are the parameters that were
// fitted beside the mean. The analysis may widen its own interval further.
func running(values []float64, terms int, confidence float64, on scale) (out []interval) {
	sum, squares := 0.0, 0.0
	step := max(1, len(values)/mostIntervals)
	for i, value := range values {
		x := on.of(value)
		sum, squares = sum+x, squares+x*x
		n := float64(i + 1)
		free := n - 1 - float64(terms)
		if i+1 < fewestBlocks || free < 1 || (len(values)-1-i)%step != 0 {
			continue
		}
		mean := sum / n
		half := stats.StudentQuantile((1+confidence)/2, free) * math.Sqrt(max(0, squares-n*mean*mean)/free/n)
		out = append(out, interval{i + 1, on.back(mean), on.back(mean - half), on.back(mean + half)})
	}
	return out
}

// withinSight leaves out the first intervals that are many times as wide as the last one, beside which that would be a point.
func withinSight(all []interval, on scale) []interval {
	if len(all) == 0 {
		return nil
	}
	const widest = 8
	last := on.width(all[len(all)-1])
	from := slices.IndexFunc(all, func(i interval) bool { return on.width(i) <= widest*last })
	return all[from:]
}

// rulesOf are the levels of no change and of a bound, which may be the same.
func rulesOf(bound float64) []chart.Tick {
	if bound == 1 {
		return []chart.Tick{{At: 1, Label: "bound: no change"}}
	}
	return []chart.Tick{{At: 1, Label: "no change"}, {At: bound, Label: "bound"}}
}

// byBlock returns the values of the blocks behind a gate, in their order: ratios, or means of the trials of a level. It is empty for a
// figure that single blocks do not have, and for a level whose mean is not that of the analysis.
func (b *builder) byBlock(gate *analysis.GateResult) (values []float64, terms int, on scale) {
	if gate.Op.OfRatio() {
		r := b.ratios[gate.Figure()]
		if r == nil {
			return nil, 0, logarithmic
		}
		for _, block := range slices.SortedFunc(maps.Keys(r.PerBlock), record.CompareNames) {
			if r.PerBlock[block] > 0 {
				values = append(values, r.PerBlock[block])
			}
		}
		return values, r.Terms, logarithmic
	}
	if gate.Op.Subject() != experiment.SubjectLevel ||
		gate.Statistic != experiment.StatisticValue && gate.Statistic != experiment.StatisticMedian {
		return nil, 0, plain
	}
	for _, counts := range []func(*record.Attempt) bool{func(*record.Attempt) bool { return true }, b.followsItself()} {
		values := b.meansOfBlocks(gate, counts)
		if len(values) > 0 && math.Abs(stats.Mean(values)/gate.Estimate.Value-1) < 1e-6 {
			return values, 0, plain
		}
	}
	return nil, 0, plain
}

// meansOfBlocks returns the means of the trials of a gate's figure that count, in the order of the blocks.
func (b *builder) meansOfBlocks(gate *analysis.GateResult, counts func(*record.Attempt) bool) (values []float64) {
	trials := map[string][]float64{}
	for _, attempt := range b.trials {
		if attempt.Point == gate.Point && attempt.Arm == gate.Candidate && counts(attempt) {
			if v, ok := ofTrial(attempt, gate.Metric); ok {
				trials[attempt.Block] = append(trials[attempt.Block], v)
			}
		}
	}
	for _, block := range slices.SortedFunc(maps.Keys(trials), record.CompareNames) {
		values = append(values, stats.Mean(trials[block]))
	}
	return values
}

// followsItself returns whether a trial follows one of the same arm, point and build in its block. If all arms of a run do, their other
// trials do not count.
func (b *builder) followsItself() func(*record.Attempt) bool {
	type place struct {
		block string
		slot  int
	}
	at := map[place]*record.Attempt{}
	for _, attempt := range b.trials {
		at[place{attempt.Block, attempt.Slot}] = attempt
	}
	return func(attempt *record.Attempt) bool {
		before := at[place{attempt.Block, attempt.Slot - 1}]
		return before != nil && before.Arm == attempt.Arm && before.Point == attempt.Point && before.Build == attempt.Build
	}
}

// narrowed is how the interval of a gate narrowed from block to block, or the reason why that is not drawn.
type narrowed struct {
	Plot template.HTML
	Note string
}

// narrowing draws how the interval of the gate that the verdict rests on narrowed; nothing for a gate without an interval of blocks, and
// with fewer than two intervals.
func (b *builder) narrowing(gate *analysis.GateResult) narrowed {
	if gate == nil || gate.Bound == nil {
		return narrowed{}
	}
	if experiment.Percentiles[gate.Statistic] > 0 {
		return narrowed{Note: "A percentile rests on the trials of all blocks together, so there is no interval after each block."}
	}
	values, terms, on := b.byBlock(gate)
	found := withinSight(running(values, terms, gate.Confidence, on), on)
	if len(found) < 2 {
		return narrowed{}
	}
	unit := quantity.Times
	if !gate.Op.OfRatio() {
		unit = gate.Estimate.Shown()
	}
	plot := chart.Lines{
		Title: fmt.Sprintf("after each block: %s, %s%s", gate.Gate, gate.Candidate, atPoint(gate.Point)), XLabel: "blocks so far",
		LogY: gate.Op.OfRatio(), Y: numberOf(unit), Rules: []chart.Tick{{At: *gate.Bound}},
	}
	note := "The interval after each block, as of independent blocks; the analysis may widen the last one. A dashed line is the bound."
	if gate.Op.OfRatio() {
		plot.Rules = rulesOf(*gate.Bound)
		note = strings.TrimSuffix(note, ".") + " or no change."
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
			Title: fmt.Sprintf("%d blocks: %s [%s, %s]", one.blocks, quantity.Format(one.value, unit), quantity.Short(one.low, unit),
				quantity.Short(one.high, unit)),
		})
	}
	plot.Series = []chart.Series{series}
	return narrowed{plot.SVG(), note}
}
