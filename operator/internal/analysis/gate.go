package analysis

import (
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// tails are the p-values of a gate's two decisions; 1 where there is none.
type tails struct{ goes, fails float64 }

// visitGates calls visit for every gate, candidate and point that it applies to, in a fixed order; but for those on completing,
// which look at all their points at once.
func visitGates(exp *experiment.Experiment, visit func(gate experiment.Gate, candidate string, point int)) {
	for _, gate := range exp.Plan.Gates {
		if gate.Op == experiment.Completes {
			continue
		}
		for _, candidate := range exp.Candidates() {
			if gate.Candidate != "" && gate.Candidate != candidate {
				continue
			}
			for point := range exp.Points {
				if experiment.Matches(gate.At, exp.Points[point].Parameters) {
					visit(gate, candidate, point)
				}
			}
		}
	}
}

// judgeGates gives every gate an outcome for every candidate it applies to, at every point it selects.
func judgeGates(d *data, parity *parityReport) ([]GateResult, []tails) {
	out, all := []GateResult{}, []tails{}
	visitGates(d.exp, func(gate experiment.Gate, candidate string, point int) {
		result := GateResult{
			Gate: gate.Name, Candidate: candidate, Point: d.exp.Points[point].Key,
			Op: gate.Op, Severity: gate.Severity, Metric: gate.Metric, Statistic: gate.Statistic,
		}
		p := tails{1, 1}
		if gate.Op == experiment.ParityEqual {
			judgeParity(d.exp, parity, point, &result)
		} else {
			p = judgeTiming(d, parity, gate, point, &result)
		}
		out, all = append(out, result), append(all, p)
	})
	for _, result := range judgeCompletes(d) {
		out, all = append(out, result), append(all, tails{1, 1})
	}
	return out, all
}

func judgeParity(exp *experiment.Experiment, parity *parityReport, point int, result *GateResult) {
	arm := armIndex(exp, result.Candidate)
	switch {
	case !parity.compared:
		result.Outcome, result.Message = experiment.VerdictInvalid, "outputs cannot be compared: the template has parity None, or the run PerArm"
	case parity.baseline != "":
		result.Outcome, result.Message = experiment.VerdictInvalid, parity.baseline
	case parity.wrong[result.Candidate] != "":
		result.Outcome, result.Message = experiment.VerdictNoGo, parity.wrong[result.Candidate]
	case !parity.seen[cell{point, arm}]:
		result.Outcome, result.Message = experiment.VerdictInvalid,
			fmt.Sprintf("arm %s gave no output at %s", result.Candidate, PointName(result.Point))
	case exp.Baseline() >= 0 && !parity.seen[cell{point, exp.Baseline()}]:
		result.Outcome, result.Message = experiment.VerdictInvalid, fmt.Sprintf("the baseline gave no output at %s", PointName(result.Point))
	default:
		result.Outcome, result.Message = experiment.VerdictGo, "all outputs agree"
	}
}

func armIndex(exp *experiment.Experiment, name string) int {
	return slices.IndexFunc(exp.Arms, func(arm record.Arm) bool { return arm.Name == name })
}

// judgeTiming fills in the result and returns the p-values of its decision.
func judgeTiming(d *data, parity *parityReport, gate experiment.Gate, point int, result *GateResult) tails {
	metric := d.exp.Metric(gate.Metric)
	if why := gate.RewardsWorse(metric); why != "" {
		result.Outcome, result.Message = experiment.VerdictInvalid, why
		return tails{1, 1}
	}
	relative, bound := gate.Op.Relative(), *gate.Bound
	result.Bound = gate.Bound
	if reason := parity.refused(result.Candidate); reason != "" {
		result.Outcome, result.Message = experiment.VerdictInvalid, "not judged: "+reason
		return tails{1, 1}
	}

	arm := armIndex(d.exp, result.Candidate)
	if reason := d.changed(arm, relative); reason != "" {
		result.Outcome, result.Message = experiment.VerdictInvalid, reason
		return tails{1, 1}
	}
	var found inference
	mine := quantityOf{cell{point, arm}, gate.Metric, result.Statistic}
	known := d.openEnds(mine)
	if relative {
		found = d.ratio(point, arm, gate.Metric, result.Statistic)
		theirs := mine
		theirs.arm = d.exp.Baseline()
		known = known.over(d.openEnds(theirs))
	} else {
		found = d.level(mine)
	}
	found = d.rarely(found, metric, result.Statistic).at(d.gateConfidence)
	result.Series, result.Resolution = found.series, found.resolution
	result.Estimate, result.Confidence = found.estimate(metric.Unit), d.gateConfidence
	if relative {
		result.Estimate = found.ratio()
	}
	if !found.hasInterval() || result.Estimate == nil || result.Estimate.Low == nil || result.Estimate.High == nil {
		result.Outcome = experiment.VerdictInvalid
		result.Message = "too little valid data: " + found.reason + d.losses(point, arm, relative)
		return tails{1, 1}
	}
	result.MinimumDetectableEffect = found.minimumDetectableEffect(d.gateConfidence)
	decide(found, bound, d.gateConfidence, result)
	known.settles(d.openEnds(mine), gate.Op.AsksAtLeast(), result)
	switch result.Outcome {
	case experiment.VerdictGo:
		return tails{found.tail(bound), 1}
	case experiment.VerdictNoGo:
		return tails{1, found.tail(bound)}
	default:
		return tails{1, 1}
	}
}

// decide compares the whole interval with the bound, never the estimate alone.
func decide(found inference, bound, confidence float64, result *GateResult) {
	holds, fails := atLeast(found.low, bound), below(found.high, bound)
	if !result.Op.AsksAtLeast() {
		holds, fails = atLeast(bound, found.high), below(bound, found.low)
	}
	text := fmt.Sprintf("%s against %s", Describe(result.Estimate), Against(result.Op, quantity.Format(bound, result.Estimate.Shown())))
	switch {
	case holds:
		result.Outcome, result.Message = experiment.VerdictGo, text+": holds over the whole interval"
	case fails:
		result.Outcome, result.Message = experiment.VerdictNoGo, text+": missed over the whole interval"
	default:
		result.Outcome = experiment.VerdictInconclusive
		result.MoreBlocks = found.moreBlocks(bound, (1-confidence)/2)
		further := furtherBlocks(result.MoreBlocks)
		if clock := found.resolution; clock != nil && clock.Widened && result.MoreBlocks == nil {
			further = fmt.Sprintf("its clock has steps of %.2g times the value, so a finer clock or longer trials would decide and further blocks "+
				"would not", clock.Relative)
		}
		if found.nodesDiffer {
			further = "it depends on the node, so further nodes would decide and further blocks would not"
		}
		if found.builds > 0 {
			further = fmt.Sprintf("it rests on %d builds, so further builds would decide and further blocks of the same would not", found.builds)
		}
		result.Message = text + ": the interval spans the bound; " + further
	}
}

// boundTolerance is how far, relative to itself, a figure may miss its bound by rounding: sums over blocks, logarithms and
// exponentials each cost a few units in the last place, and the analysis prints 12 digits (round).
const boundTolerance = 1e-11

// atLeast and below compare a figure with a bound so that one exactly at its bound never misses it by rounding.
func atLeast(value, bound float64) bool { return !below(value, bound) }

func below(value, bound float64) bool {
	return value < bound-boundTolerance*max(math.Abs(value), math.Abs(bound))
}

func furtherBlocks(more *int) string {
	if more == nil {
		return "the estimate is so close to it that no number of blocks would decide"
	}
	return fmt.Sprintf("about %d further blocks would decide", *more)
}

// losses describes what became of the trials that are missing from a gate's data.
func (d *data) losses(point, arm int, relative bool) string {
	text := ""
	arms := []int{arm}
	if baseline := d.exp.Baseline(); relative && baseline >= 0 {
		arms = append(arms, baseline)
	}
	for _, a := range arms {
		if lost := d.chosen.lost[cell{point, a}].lost; lost.total() > 0 {
			text += fmt.Sprintf("; of arm %s: %s", d.exp.Arms[a].Name, lost)
		}
	}
	return text
}
