package analysis

import (
	"fmt"
	"math"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// tails are the p-values of a gate's two decisions; 1 where there is none.
type tails struct{ goes, fails float64 }

// visitGates calls visit for every gate, candidate and point that it applies to, in a fixed order; but for those on completing,
// which look at all their points at once.
func visitGates(exp *experiment.Experiment, visit func(gate assayv1alpha1.Gate, candidate string, point int)) {
	for _, gate := range exp.Spec.Gates {
		if gate.Op == assayv1alpha1.Completes {
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
	visitGates(d.exp, func(gate assayv1alpha1.Gate, candidate string, point int) {
		result := GateResult{
			Gate: gate.Name, Candidate: candidate, Point: d.exp.Points[point].Key,
			Op: gate.Op, Severity: gate.Severity, Metric: gate.Metric, Statistic: gate.Statistic,
		}
		p := tails{1, 1}
		if gate.Op == assayv1alpha1.ParityEqual {
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
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, "outputs cannot be compared: the template has parity None, or the run PerArm"
	case parity.baseline != "":
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, parity.baseline
	case parity.wrong[result.Candidate] != "":
		result.Outcome, result.Message = assayv1alpha1.VerdictNoGo, parity.wrong[result.Candidate]
	case !parity.seen[cell{point, arm}]:
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, fmt.Sprintf("arm %s gave no output at %s", result.Candidate, pointName(result.Point))
	case exp.Baseline() >= 0 && !parity.seen[cell{point, exp.Baseline()}]:
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, fmt.Sprintf("the baseline gave no output at %s", pointName(result.Point))
	default:
		result.Outcome, result.Message = assayv1alpha1.VerdictGo, "all outputs agree"
	}
}

func armIndex(exp *experiment.Experiment, name string) int {
	return slices.IndexFunc(exp.Arms, func(arm record.Arm) bool { return arm.Name == name })
}

// judgeTiming fills in the result and returns the p-values of its decision.
func judgeTiming(d *data, parity *parityReport, gate assayv1alpha1.Gate, point int, result *GateResult) tails {
	metric := d.exp.Metric(gate.Metric)
	if metric == nil {
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, fmt.Sprintf("the template has no metric %q", gate.Metric)
		return tails{1, 1}
	}
	if result.Statistic == "" {
		result.Statistic = metric.Statistic
	}
	if why := experiment.RewardsWorse(gate.Op, gate.AllowWorse, metric); why != "" {
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, why
		return tails{1, 1}
	}
	relative := relative(gate.Op)
	unit := metric.Unit
	if relative {
		unit = ""
	}
	bound, err := experiment.ParseBound(gate.Bound, unit)
	if err != nil {
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, err.Error()
		return tails{1, 1}
	}
	result.Bound = &bound
	if reason := parity.refused(result.Candidate); reason != "" {
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, "not judged: "+reason
		return tails{1, 1}
	}

	arm := armIndex(d.exp, result.Candidate)
	if reason := d.changed(arm, relative); reason != "" {
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, reason
		return tails{1, 1}
	}
	var found inference
	mine := quantity{cell{point, arm}, gate.Metric, result.Statistic}
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
		result.Outcome = assayv1alpha1.VerdictInvalid
		result.Message = "too little valid data: " + found.reason + d.losses(point, arm, relative)
		return tails{1, 1}
	}
	result.MinimumDetectableEffect = found.minimumDetectableEffect(d.gateConfidence)
	decide(found, bound, d.gateConfidence, result)
	known.settles(d.openEnds(mine), asksAtLeast(gate.Op), result)
	switch result.Outcome {
	case assayv1alpha1.VerdictGo:
		return tails{found.tail(bound), 1}
	case assayv1alpha1.VerdictNoGo:
		return tails{1, found.tail(bound)}
	default:
		return tails{1, 1}
	}
}

// decide compares the whole interval with the bound, never the estimate alone.
func decide(found inference, bound, confidence float64, result *GateResult) {
	holds, fails, asked := atLeast(found.low, bound), below(found.high, bound), "at least"
	if !asksAtLeast(result.Op) {
		holds, fails, asked = atLeast(bound, found.high), below(bound, found.low), "at most"
	}
	text := fmt.Sprintf("%s against %s %s", describe(result.Estimate), asked, formatNumber(bound, result.Estimate.Shown()))
	switch {
	case holds:
		result.Outcome, result.Message = assayv1alpha1.VerdictGo, text+": holds over the whole interval"
	case fails:
		result.Outcome, result.Message = assayv1alpha1.VerdictNoGo, text+": missed over the whole interval"
	default:
		result.Outcome = assayv1alpha1.VerdictInconclusive
		result.MoreBlocks = found.moreBlocks(bound, (1-confidence)/2)
		further := furtherBlocks(result.MoreBlocks)
		if found.nodesDiffer {
			further = "it depends on the node, so further nodes would decide and further blocks would not"
		}
		if found.builds > 0 {
			further = fmt.Sprintf("it rests on %d builds, so further builds would decide and further blocks of the same would not", found.builds)
		}
		result.Message = text + ": the interval spans the bound; " + further
	}
}

func asksAtLeast(op assayv1alpha1.GateOperator) bool {
	return op == assayv1alpha1.RatioAtLeast || op == assayv1alpha1.AtLeast
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

// losses says what became of the trials that are missing from a gate's data.
func (d *data) losses(point, arm int, relative bool) string {
	text := ""
	arms := []int{arm}
	if baseline := d.exp.Baseline(); relative && baseline >= 0 {
		arms = append(arms, baseline)
	}
	for _, a := range arms {
		if lost := d.lost[cell{point, a}].lost; lost.total() > 0 {
			text += fmt.Sprintf("; of arm %s: %s", d.exp.Arms[a].Name, lost)
		}
	}
	return text
}
