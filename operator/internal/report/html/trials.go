package html

import (
	"fmt"
	"html/template"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report/chart"
)

// pairs shows, for every ratio that a gate judges, the ratio of every single block.
func (b *builder) pairs() panels {
	out := panels{Where: inAnalysis}
	for _, g := range b.result.Gates {
		r := b.ratios[g.Figure()]
		if g.Bound == nil || r == nil || len(r.PerBlock) == 0 {
			continue
		}
		plot := chart.Lines{
			Title: fmt.Sprintf("%s, %s%s", g.Gate, g.Candidate, atPoint(g.Point)), XLabel: "block", LogY: true, Y: numberOf(quantity.Times),
			Rules: rulesOf(*g.Bound),
		}
		arm := slices.IndexFunc(b.exp.Arms, func(a record.Arm) bool { return a.Name == g.Candidate })
		for i, block := range slices.SortedFunc(maps.Keys(r.PerBlock), record.CompareNames) {
			plot.XTicks = append(plot.XTicks, chart.Tick{At: float64(i), Label: fmt.Sprint(i)})
			// One series a block: blocks are not a sequence that a line could join.
			plot.Series = append(plot.Series, chart.Series{Index: max(arm, 0), Points: []chart.Point{{
				X: float64(i), Y: r.PerBlock[block],
				Title: fmt.Sprintf("block %s: %s", block, quantity.Format(r.PerBlock[block], quantity.Times)),
			}}})
		}
		out.add(plot.Title, plot.SVG)
	}
	return out
}

func atPoint(point string) string {
	if point == "" {
		return ""
	}
	return ", " + point
}

// distributions plots every trial for the points and metrics of gates.
func (b *builder) distributions() panels {
	type subject struct{ metric, point string }
	var subjects []subject
	for _, g := range b.result.Gates {
		if s := (subject{g.Metric, g.Point}); g.Metric != "" && !slices.Contains(subjects, s) {
			subjects = append(subjects, s)
		}
	}
	if len(subjects) == 0 {
		for _, point := range b.exp.Points {
			subjects = append(subjects, subject{b.exp.Metrics()[0].Name, point.Key})
		}
	}
	out := panels{Where: inAttempts}
	for _, s := range subjects {
		metric := b.exp.Metric(s.metric)
		if metric == nil {
			continue
		}
		plot := chart.Strips{Title: statisticOfTrials(metric) + atPoint(s.point), Log: true, X: numberOf(metric.Unit)}
		if plot.Rows = b.trialsAt(metric, s.point); len(plot.Rows) > 0 {
			out.add(plot.Title, plot.SVG)
		}
	}
	return out
}

// trialsAt returns the values of the trials of every arm at a point.
func (b *builder) trialsAt(metric *experiment.Metric, point string) (out []chart.Strip) {
	for i, arm := range b.exp.Arms {
		row := chart.Strip{Name: arm.Name, Index: i}
		for _, attempt := range b.trials {
			if attempt.Point != point || attempt.Arm != arm.Name {
				continue
			}
			if v, ok := ofTrial(attempt, metric.Name); ok {
				row.Values = append(row.Values, v)
				row.Titles = append(row.Titles, fmt.Sprintf("%s, %s: %s", arm.Name, attempt.Trial, quantity.Format(v, metric.Unit)))
			}
		}
		if len(row.Values) > maxPicked {
			row.Titles = nil
		}
		if len(row.Values) > 0 {
			row.Median = stats.Median(row.Values)
			out = append(out, row)
		}
	}
	return out
}

// leastTrials is the number of trials of an arm below which its distribution shows nothing.
const leastTrials = 5

// cumulative plots the distributions of the arms' trials behind a gate; "" with too few trials of any arm.
func (b *builder) cumulative(g *analysis.GateResult) (template.HTML, []key) {
	metric := b.exp.Metric(g.Metric)
	if metric == nil {
		return "", nil
	}
	plot := chart.Cumulative{
		Title: statisticOfTrials(metric) + atPoint(g.Point) + ": share of trials up to a value", XLabel: g.Metric, X: numberOf(metric.Unit),
	}
	var keys []key
	for _, row := range b.trialsAt(metric, g.Point) {
		if len(row.Values) < leastTrials {
			return "", nil
		}
		plot.Rows = append(plot.Rows, row)
		keys = append(keys, key{row.Name, chart.Legend(row.Index), chart.Class(row.Index)})
	}
	if len(plot.Rows) < 2 {
		return "", nil
	}
	return plot.SVG(), keys
}

// maxPicked is how many trials of an arm can be told apart by pointing at them.
const maxPicked = 100

func statisticOfTrials(metric *experiment.Metric) string {
	if metric.Statistic == experiment.StatisticValue {
		return metric.Name + " of every trial"
	}
	return metric.Name + ", median of every trial"
}

// ofTrial is one number per trial: its value, or the median of its samples. Histograms are not decoded here.
func ofTrial(attempt *record.Attempt, name string) (float64, bool) {
	metric, _ := attempt.Metric(name)
	return trial.Histograms{}.Statistic(metric, experiment.StatisticMedian)
}

// phases plots the components of the time of an iteration.
func (b *builder) phases() (panels, []key) {
	var names []string
	for _, p := range b.result.Phases {
		if !slices.Contains(names, p.Phase) {
			names = append(names, p.Phase)
		}
	}
	if len(names) == 0 {
		return panels{}, nil
	}
	plots := panels{Where: inAnalysis}
	for _, point := range b.exp.Points {
		plot := chart.Stack{Title: "time per iteration" + atPoint(point.Key), X: numberOf("s")}
		for _, arm := range b.exp.Arms {
			bar := chart.Bar{Name: arm.Name}
			for _, p := range b.result.Phases {
				if p.Point == point.Key && p.Arm == arm.Name {
					bar.Parts = append(bar.Parts, chart.Part{
						Index: slices.Index(names, p.Phase), Value: p.Estimate.Value,
						Title: fmt.Sprintf("%s, %s: %s%s", arm.Name, p.Phase, analysis.Describe(&p.Estimate),
							confidenceOf(&p.Estimate, b.result.Confidence)),
					})
				}
			}
			if len(bar.Parts) > 0 {
				plot.Bars = append(plot.Bars, bar)
			}
		}
		if len(plot.Bars) > 0 {
			plots.add(plot.Title, plot.SVG)
		}
	}
	var keys []key
	for i, name := range names {
		keys = append(keys, key{name, chart.Legend(i), chart.Class(i)})
	}
	return plots, keys
}
