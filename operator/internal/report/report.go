// Package report shows an analysis to people: as Markdown, as a table for spreadsheets, and on a terminal. It decides
// nothing and computes nothing that the analysis does not hold.
package report

import (
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
	levels   map[row]map[column]analysis.ArmResult
	ratios   map[row]map[column]analysis.RatioResult
	// tried are the loads of a search.
	tried map[row]search.Level
}

// column is one statistic of one metric.
type column struct {
	metric    string
	statistic experiment.Statistic
	unit      string
}

func (c column) key() column { return column{c.metric, c.statistic, ""} }

func newView(exp *experiment.Experiment, analyzed *analysis.Analysis) *view {
	v := &view{exp: exp, result: analyzed, levels: map[row]map[column]analysis.ArmResult{}, ratios: map[row]map[column]analysis.RatioResult{}}
	v.axes = exp.Axes()
	v.tried = levels(v)
	if baseline := exp.Baseline(); baseline >= 0 {
		v.baseline = exp.Arms[baseline].Name
	}
	present := map[column]bool{}
	for _, result := range analyzed.Arms {
		r, c := row{result.Point, result.Arm}, column{result.Metric, result.Statistic, ""}
		if v.levels[r] == nil {
			v.levels[r] = map[column]analysis.ArmResult{}
		}
		v.levels[r][c], present[c] = result, true
	}
	for _, result := range analyzed.Ratios {
		r, c := row{result.Point, result.Candidate}, column{result.Metric, result.Statistic, ""}
		if v.ratios[r] == nil {
			v.ratios[r] = map[column]analysis.RatioResult{}
		}
		v.ratios[r][c] = result
	}
	// Columns in the template's order, and inside a metric in the order the results have.
	for _, metric := range exp.Metrics() {
		for _, result := range analyzed.Arms {
			c := column{result.Metric, result.Statistic, ""}
			if result.Metric == metric.Name && present[c] {
				present[c] = false
				v.columns = append(v.columns, column{metric.Name, result.Statistic, metric.Unit})
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

func verdictName(verdict experiment.Verdict) string {
	if verdict == "" {
		return "no verdict"
	}
	return string(verdict)
}

func runName(exp *experiment.Experiment) string {
	return strings.TrimPrefix(exp.Run.Namespace+"/"+exp.Run.Name, "/")
}
