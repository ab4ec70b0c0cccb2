package judge

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// caps are the findings that leave a gate at most Inconclusive, in the order in which their reasons are written. Each looks at
// one set of blocks and says why it doubts a gate's decision; empty where it does not.
var caps = []func(d *estimate.Data, j *judgement, gate *analysis.GateResult) string{
	movedControl,
	brokenBaseline,
	lostApart,
	missingWave,
	apart,
	otherWorkload,
	rejectedUnevenly,
	rejectionDecides,
	sequentialOrder,
	dependentPercentile,
}

// capGates takes the decision from every gate that a finding doubts. Outputs that differ, differ, and trials that failed, failed:
// nothing caps those.
func capGates(d *estimate.Data, j *judgement) {
	for i := range j.gates {
		gate := &j.gates[i]
		for _, doubt := range caps {
			if !gate.Op.Timed() || !Decisive(gate.Outcome) {
				break
			}
			if why := doubt(d, j, gate); why != "" {
				gate.Message = fmt.Sprintf("%s, but %s, so this is not yet %s", gate.Message, why, gate.Outcome)
				gate.Outcome = experiment.VerdictInconclusive
			}
		}
	}
}

// sequentialOrder doubts every decision of a run whose arms kept their places in the block: what the place does to a trial
// (warming, throttling, a neighbour's rhythm) then looks like the arm, and no number of blocks separates them.
func sequentialOrder(d *estimate.Data, _ *judgement, _ *analysis.GateResult) string {
	if d.Exp.Plan.Design.Order != experiment.OrderSequential || len(d.Exp.Arms) < 2 {
		return ""
	}
	return "every block ran the arms in the same order (spec.design.order: Sequential), so that what their place does looks like what they do"
}

// apart doubts gates of blocks whose trials were no neighbours.
func apart(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	if !gate.Op.Relative() {
		return ""
	}
	return d.Chosen.Apart
}

// missingWave names a part of the evidence that is not there: a verdict from the rest of it might be another one.
func missingWave(d *estimate.Data, _ *judgement, _ *analysis.GateResult) string {
	if len(d.Chosen.Gaps) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is missing, cannot be read or contradicts the experiment", d.Chosen.Gaps[0])
}

// otherWorkload doubts every decision on an arm that ran the baseline's program and reports another workload.
func otherWorkload(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	return ContradictsBaseline(d, selection.ArmIndex(d.Exp, gate.Candidate))
}

// ContradictsBaseline says how an arm that is to run the baseline's program reports another workload; empty where it does not.
func ContradictsBaseline(d *estimate.Data, arm int) string {
	if found := d.Chosen.Strangers[arm]; found.Planned {
		return found.Says + ", and the plan has both run one program"
	}
	return ""
}

// lossLevel is how surprising it must be that two arms lost so differently before a candidate's gates are doubted. It is no part of
// any verdict's level: a false alarm costs a decision, and a difference overlooked may turn one, so that it is far above a gate's.
// It is shared among the points at which a candidate is judged and all of them together.
const lossLevel = 0.05

// lostApart describes how a candidate and the baseline lost trials so differently that what is left cannot be compared.
func lostApart(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	baseline, arm := d.Exp.Baseline(), selection.ArmIndex(d.Exp, gate.Candidate)
	if baseline < 0 {
		return ""
	}
	// The gate's own point, and all points together: a little everywhere may be as telling.
	here, everywhere := [2]selection.Balance{}, [2]selection.Balance{}
	for point := range d.Exp.Points {
		for side, a := range []int{arm, baseline} {
			everywhere[side].Add(d.Chosen.Lost[selection.At(point, a)])
			if d.Exp.Points[point].Key == gate.Point {
				here[side].Add(d.Chosen.Lost[selection.At(point, a)])
			}
		}
	}
	// Timeouts are in the figures of what they censor.
	higher, lower := d.Censors(gate.Metric)
	places, pairs, levels := []string{"at " + analysis.PointName(gate.Point)}, [][2]selection.Balance{here}, []float64{lossLevel}
	if points := len(d.Exp.Points); points > 1 {
		places, pairs = append(places, "at all points"), append(pairs, everywhere)
		levels = []float64{lossLevel / 2 / float64(points), lossLevel / 2}
	}
	for i, pair := range pairs {
		if p := stats.Fisher(pair[0].Besides(higher || lower), pair[0].Of, pair[1].Besides(higher || lower), pair[1].Of); p <= levels[i] {
			return fmt.Sprintf("%s arm %s lost %s, and the baseline %s (Fisher's exact test: p = %s): what is left of the two may not be alike",
				places[i], gate.Candidate, pair[0], pair[1], quantity.Plain(p, 2))
		}
	}
	return ""
}

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
