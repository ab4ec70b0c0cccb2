package html

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	summary "assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/chart"
)

// maxPanels is the maximum number of plots in a section, and maxNamed the maximum number of listed titles of omitted ones.
const maxPanels, maxNamed = 12, 60

// line is a row of points that differ in the first axis only.
type line struct {
	name   string
	points []record.Point
}

// axis is the sweep's axis with the most values: curves run along it.
func (b *builder) axis() (name string, ok bool) {
	most := 1
	for _, axis := range b.exp.Axes() {
		seen := map[string]bool{}
		for _, point := range b.exp.Points {
			seen[point.Parameters[axis]] = true
		}
		if len(seen) > most {
			name, most = axis, len(seen)
		}
	}
	return name, most > 1
}

// lines groups the points by their parameters other than the axis. Axes that vary together form one line.
func (b *builder) lines(axis string) []line {
	var out []line
	at := map[string]int{}
	zipped := b.exp.Plan.Sweep != nil && b.exp.Plan.Sweep.Zipped
	measured := map[string]bool{}
	for _, result := range b.result.Arms {
		measured[result.Point] = true
	}
	for _, point := range b.exp.Points {
		// A search tries a few of very many loads.
		if b.exp.Plan.Search != nil && !measured[point.Key] {
			continue
		}
		var rest []string
		for _, other := range b.exp.Axes() {
			if other != axis && !zipped {
				rest = append(rest, other+"="+point.Parameters[other])
			}
		}
		name := strings.Join(rest, ", ")
		if _, ok := at[name]; !ok {
			at[name] = len(out)
			out = append(out, line{name: name})
		}
		out[at[name]].points = append(out[at[name]].points, point)
	}
	return out
}

// places gives every point of a line its place on the axis: its value if all are numbers, else its number in the row.
func places(points []record.Point, axis string) (at []float64, ticks []chart.Tick, log bool) {
	numeric, positive := true, true
	for _, point := range points {
		v, err := strconv.ParseFloat(point.Parameters[axis], 64)
		numeric = numeric && err == nil
		positive = positive && v > 0
		at = append(at, v)
	}
	highest := slices.Max(at)
	log = numeric && positive && highest/slices.Min(at) >= 8
	// Numbers that span decades and include zero are places, not amounts.
	ordinal := !numeric || !positive && highest > 100
	for i, point := range points {
		if ordinal {
			at[i] = float64(i)
		}
		ticks = append(ticks, chart.Tick{At: at[i], Label: point.Parameters[axis]})
	}
	return at, ticks, log
}

// curves shows every metric along the sweep.
func (b *builder) curves() panels {
	return b.alongSweep(func(metric *experiment.Metric) (string, chart.Number, []chart.Tick) {
		return analysis.StatisticName(metric.Name, metric.Statistic) + " (" + quantity.Unit(metric.Unit) + ")", numberOf(metric.Unit), nil
	}, func(metric *experiment.Metric, point, arm string) *analysis.Estimate {
		if r := b.levels[analysis.Figure{Point: point, Arm: arm, Metric: metric.Name, Statistic: metric.Statistic}]; r != nil {
			return &r.Estimate
		}
		return nil
	})
}

// ratioCurves shows every candidate over the baseline along the sweep.
func (b *builder) ratioCurves() panels {
	return b.alongSweep(func(metric *experiment.Metric) (string, chart.Number, []chart.Tick) {
		return analysis.StatisticName(metric.Name, metric.Statistic) + " over " + b.baseline(), numberOf(quantity.Times), b.rules(metric)
	}, func(metric *experiment.Metric, point, arm string) *analysis.Estimate {
		if r := b.ratios[analysis.Figure{Point: point, Arm: arm, Metric: metric.Name, Statistic: metric.Statistic}]; r != nil {
			return &r.Estimate
		}
		return nil
	})
}

// rules are the levels that a ratio is read against: no change, and the bounds of the gates on it.
func (b *builder) rules(metric *experiment.Metric) []chart.Tick {
	out := []chart.Tick{{At: 1, Label: "no change"}}
	seen := map[float64]bool{1: true}
	for _, g := range b.result.Gates {
		relative := g.Op.OfRatio()
		if relative && g.Metric == metric.Name && g.Statistic == metric.Statistic && g.Bound != nil && !seen[*g.Bound] {
			seen[*g.Bound] = true
			out = append(out, chart.Tick{At: *g.Bound, Label: g.Gate})
		}
	}
	return out
}

func (b *builder) alongSweep(describe func(*experiment.Metric) (string, chart.Number, []chart.Tick),
	of func(metric *experiment.Metric, point, arm string) *analysis.Estimate) panels {
	axis, ok := b.axis()
	if !ok {
		return panels{}
	}
	out := panels{Where: inResults}
	for _, metric := range b.exp.Metrics() {
		title, number, rules := describe(metric)
		for _, l := range b.lines(axis) {
			at, ticks, log := places(l.points, axis)
			plot := chart.Lines{Title: title, XLabel: axis, XTicks: ticks, LogX: log, LogY: true, Rules: rules, Y: number}
			if l.name != "" {
				plot.Title += ", " + l.name
			}
			for a, arm := range b.exp.Arms {
				series := chart.Series{Index: a}
				for j, point := range l.points {
					if e := of(metric, point.Key, arm.Name); e != nil {
						series.Points = append(series.Points, chart.Point{
							X: at[j], Y: e.Value, Low: e.Low, High: e.High,
							Title: fmt.Sprintf("%s, %s=%s: %s%s", arm.Name, axis, point.Parameters[axis], analysis.Describe(e),
								confidenceOf(e, b.result.Confidence)),
						})
					}
				}
				if len(series.Points) > 0 {
					plot.Series = append(plot.Series, series)
				}
			}
			if len(plot.Series) > 0 {
				out.add(plot.Title, plot.SVG)
			}
		}
	}
	return out
}

// Where the figures are of plots that are not drawn.
const (
	inResults  = "their figures are in the results below"
	inAnalysis = "their figures are in analysis.json"
	inAttempts = "their figures are in attempts.parquet of the ledger"
)

// confidenceOf says the confidence of an interval, where there is one.
func confidenceOf(e *analysis.Estimate, level float64) string {
	if e.Low == nil || e.High == nil {
		return ""
	}
	return " (" + summary.Confidence(level) + ")"
}
