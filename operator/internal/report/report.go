// Package report renders an analysis for people: as Markdown, CSV, and for terminals. It formats only; all decisions and numbers are in the
// analysis.
package report

import (
	"cmp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
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

func verdictName(verdict experiment.Verdict) string { return string(cmp.Or(verdict, "no verdict")) }

// RunName returns the name of the run with its namespace, if it has one.
func RunName(exp *experiment.Experiment) string {
	return strings.TrimPrefix(exp.Run.Namespace+"/"+exp.Run.Name, "/")
}
