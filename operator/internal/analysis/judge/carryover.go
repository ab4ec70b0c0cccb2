package judge

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// withoutVisits doubts every decision on figures of a run whose arms never follow themselves: an effect of an arm on the trial after it is
// then confounded with the effect of the arms.
func withoutVisits(d *estimate.Data, _ *judgement, _ *analysis.GateResult) string {
	if d.Chosen.Without == "" {
		return ""
	}
	return d.Chosen.Without + ", so an effect of one arm on the next trial and the effect of the arms are confounded"
}

// lingering doubts a decision that the rest of a longer carry-over could change.
func lingering(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	if !gate.Op.OfRatio() || experiment.Percentiles[gate.Statistic] != 0 || gate.Estimate == nil || gate.Estimate.Low == nil ||
		gate.Estimate.High == nil {
		return ""
	}
	mine := estimate.Quantity{Cell: selection.At(pointOf(d, gate), selection.ArmIndex(d.Exp, gate.Candidate)), Metric: gate.Metric,
		Statistic: gate.Statistic}
	theirs := mine
	theirs.Arm = d.Exp.Baseline()
	bias, _ := d.Lingering(mine, theirs, 1)
	low, high := *gate.Estimate.Low, *gate.Estimate.High
	region, reach := gate.Condition().Region(), math.Exp(bias)
	if region.Side(low/reach, high*reach) == region.Side(low, high) {
		return ""
	}
	return "the arms differ in the effect of another arm before them, which may last longer than the one trial that is left out: its rest " +
		"could change the decision, and longer trials or more blocks would exclude it"
}

// atEqualPredecessors describes how a decision about arms that follow themselves differs from one about arms that follow the same arms, and
// the arm that makes the difference; "" if they do not differ.
func atEqualPredecessors(d *estimate.Data, found estimate.Inference, mine estimate.Quantity, region experiment.Region,
	result *analysis.GateResult) string {
	theirs := mine
	theirs.Arm = d.Exp.Baseline()
	equal, differs := d.AtEqualPredecessors(found, mine, theirs)
	if !differs || region.Side(equal.Low, equal.High) == region.Side(found.Low, found.High) {
		return ""
	}
	changes, by := 0, 0.0
	for _, arm := range []int{mine.Arm, theirs.Arm} {
		if after := d.After(mine.Point, arm, mine.Metric, mine.Statistic); after.HasInterval() && math.Abs(math.Log(after.Value)) >= by {
			changes, by = arm, math.Abs(math.Log(after.Value))
		}
	}
	after := d.After(mine.Point, changes, mine.Metric, mine.Statistic)
	return fmt.Sprintf("; each arm follows itself here, and with the same arm before both the ratio is %s: arm %s changes the machine for "+
		"the next trial (%s %s of another arm after it, relative to that arm after itself)", analysis.Describe(equal.Ratio()),
		d.Exp.Arms[changes].Name, analysis.Describe(after.Ratio()), result.Metric)
}
