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

// A noise limit may narrow a verdict's interval and must not change the verdict. Excluding trials by a reading trusts the reading, and
// a program that can cause it could exclude its slow trials. So every gate is judged without and with the rejected trials, and both
// outcomes decide together.

// UnevenLevel is the significance at which a difference between two arms' rejected trials is no longer chance.
const UnevenLevel = 0.05

// judgeRecomputed adds to every gate on times its outcome with the rejected trials, and with other environments. It adds nothing if the run
// has no such trials.
func judgeRecomputed(d *estimate.Data, parity *selection.Parity, gates []analysis.GateResult) {
	judgeAgain := func(more *estimate.Data, add func(gate *analysis.GateResult, again *analysis.Recomputed)) {
		if more == nil {
			return
		}
		again, p := judgeGates(more, parity)
		holm(more, again, p)
		for i := range gates {
			if gates[i].Op.Timed() {
				// The same gates, candidates and points were judged, in the same order.
				add(&gates[i], recompute(d, more, &gates[i], &again[i]))
			}
		}
	}
	judgeAgain(d.Everything, func(gate *analysis.GateResult, again *analysis.Recomputed) { gate.WithRejected = again })
	judgeAgain(d.Everywhere, func(gate *analysis.GateResult, again *analysis.Recomputed) { gate.Everywhere = again })
}

// recompute returns the outcome of a gate recomputed with more trials.
func recompute(d, more *estimate.Data, gate, again *analysis.GateResult) *analysis.Recomputed {
	out := &analysis.Recomputed{Outcome: again.Outcome, Without: gate.Outcome, Estimate: again.Estimate}
	point := pointOf(d, gate)
	for _, arm := range gateArms(d, gate) {
		c := selection.At(point, arm)
		out.Rejected += len(more.Trials[c]) - len(d.Trials[c])
	}
	return out
}

// environmentDecides doubts a gate with another outcome if other environments count, each as a node. The environment with the most
// trials must not decide.
func environmentDecides(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	again := gate.Everywhere
	if again == nil || again.Outcome == gate.Outcome {
		return ""
	}
	found := ""
	if again.Estimate != nil && again.Estimate.Low != nil && again.Estimate.High != nil {
		found = analysis.Describe(again.Estimate) + ", "
	}
	return fmt.Sprintf("with the %s of other environments (%s), each of which counts as a node, it is %s%s",
		quantity.Count(again.Rejected, "trial"), d.Chosen.OtherKeys, found, again.Outcome)
}

// gateArms returns the arms that a gate depends on: its candidate, and for a relative gate the baseline.
func gateArms(d *estimate.Data, gate *analysis.GateResult) []int {
	return restsOn(d, selection.ArmIndex(d.Exp, gate.Candidate), gate.Op.Relative())
}

// restsOn returns an arm, and the baseline for a relative comparison.
func restsOn(d *estimate.Data, arm int, relative bool) []int {
	if baseline := d.Exp.Baseline(); relative && baseline >= 0 {
		return []int{arm, baseline}
	}
	return []int{arm}
}

// pointOf returns the index of a gate's point in the experiment.
func pointOf(d *estimate.Data, gate *analysis.GateResult) int {
	return slices.IndexFunc(d.Exp.Points, func(p record.Point) bool { return p.Key == gate.Point })
}

// rejectionDecides doubts a gate that depends on the exclusion of trials. With all trials the gate may be less certain, as a neighbour
// widens its interval, but its estimate must not have moved: an interval around that estimate, as wide as the one without the rejected
// trials, must lie on the same side of the bound.
func rejectionDecides(_ *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	again := gate.WithRejected
	if again == nil || again.Outcome == gate.Outcome {
		return ""
	}
	with := "with the " + quantity.Count(again.Rejected, "trial") + " that noise limits leave out it is "
	if again.Estimate == nil || again.Estimate.Low == nil || again.Estimate.High == nil {
		return with + string(again.Outcome)
	}
	with += fmt.Sprintf("%s, %s", analysis.Describe(again.Estimate), again.Outcome)
	if Decisive(again.Outcome) {
		return with
	}
	low, high := recentred(gate.Estimate, again.Estimate.Value)
	side := gate.Condition().Region().Exact(low, high)
	if holds := gate.Outcome == experiment.VerdictGo; side != experiment.Spans && holds == (side == experiment.Inside) {
		return ""
	}
	return with + ", so their exclusion would decide"
}

// recentred moves an interval to another estimate, by a factor if all values are positive (ratios and times) and otherwise by a
// difference.
func recentred(e *analysis.Estimate, value float64) (low, high float64) {
	if *e.Low > 0 && value > 0 {
		by := value / e.Value
		return *e.Low * by, *e.High * by
	}
	by := value - e.Value
	return *e.Low + by, *e.High + by
}

// rejectedUnevenly doubts a gate whose candidate lost trials to noise limits at another rate than the baseline, at its point or over
// all points, because a neighbour does not select arms. Interference beside only one of the two arms may be caused by the arm. If the
// outcome is the same with every trial counted, the exclusion changed nothing, and a warning is enough.
func rejectedUnevenly(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	baseline, arm := d.Exp.Baseline(), selection.ArmIndex(d.Exp, gate.Candidate)
	if gate.WithRejected == nil || gate.WithRejected.Outcome == gate.Outcome || baseline < 0 || arm == baseline {
		return ""
	}
	over := func(points ...int) (sum stats.Table) {
		for _, point := range points {
			mine, theirs := selection.At(point, arm), selection.At(point, baseline)
			sum.A += d.Rejected[mine]
			sum.OfA += d.Rejected[mine] + len(d.Trials[mine])
			sum.B += d.Rejected[theirs]
			sum.OfB += d.Rejected[theirs] + len(d.Trials[theirs])
		}
		return sum
	}
	// Each point is a separate chance for an accidental difference.
	every, tables := make([]int, len(d.Exp.Points)), make([]stats.Table, len(d.Exp.Points))
	for point := range every {
		every[point], tables[point] = point, over(point)
	}
	for _, look := range []struct {
		where string
		found stats.Table
		level float64
	}{
		{"over all points", over(every...), UnevenLevel},
		{"at " + analysis.PointName(gate.Point), tables[pointOf(d, gate)], stats.Shared(UnevenLevel, tables)},
	} {
		if t := look.found; t.P() <= look.level || (t.A == 0) != (t.B == 0) {
			return fmt.Sprintf("noise limits leave out %d of %d trials of %s and %d of %d of %s %s (Fisher's exact test, p = %s), and with "+
				"them it is %s",
				t.A, t.OfA, gate.Candidate, t.B, t.OfB, d.Exp.Arms[baseline].Name, look.where, quantity.Plain(t.P(), 2),
				gate.WithRejected.Outcome)
		}
	}
	return ""
}
