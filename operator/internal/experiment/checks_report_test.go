package experiment

import (
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

func TestFreeze_EmptyTableIsRejected(t *testing.T) {
	template := &assayv1alpha1.BenchmarkTemplateSpec{Metrics: []assayv1alpha1.Metric{
		{Name: "latency", Unit: "s", Statistic: assayv1alpha1.StatisticMedian}, {Name: "throughput", Unit: "1/s", Statistic: assayv1alpha1.StatisticValue},
		{Name: "time", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, Statistic: assayv1alpha1.StatisticMedian},
	}}
	column := func(c assayv1alpha1.ReportColumn) assayv1alpha1.ReportTable {
		return assayv1alpha1.ReportTable{Name: "document", Columns: []assayv1alpha1.ReportColumn{c}}
	}
	for name, test := range map[string]struct {
		tables []assayv1alpha1.ReportTable
		oneArm bool
		says   string
	}{
		"the metric's own statistic, scaled": {tables: []assayv1alpha1.ReportTable{column(assayv1alpha1.ReportColumn{Title: "ms", Metric: "latency", Scale: "m"})}},
		"a statistic that a gate computes":   {tables: []assayv1alpha1.ReportTable{column(assayv1alpha1.ReportColumn{Title: "p95", Metric: "latency", Statistic: assayv1alpha1.StatisticP95})}},
		"phases and the time they make up":   {tables: []assayv1alpha1.ReportTable{{Name: "document", Rows: assayv1alpha1.PhaseRows, Total: "latency", Arms: []string{"loop"}, At: assayv1alpha1.ParameterValues{"size": "1"}}}},
		"the p95 that results show for lower-is-better metrics": {
			tables: []assayv1alpha1.ReportTable{column(assayv1alpha1.ReportColumn{Title: "p95", Metric: "time", Statistic: assayv1alpha1.StatisticP95})},
		},
		"a metric that does not exist": {
			tables: []assayv1alpha1.ReportTable{column(assayv1alpha1.ReportColumn{Title: "x", Metric: "latencyy"})},
			says:   `spec.report.tables[0].columns[0].metric: the template has no metric "latencyy"`,
		},
		"a statistic that nothing computes": {
			tables: []assayv1alpha1.ReportTable{column(assayv1alpha1.ReportColumn{Title: "x", Metric: "latency", Statistic: assayv1alpha1.StatisticP99})},
			says:   "spec.report.tables[0].columns[0].statistic: p99 of latency is not computed",
		},
		"an arm that does not exist":  {tables: []assayv1alpha1.ReportTable{{Name: "document", Rows: assayv1alpha1.PhaseRows, Arms: []string{"lop"}}}, says: `spec.report.tables[0].arms[0]: the run has no arm "lop"`},
		"an axis that does not exist": {tables: []assayv1alpha1.ReportTable{{Name: "document", Rows: assayv1alpha1.PhaseRows, At: assayv1alpha1.ParameterValues{"rows": "1"}}}, says: `spec.report.tables[0].at.rows: invalid axis "rows"`},
		"a total that is no time":     {tables: []assayv1alpha1.ReportTable{{Name: "document", Rows: assayv1alpha1.PhaseRows, Total: "throughput"}}, says: `spec.report.tables[0].total: the template has no metric "throughput" in seconds`},
		"a comparison of one arm": {
			tables: []assayv1alpha1.ReportTable{column(assayv1alpha1.ReportColumn{Title: "x", Metric: "latency", Compared: true})}, oneArm: true,
			says: "spec.report.tables[0].columns[0].compared: the run has one arm",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &assayv1alpha1.BenchmarkRunSpec{
				Sweep:  &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "size", Values: []string{"1", "2"}}}},
				Arms:   []assayv1alpha1.Arm{{Name: "loop", Baseline: true}, {Name: "fused"}},
				Gates:  []assayv1alpha1.Gate{{Name: "slow", Metric: "latency", Statistic: assayv1alpha1.StatisticP95}},
				Report: &assayv1alpha1.Report{Tables: test.tables},
			}
			if test.oneArm {
				spec.Arms = spec.Arms[:1]
			}
			points := []record.Point{{Key: "size=1", Parameters: map[string]string{"size": "1"}},
				{Key: "size=2", Parameters: map[string]string{"size": "2"}}}
			var problems Invalid
			plan := read(spec, template, &problems)
			problems.Problems = slices.DeleteFunc(problems.Problems, func(p Problem) bool { return !strings.HasPrefix(p.Field, "spec.report") })
			checkReport(spec, &Experiment{Plan: *plan, Points: points, Arms: arms(spec)}, &problems)
			said := ""
			if len(problems.Problems) > 0 {
				said = problems.Error()
			}
			if (test.says == "") != (said == "") || !strings.Contains(said, test.says) {
				t.Errorf("it says %q, and should say %q", said, test.says)
			}
		})
	}
}
