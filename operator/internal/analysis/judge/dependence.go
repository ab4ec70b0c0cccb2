package judge

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// dependentPercentile caps gates on percentiles where the arms' medians say that blocks depend on each other: whole blocks are
// drawn as if they did not, and no method with a source widens that for so few.
func dependentPercentile(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	if experiment.Percentiles[gate.Statistic] == 0 {
		return ""
	}
	if d.Exp.Plan.Design.BlockCorrelation > 0 {
		return fmt.Sprintf("%s cannot allow for the correlation of %g that spec.design.blockCorrelation declares: judge a mean or median",
			gate.Statistic, d.Exp.Plan.Design.BlockCorrelation)
	}
	if series := seriesOf(d, gate); series != nil && series.Dependent {
		return fmt.Sprintf("the medians of its blocks depend on each other and %s cannot allow for that: judge a mean or median", gate.Statistic)
	}
	return ""
}

// seriesOf is what the medians of a percentile gate's blocks do over the run.
func seriesOf(d *estimate.Data, gate *analysis.GateResult) *analysis.BlockSeries {
	point := slices.IndexFunc(d.Exp.Points, func(p record.Point) bool { return p.Key == gate.Point })
	arm := selection.ArmIndex(d.Exp, gate.Candidate)
	if point < 0 || arm < 0 {
		return nil
	}
	if gate.Op.Relative() {
		return d.Ratio(point, arm, gate.Metric, experiment.StatisticMedian).Series
	}
	return d.Level(estimate.Quantity{Cell: selection.At(point, arm), Metric: gate.Metric, Statistic: experiment.StatisticMedian}).Series
}
