// Package report renders an analysis for people: as Markdown, CSV, and for terminals. It formats only; all decisions and numbers are in the
// analysis.
package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/search"
)

// row is a point and an arm, the key of results tables.
type row struct{ point, arm string }

// of returns the key of a statistic of a metric in this row.
func (r row) of(metric string, statistic experiment.Statistic) analysis.Figure {
	return analysis.Figure{Point: r.point, Arm: r.arm, Metric: metric, Statistic: statistic}
}

// view is an analysis indexed for tables.
type view struct {
	exp      *experiment.Experiment
	result   *analysis.Analysis
	axes     []string
	baseline string
	columns  []column
	levels   map[analysis.Figure]*analysis.ArmResult
	ratios   map[analysis.Figure]*analysis.RatioResult
	// tried holds the loads of a search.
	tried map[row]search.Level
}

// column is one statistic of one metric in its unit.
type column struct {
	metric    string
	statistic experiment.Statistic
	unit      string
}

func newView(exp *experiment.Experiment, analyzed *analysis.Analysis) *view {
	v := &view{exp: exp, result: analyzed, axes: exp.Axes(), baseline: analysis.Baseline(exp), tried: map[row]search.Level{}}
	v.levels, v.ratios = analyzed.Figures()
	for _, result := range analyzed.Search {
		for _, level := range result.Levels {
			if level.Index < len(exp.Points) {
				v.tried[row{exp.Points[level.Index].Key, result.Arm}] = level
			}
		}
	}
	// Columns are in the order of the template, and within a metric in the order of the results.
	for _, metric := range exp.Metrics() {
		for _, result := range analyzed.Arms {
			c := column{result.Metric, result.Statistic, metric.Unit}
			if result.Metric == metric.Name && !slices.Contains(v.columns, c) {
				v.columns = append(v.columns, c)
			}
		}
	}
	return v
}

// rows visits every point and arm in the order of the experiment, with the cells of the key; for a search the tried loads.
func (v *view) rows(visit func(cells []string, r row)) {
	for _, point := range v.exp.Points {
		for _, arm := range v.exp.Arms {
			r := row{point.Key, arm.Name}
			if _, tried := v.tried[r]; tried || v.exp.Plan.Search == nil {
				visit(append(v.axisValues(point.Parameters), arm.Name), r)
			}
		}
	}
}

// Results tabulates every point and arm: each statistic with its ratio to the baseline, and the blocks and the ceiling behind them.
func Results(exp *experiment.Experiment, result *analysis.Analysis) Table {
	return newView(exp, result).results(true)
}

// results returns that table, or, unless it is whole, the values without their intervals, blocks and ceilings.
func (v *view) results(whole bool) Table {
	table := Table{Header: append(slices.Clone(v.axes), "arm")}
	confidence := Interval(v.result.Confidence)
	for _, c := range v.columns {
		name := analysis.StatisticName(c.metric, c.statistic)
		if whole {
			name += confidence
		}
		table.Header = append(table.Header, name)
		if v.baseline != "" {
			table.Header = append(table.Header, "/"+v.baseline+confidence)
		}
	}
	if whole {
		table.Header = append(table.Header, "blocks", "share of ceiling")
	}
	v.rows(func(cells []string, r row) {
		blocks, ceiling := 0, ""
		for _, c := range v.columns {
			level, ratio := "-", "-"
			if result, ok := v.levels[r.of(c.metric, c.statistic)]; ok {
				level = quantity.Format(result.Estimate.Value, result.Estimate.Shown())
				if whole {
					level = analysis.Describe(&result.Estimate)
				}
				blocks, ceiling = max(blocks, result.Estimate.Blocks), cmp.Or(analysis.DescribeShare(result), ceiling)
			}
			if result, ok := v.ratios[r.of(c.metric, c.statistic)]; ok {
				ratio = analysis.Describe(&result.Estimate)
			} else if r.arm == v.baseline {
				ratio = "1"
			}
			cells = append(cells, level)
			if v.baseline != "" {
				cells = append(cells, ratio)
			}
		}
		if whole {
			cells = append(cells, strconv.Itoa(blocks), ceiling)
		}
		table.add(cells...)
	})
	return table
}

func verdictName(verdict experiment.Verdict) string { return string(cmp.Or(verdict, "no verdict")) }

// RunName returns the name of the run with its namespace, if it has one.
func RunName(exp *experiment.Experiment) string {
	return strings.TrimPrefix(exp.Run.Namespace+"/"+exp.Run.Name, "/")
}

// Machine names the machine of a run by its fingerprint; "" if the trials did not share one.
func Machine(result *analysis.Analysis) string {
	var parts []string
	for _, key := range []string{"cpuModel", "machine"} {
		if text, ok := result.Environment[key].(string); ok && text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}
