package experiment

import (
	"fmt"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/suggest"
)

// checkReport rejects tables with an empty column or row, because this would otherwise show only after the run.
func checkReport(spec *assayv1alpha1.BenchmarkRunSpec, e *Experiment, problems *Invalid) {
	plan, known := &e.Plan, e.ArmNames()
	for i, table := range plan.Tables {
		field := fmt.Sprintf("spec.report.tables[%d]", i)
		e.checkAt(field, table.At, problems)
		for j, name := range table.Arms {
			if !slices.Contains(known, name) {
				problems.add(fmt.Sprintf("%s.arms[%d]", field, j), "the run has no arm %q: %s", name, suggest.Allowed(name, known))
			}
		}
		seconds := slices.DeleteFunc(plan.metricNames(), func(name string) bool { return plan.metric(name).Unit != "s" })
		if table.Total != "" && !slices.Contains(seconds, table.Total) {
			problems.add(field+".total", "the template has no metric %q in seconds: %s", table.Total, suggest.Allowed(table.Total, seconds))
		}
		for j, column := range table.Columns {
			checkColumn(spec, plan, column, fmt.Sprintf("%s.columns[%d]", field, j), problems)
		}
	}
}

func checkColumn(spec *assayv1alpha1.BenchmarkRunSpec, plan *Plan, column Column, field string, problems *Invalid) {
	if column.Phase != "" {
		return // The phases are known only after the program has run.
	}
	plan.checkMetric(field+".metric", column.Metric, problems)
	if metric := plan.metric(column.Metric); metric != nil && !slices.Contains(plan.statistics(metric), column.Statistic) {
		problems.add(field+".statistic", "%s of %s is not computed, because no gate asks for it: add a gate, with severity Advisory if it must "+
			"not affect the verdict", column.Statistic, column.Metric)
	}
	if column.Compared && len(spec.Arms) == 1 {
		problems.add(field+".compared", "the run has one arm and so no baseline to compare with: add an arm, or remove compared")
	}
}
