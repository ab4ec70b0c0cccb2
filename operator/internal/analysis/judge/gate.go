package judge

import (
	"cmp"
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// tails are the p-values of a gate's two decisions; 1 without a decision.
type tails struct{ goes, fails float64 }

// judgeGates gives every gate an outcome for every candidate it applies to, at every point it selects.
func judgeGates(d *estimate.Data, parity *selection.Parity) ([]analysis.GateResult, []tails) {
	out, all := []analysis.GateResult{}, []tails{}
	selection.VisitGates(d.Exp, func(gate experiment.Gate, candidate string, point int) {
		result := analysis.GateResult{
			Gate: gate.Name, Candidate: candidate, Point: d.Exp.Points[point].Key,
			Op: gate.Op, Severity: gate.Severity, Metric: gate.Metric, Statistic: gate.Statistic,
		}
		p := tails{1, 1}
		if gate.Op == experiment.ParityEqual {
			judgeParity(d, parity, point, &result)
		} else {
			p = judgeTiming(d, parity, gate, point, &result)
		}
		out, all = append(out, result), append(all, p)
	})
	for _, result := range judgeCompletes(d) {
		unmeasured(d, &result)
		out, all = append(out, result), append(all, tails{1, 1})
	}
	return out, all
}

func judgeParity(d *estimate.Data, parity *selection.Parity, point int, result *analysis.GateResult) {
	exp := d.Exp
	arm := selection.ArmIndex(exp, result.Candidate)
	switch {
	case !parity.Compared:
		result.Outcome, result.Message = experiment.VerdictInvalid, "outputs cannot be compared: the template has parity None, or the run PerArm"
	case parity.Baseline != "":
		result.Outcome, result.Message = experiment.VerdictInvalid, parity.Baseline
	case parity.Wrong[result.Candidate] != "":
		result.Outcome, result.Message = experiment.VerdictNoGo, parity.Wrong[result.Candidate]
	case !parity.Seen[selection.At(point, arm)]:
		result.Outcome, result.Message = experiment.VerdictInvalid,
			fmt.Sprintf("arm %s has no output at %s", result.Candidate, analysis.PointName(result.Point))
	case exp.Baseline() >= 0 && !parity.Seen[selection.At(point, exp.Baseline())]:
		result.Outcome, result.Message = experiment.VerdictInvalid, "the baseline has no output at "+analysis.PointName(result.Point)
	default:
		result.Outcome, result.Message = experiment.VerdictGo, "all outputs agree"
		if why := unknownOutputs(d, arm, exp.Baseline()); why != "" {
			result.Outcome, result.Message = experiment.VerdictInconclusive, "all known outputs agree, but "+why
		}
	}
}

// unknownOutputs describes trials without an output in the ledger that did not fail. Their outputs may be the ones that differ.
func unknownOutputs(d *estimate.Data, arms ...int) string {
	for _, arm := range arms {
		if of := d.Chosen.Outputless[arm]; of.Count > 0 {
			return fmt.Sprintf("the outputs of %s of arm %s are not known (first %s)", quantity.Count(of.Count, "trial"), d.Exp.Arms[arm].Name,
				of.First)
		}
	}
	return ""
}

// judgeTiming fills in the result and returns the p-values of its decision.
func judgeTiming(d *estimate.Data, parity *selection.Parity, gate experiment.Gate, point int, result *analysis.GateResult) tails {
	metric := d.Exp.Metric(gate.Metric)
	if why := gate.RewardsWorse(metric); why != "" {
		result.Outcome, result.Message = experiment.VerdictInvalid, why
		return tails{1, 1}
	}
	relative, region := gate.Op.Relative(), gate.Region()
	result.Bound = gate.Bound
	if reason := parity.Refused(result.Candidate); reason != "" {
		result.Outcome, result.Message = experiment.VerdictInvalid, "not judged: "+reason
		return tails{1, 1}
	}

	arm := selection.ArmIndex(d.Exp, result.Candidate)
	if reason := cmp.Or(changed(d, arm, relative), otherThing(d, point, arm, gate.Metric)); reason != "" {
		result.Outcome, result.Message = experiment.VerdictInvalid, reason
		return tails{1, 1}
	}
	var found estimate.Inference
	mine := estimate.Quantity{Cell: selection.At(point, arm), Metric: gate.Metric, Statistic: result.Statistic}
	known := d.OpenEnds(mine)
	switch {
	case gate.Op.OfRatio():
		found = d.Ratio(point, arm, gate.Metric, result.Statistic)
		if math.IsInf(found.Value, 1) && found.HasInterval() {
			return judgeInfinite(found, d.GateConfidence, result)
		}
		found = d.Rarely(found, metric, result.Statistic, true)
	case gate.Op.OfDifference():
		found = d.RarelyDifferent(d.Difference(point, arm, gate.Metric, result.Statistic), mine)
	default:
		found = d.Rarely(d.Level(mine), metric, result.Statistic, false)
	}
	if relative {
		theirs := mine
		theirs.Arm = d.Exp.Baseline()
		known = known.Over(d.OpenEnds(theirs))
	}
	found = found.At(d.GateConfidence)
	result.Series, result.Resolution = found.Series, found.Resolution
	result.Estimate, result.Confidence = found.Estimate(metric.Unit), d.GateConfidence
	if gate.Op.OfRatio() {
		result.Estimate = found.Ratio()
	}
	if found.NoRatio {
		// The figures exist and have no ratio, which must not excuse the outcomes of other gates.
		result.Outcome, result.Message = experiment.VerdictInconclusive, found.Reason+losses(d, point, arm, relative)
		return tails{1, 1}
	}
	if !found.HasInterval() || result.Estimate == nil || result.Estimate.Low == nil || result.Estimate.High == nil {
		result.Outcome = experiment.VerdictInvalid
		result.Message = "too little valid data: " + found.Reason + losses(d, point, arm, relative)
		return tails{1, 1}
	}
	if !gate.Op.OfDifference() { // An effect is relative to the figure, and a difference may be 0.
		result.MinimumDetectableEffect = found.MinimumDetectableEffect(d.GateConfidence)
	}
	result.Room = room(found, region)
	side := decide(d.Exp, found, d.GateConfidence, result)
	if found.Note != "" {
		result.Message += "; " + found.Note
	}
	if gate.Op.OfRatio() && experiment.Percentiles[result.Statistic] == 0 {
		result.Message += atEqualPredecessors(d, found, mine, region, result)
	}
	settles(known, d.OpenEnds(mine), region, side, result)
	switch {
	case result.Outcome == experiment.VerdictGo && !experiment.Below(found.Low, found.High):
		// An interval that differs by rounding alone decides at every confidence, also at the bound.
		return tails{0, 1}
	case result.Outcome == experiment.VerdictGo:
		// Both ends have to be excluded, so the larger tail counts.
		goes := 0.0
		for _, end := range region.Ends() {
			goes = max(goes, found.Tail(end))
		}
		return tails{goes, 1}
	case result.Outcome == experiment.VerdictNoGo:
		return tails{1, found.Tail(region.Nearest(found.Low))}
	default:
		return tails{1, 1}
	}
}

// room returns the distance of the estimate from the nearest end of the region in standard errors, negative outside of the region. It is
// nil without a spread of blocks.
func room(found estimate.Inference, region experiment.Region) *float64 {
	at, nearest := found.Scale(found.Value), math.Inf(1)
	if end := region.Low; !math.IsInf(end, 0) {
		nearest = min(nearest, at-found.Scale(end))
	}
	if end := region.High; !math.IsInf(end, 0) {
		nearest = min(nearest, found.Scale(end)-at)
	}
	return stats.Finite(nearest / found.SE)
}

// judgeInfinite decides a gate on a count that is 0 for the baseline alone. There is no estimate of the ratio, which is on one side of any
// bound.
func judgeInfinite(found estimate.Inference, confidence float64, result *analysis.GateResult) tails {
	result.Confidence = confidence
	asked := result.Op.Against(quantity.Format(*result.Bound, quantity.Times))
	if math.IsInf(result.Condition().Region().High, 1) {
		result.Outcome, result.Message = experiment.VerdictGo, fmt.Sprintf("%s, against %s: holds", found.Note, asked)
		return tails{0, 1}
	}
	result.Outcome, result.Message = experiment.VerdictNoGo, fmt.Sprintf("%s, against %s: missed", found.Note, asked)
	return tails{1, 0}
}

// decide compares the whole interval with the region in which the gate holds, never the estimate alone. It sets the outcome and the
// message of the result and returns the side of the region that the interval is on.
func decide(exp *experiment.Experiment, found estimate.Inference, confidence float64, result *analysis.GateResult) experiment.Side {
	region := result.Condition().Region()
	side := region.Side(found.Low, found.High)
	asked := result.Op.Against(quantity.Format(*result.Bound, result.Estimate.Shown()))
	text := analysis.Describe(result.Estimate)
	if result.Op.OfDifference() {
		text += analysis.MoreThan(exp)
	}
	text += " against " + asked
	switch side {
	case experiment.Inside:
		result.Outcome, result.Message = experiment.VerdictGo, text+": holds over the whole interval"
	case experiment.Under, experiment.Over:
		result.Outcome, result.Message = experiment.VerdictNoGo, text+": missed over the whole interval"
	case experiment.Spans:
		result.Outcome = experiment.VerdictInconclusive
		result.MoreBlocks = found.MoreBlocks(region.Nearest(result.Estimate.Value), (1-confidence)/2)
		further := "the estimate is too close to it for any number of blocks to decide"
		switch clock := found.Resolution; {
		case found.Builds > 0:
			further = fmt.Sprintf("it rests on %d builds, so further builds would decide and further blocks of the same would not", found.Builds)
		case found.NodesDiffer:
			further = "it depends on the node, so further nodes would decide and further blocks would not"
		case result.MoreBlocks != nil:
			further = fmt.Sprintf("about %d further blocks would decide", *result.MoreBlocks)
		case clock != nil && clock.Widened:
			further = fmt.Sprintf("its clock has steps of %s times the value, so a finer clock or longer trials would decide and further blocks "+
				"would not", quantity.Plain(clock.Relative, 2))
		}
		result.Message = text + ": the interval spans the bound; " + further
	}
	return side
}

// wallTime is the time of a process by the runner's clock.
const wallTime = record.ProcessPrefix + "wallTime"

// changed describes how an arm that a gate depends on did not run one program throughout; it returns "" otherwise.
func changed(d *estimate.Data, candidate int, relative bool) string {
	for _, arm := range restsOn(d, candidate, relative) {
		if how := d.Chosen.Changed[arm]; how != "" {
			return fmt.Sprintf("arm %s changed during the run: %s; name its image by digest, build nothing while it runs, and run again",
				d.Exp.Arms[arm].Name, how)
		}
	}
	return ""
}

// otherThing describes how an arm measured another thing than the baseline; it returns "" otherwise.
func otherThing(d *estimate.Data, point, arm int, metric string) string {
	baseline := d.Exp.Baseline()
	if baseline < 0 {
		return ""
	}
	return cmp.Or(ContradictsBaseline(d, arm), d.Chosen.Reports.Differ(d.Exp, point, arm, baseline, metric),
		d.Chosen.Reports.Unmeasured(d.Exp, point, arm, baseline))
}

// ContradictsBaseline describes how an arm that should run the baseline's program reports another workload; it returns "" otherwise.
func ContradictsBaseline(d *estimate.Data, arm int) string {
	if found := d.Chosen.OtherWorkloads[arm]; found.SameProgram {
		return found.Text + ", although the plan gives both the same program"
	}
	return ""
}

// unmeasured changes NoGo to Invalid for a candidate whose results have the required metrics under other names or in other units than
// the baseline's, because then none of its trials failed by itself.
func unmeasured(d *estimate.Data, result *analysis.GateResult) {
	if result.Outcome != experiment.VerdictNoGo || d.Exp.Baseline() < 0 {
		return
	}
	arm := selection.ArmIndex(d.Exp, result.Candidate)
	for point := range d.Exp.Points {
		if why := d.Chosen.Reports.Unmeasured(d.Exp, point, arm, d.Exp.Baseline()); why != "" {
			result.Outcome, result.Message = experiment.VerdictInvalid, why
			return
		}
	}
}

// losses describes the trials that are missing from a gate's data.
func losses(d *estimate.Data, point, arm int, relative bool) string {
	text := ""
	for _, a := range restsOn(d, arm, relative) {
		if lost := d.Chosen.Lost.Cells[selection.At(point, a)].Lost; lost.Total() > 0 {
			text += fmt.Sprintf("; of arm %s: %s", d.Exp.Arms[a].Name, lost)
		}
	}
	return text
}

// settles withdraws a decision that a timeout may reverse, because only a bound of the figure is known then. A gate is never met by such
// a figure, since the program's own reports need not cover the time in which it hung, and neither need those of the baseline. The wall
// time that the runner measures covers it.
func settles(o, candidate estimate.Open, region experiment.Region, side experiment.Side, result *analysis.GateResult) {
	unsafe := false
	switch side {
	case experiment.Inside:
		unsafe = o.Lower && !math.IsInf(region.Low, -1) || o.Higher && !math.IsInf(region.High, 1)
	case experiment.Under:
		unsafe = o.Higher
	case experiment.Over:
		unsafe = o.Lower
	case experiment.Spans:
	}
	holds := result.Outcome == experiment.VerdictGo
	rests := candidate != estimate.Open{} || result.Metric != wallTime && o != estimate.Open{}
	if !Decisive(result.Outcome) || !unsafe && !(holds && rests) {
		return
	}
	result.Message = fmt.Sprintf("%s, but trials timed out, and only a bound of their result is known, so this is not yet %s", result.Message,
		result.Outcome)
	result.Outcome = experiment.VerdictInconclusive
}
