package analysis

import (
	"fmt"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// judgeGates gives every gate an outcome for every candidate it applies to, at every point it selects.
func judgeGates(d *data, parity *parityReport) []GateResult {
	out := []GateResult{}
	var tails []float64 // The p-value of each result's NoGo, for Holm's correction.
	for _, gate := range d.exp.Spec.Gates {
		for _, candidate := range d.exp.Candidates() {
			if gate.Candidate != "" && gate.Candidate != candidate {
				continue
			}
			for point := range d.exp.Points {
				if !experiment.Matches(gate.At, d.exp.Points[point].Parameters) {
					continue
				}
				result := GateResult{
					Gate: gate.Name, Candidate: candidate, Point: d.exp.Points[point].Key,
					Op: gate.Op, Severity: gate.Severity, Metric: gate.Metric, Statistic: gate.Statistic,
				}
				if gate.Op == assayv1alpha1.ParityEqual {
					judgeParity(d.exp, parity, point, &result)
					tails = append(tails, 1)
				} else {
					tails = append(tails, judgeTiming(d, parity, gate, point, &result))
				}
				out = append(out, result)
			}
		}
	}
	holm(d, out, tails)
	return out
}

func judgeParity(exp *experiment.Experiment, parity *parityReport, point int, result *GateResult) {
	arm := armIndex(exp, result.Candidate)
	switch {
	case !parity.compared:
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, "the template says that outputs cannot be compared (parity: None)"
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
	return slices.IndexFunc(exp.Spec.Arms, func(arm assayv1alpha1.Arm) bool { return arm.Name == name })
}

// judgeTiming fills in the result and returns the p-value of its NoGo.
func judgeTiming(d *data, parity *parityReport, gate assayv1alpha1.Gate, point int, result *GateResult) float64 {
	metric := d.exp.Metric(gate.Metric)
	if metric == nil {
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, fmt.Sprintf("the template has no metric %q", gate.Metric)
		return 1
	}
	if result.Statistic == "" {
		result.Statistic = metric.Statistic
	}
	relative := gate.Op == assayv1alpha1.RatioAtLeast || gate.Op == assayv1alpha1.RatioAtMost
	unit, estimateUnit := metric.Unit, metric.Unit
	if relative {
		unit, estimateUnit = "", "1"
	}
	bound, err := experiment.ParseBound(gate.Bound, unit)
	if err != nil {
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, err.Error()
		return 1
	}
	result.Bound = &bound
	if reason := parity.refused(result.Candidate); reason != "" {
		result.Outcome, result.Message = assayv1alpha1.VerdictInvalid, "not judged: "+reason
		return 1
	}

	arm := armIndex(d.exp, result.Candidate)
	var found inference
	if relative {
		found = d.ratio(point, arm, gate.Metric, result.Statistic)
	} else {
		found = d.level(quantity{cell{point, arm}, gate.Metric, result.Statistic})
	}
	result.Estimate = found.estimate(estimateUnit)
	if !found.hasInterval() || result.Estimate == nil || result.Estimate.Low == nil || result.Estimate.High == nil {
		result.Outcome = assayv1alpha1.VerdictInvalid
		result.Message = "too little valid data: " + found.reason + d.losses(point, arm, relative)
		return 1
	}
	result.MinimumDetectableEffect = found.minimumDetectableEffect(d.confidence)
	decide(found, bound, d.confidence, result)
	if result.Outcome != assayv1alpha1.VerdictNoGo {
		return 1
	}
	return found.tail(bound)
}

// decide compares the whole interval with the bound, never the estimate alone.
func decide(found inference, bound, confidence float64, result *GateResult) {
	atLeast := result.Op == assayv1alpha1.RatioAtLeast || result.Op == assayv1alpha1.AtLeast
	holds, fails := found.low >= bound, found.high < bound
	asked := "at least"
	if !atLeast {
		holds, fails = found.high <= bound, found.low > bound
		asked = "at most"
	}
	text := fmt.Sprintf("%s against %s %s", describe(result.Estimate), asked, formatNumber(bound, result.Estimate.Unit))
	switch {
	case holds:
		result.Outcome, result.Message = assayv1alpha1.VerdictGo, text+": holds over the whole interval"
	case fails:
		result.Outcome, result.Message = assayv1alpha1.VerdictNoGo, text+": missed over the whole interval"
	default:
		result.Outcome = assayv1alpha1.VerdictInconclusive
		result.MoreBlocks = found.moreBlocks(bound, (1-confidence)/2)
		result.Message = text + ": the interval spans the bound; " + furtherBlocks(result.MoreBlocks)
	}
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
		if lost := d.lost[cell{point, a}].String(); lost != "" {
			text += fmt.Sprintf("; of arm %s: %s", d.exp.Arms[a].Name, lost)
		}
	}
	return text
}
