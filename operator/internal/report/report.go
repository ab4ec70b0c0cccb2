// Package report shows an analysis to people: as Markdown, as a table for spreadsheets, and on a terminal. It decides
// nothing and computes nothing that the analysis does not hold.
package report

import (
	"cmp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/search"
)

// row is a point and an arm, the key of every results table.
type row struct{ point, arm string }

// view is an analysis indexed for tables.
type view struct {
	exp      *experiment.Experiment
	result   *analysis.Analysis
	axes     []string
	baseline string
	columns  []column
	levels   map[entry]analysis.ArmResult
	ratios   map[entry]analysis.RatioResult
	// tried are the loads of a search.
	tried map[row]search.Level
}

// measure is one statistic of one metric.
type measure struct {
	metric    string
	statistic experiment.Statistic
}

// column is a measure in its unit, and entry what it is at a row.
type column struct {
	measure
	unit string
}
type entry struct {
	row
	measure
}

func newView(exp *experiment.Experiment, analyzed *analysis.Analysis) *view {
	v := &view{
		exp: exp, result: analyzed, axes: exp.Axes(), baseline: Baseline(exp),
		levels: map[entry]analysis.ArmResult{}, ratios: map[entry]analysis.RatioResult{},
	}
	v.tried = levels(v)
	for _, result := range analyzed.Arms {
		v.levels[entry{row{result.Point, result.Arm}, measure{result.Metric, result.Statistic}}] = result
	}
	for _, result := range analyzed.Ratios {
		v.ratios[entry{row{result.Point, result.Candidate}, measure{result.Metric, result.Statistic}}] = result
	}
	// Columns in the template's order, and inside a metric in the order the results have.
	for _, metric := range exp.Metrics() {
		for _, result := range analyzed.Arms {
			c := column{measure{result.Metric, result.Statistic}, metric.Unit}
			if result.Metric == metric.Name && !slices.Contains(v.columns, c) {
				v.columns = append(v.columns, c)
			}
		}
	}
	return v
}

// rows visits every point and arm in the experiment's order; of a search, those that were tried.
func (v *view) rows(visit func(parameters map[string]string, r row)) {
	for _, point := range v.exp.Points {
		for _, arm := range v.exp.Arms {
			r := row{point.Key, arm.Name}
			if _, tried := v.tried[r]; tried || v.exp.Plan.Search == nil {
				visit(point.Parameters, r)
			}
		}
	}
}

func verdictName(verdict experiment.Verdict) string { return string(cmp.Or(verdict, "no verdict")) }

// RunName is the run with its namespace, where it has one.
func RunName(exp *experiment.Experiment) string {
	return strings.TrimPrefix(exp.Run.Namespace+"/"+exp.Run.Name, "/")
}

// Baseline is the name of the baseline; empty without one.
func Baseline(exp *experiment.Experiment) string {
	if at := exp.Baseline(); at >= 0 {
		return exp.Arms[at].Name
	}
	return ""
}
