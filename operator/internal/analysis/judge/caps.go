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

// doubt is a rule that looks at one set of blocks and says why it doubts a gate; empty where it does not.
type doubt struct {
	reason analysis.CapReason
	of     func(d *estimate.Data, j *judgement, gate *analysis.GateResult) string
	asked  asked
	// without applies the rule to all arms, independent of the run's gates (see Doubts), or names the reason why it does not apply.
	without func(f *doubts, as analysis.CapReason)
}

// asked selects the gates that a rule applies to.
type asked int

const (
	// always: the finding does not depend on the figures.
	always asked = iota
	// ofDecisions: the rule applies only to gates with a decision.
	ofDecisions
	// exceptNoGo: the missing evidence could have prevented a Go, and could not have made a gate look worse.
	exceptNoGo
)

// caps are the findings that leave a gate at most Inconclusive, in the order in which their reasons are written.
var caps = []doubt{
	{analysis.CapControlMoved, ofControl(moved, "so a difference of this size occurs without the change"), always, ofControls(moved)},
	{analysis.CapControlMissing, ofControl(missing, "so an effect other than the change cannot be excluded"), exceptNoGo,
		ofControls(missing)},
	{analysis.CapBaselineIncomplete, brokenBaseline, always, (*doubts).ofCompleting},
	{analysis.CapSeparated, separated, always, ofRun(func(d *estimate.Data) string { return d.Chosen.Separated })},
	ofPairs(analysis.CapMeasuredUnlike, unlike),
	{analysis.CapOtherComposition, otherComposition, always, (*doubts).ofOtherComposition},
	{analysis.CapSamples, unpromised, exceptNoGo, unasked("it concerns levels, and arms are compared by ratios")},
	{analysis.CapOutvoted, outvoted, ofDecisions, unasked("it concerns percentiles, which have no value per block")},
	{analysis.CapPartlyRead, partlyRead, always, (*doubts).ofPartlyRead},
	{analysis.CapLostApart, lostApart, always, (*doubts).ofLosses},
	{analysis.CapEvidenceMissing, missingWave, always, ofRun(func(d *estimate.Data) string { return missingWave(d, nil, nil) })},
	{analysis.CapCopied, copiedTrials, always, ofRun(func(d *estimate.Data) string { return copiedTrials(d, nil, nil) })},
	{analysis.CapUnknownKills, unknownKills, always, ofArms(mayHaveBeenKilled)},
	{analysis.CapEnvironment, environmentDecides, ofDecisions, unasked("package contrast checks whether the figure changes")},
	{analysis.CapRejectedUnevenly, rejectedUnevenly, ofDecisions, unasked("package contrast checks whether the figure changes")},
	{analysis.CapRejectionDecides, rejectionDecides, ofDecisions, unasked("package contrast checks whether the figure changes")},
	{analysis.CapSequential, sequentialOrder, always, ofRun(func(d *estimate.Data) string { return sequentialOrder(d, nil, nil) })},
	ofPairs(analysis.CapOnePlace, placed),
	{analysis.CapNoVisits, withoutVisits, always, ofRun(func(d *estimate.Data) string { return withoutVisits(d, nil, nil) })},
	{analysis.CapCarryOver, lingering, ofDecisions, (*doubts).ofLingering},
	{analysis.CapDependent, dependentPercentile, always, unasked("it concerns percentiles, which have no value per block")},
	{analysis.CapCorrelation, fewForCorrelation, always, unasked("package contrast counts the blocks that its arms share")},
	{analysis.CapFewBlocks, fewBlocks, exceptNoGo, unasked("an estimate has its error")},
}

// ofEvidence are the caps on outputs and completion, for evidence that is incomplete or copied.
var ofEvidence = []analysis.CapReason{analysis.CapEvidenceMissing, analysis.CapCopied}

// capGates changes every gate that a finding doubts to Inconclusive. It records all findings, including those on gates without a
// decision, because users who follow a figure through many runs need them. Outputs that differ and trials that failed are facts, which
// only a baseline that fails too caps.
func capGates(d *estimate.Data, j *judgement) {
	for i := range j.gates {
		gate := &j.gates[i]
		if gate.Outcome == experiment.VerdictInvalid {
			continue
		}
		for _, one := range caps {
			if !one.concerns(gate) {
				continue
			}
			if why := one.of(d, j, gate); why != "" {
				gate.Caps = append(gate.Caps, analysis.Cap{Reason: one.reason, Detail: why})
			}
		}
		if Decisive(gate.Outcome) && len(gate.Caps) > 0 {
			gate.Message = fmt.Sprintf("%s, but %s, so this is not yet %s", gate.Message, gate.Caps[0].Detail, gate.Outcome)
			gate.Outcome = experiment.VerdictInconclusive
		}
	}
}

// concerns reports whether the rule applies to a gate with its outcome.
func (r doubt) concerns(gate *analysis.GateResult) bool {
	switch {
	case r.asked == ofDecisions && !Decisive(gate.Outcome), r.asked == exceptNoGo && gate.Outcome == experiment.VerdictNoGo:
		return false
	case gate.Op.Timed():
		return true
	case gate.Outcome == experiment.VerdictGo:
		return slices.Contains(ofEvidence, r.reason)
	default:
		return gate.Outcome == experiment.VerdictNoGo && r.reason == analysis.CapBaselineIncomplete
	}
}

// fewBlocks doubts a Go of fewer blocks than the design asks for, because the missing blocks may have been selected by their results.
// Trials that failed, that noise limits reject or that had another environment did run; other rules cover them.
func fewBlocks(d *estimate.Data, j *judgement, gate *analysis.GateResult) string {
	for _, arm := range gateArms(d, gate) {
		if ran := len(j.ran[selection.At(pointOf(d, gate), arm)]); ran < j.least {
			return fmt.Sprintf("arm %s ran in %s and %s asks for at least %d", d.Exp.Arms[arm].Name, quantity.Count(ran, "block"), j.asks, j.least)
		}
	}
	return ""
}

// sequentialOrder doubts every decision of a run whose arms kept their places in the block. Effects of the place (warm-up, throttling,
// a periodic neighbour) are then confounded with the arm, and no number of blocks separates them.
func sequentialOrder(d *estimate.Data, _ *judgement, _ *analysis.GateResult) string {
	if d.Exp.Plan.Design.Order != experiment.OrderSequential || len(d.Exp.Arms) < 2 {
		return ""
	}
	return "every block ran the arms in the same order (spec.design.order: Sequential), so effects of the place and of the arm are confounded"
}

// placeConfidence is the confidence at which an arm ran before the other more often than chance explains.
const placeConfidence = 0.99

// placed describes an imbalance of two arms' places: one ran before the other in more blocks than chance explains. It counts the order
// of the plan and of the attempts, because the design may name another one. It returns "" for balanced arms; in fewer than eight
// blocks chance explains every order. The comparison is one of several that share the level.
func placed(d *estimate.Data, point, mine, theirs int, comparisons float64) string {
	earlier, later := d.Before(point, mine, theirs)
	low, high := stats.ShareLimits(earlier, earlier+later, 1-(1-placeConfidence)/comparisons)
	first, second, count := mine, theirs, earlier
	if later > earlier {
		first, second, count = theirs, mine, later
	}
	if low <= 0.5 && high >= 0.5 {
		return ""
	}
	return fmt.Sprintf("arm %s ran before arm %s in %d of %d blocks, so effects of the place and of the arm are confounded",
		d.Exp.Arms[first].Name, d.Exp.Arms[second].Name, count, earlier+later)
}

// copiedTrials doubts every decision that counts one process as several.
func copiedTrials(d *estimate.Data, _ *judgement, _ *analysis.GateResult) string {
	return d.Chosen.Copied
}

// separated doubts relative gates when the trials of a block did not run under the same conditions.
func separated(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	if !gate.Op.Relative() {
		return ""
	}
	return d.Chosen.Separated
}

// missingWave names a part of the evidence that is missing or altered, because complete evidence may lead to another verdict.
func missingWave(d *estimate.Data, _ *judgement, _ *analysis.GateResult) string {
	switch {
	case len(d.Chosen.Gaps) > 0:
		return fmt.Sprintf("%s is missing, cannot be read or contradicts the experiment", d.Chosen.Gaps[0])
	case len(d.Chosen.Altered) > 0:
		return fmt.Sprintf("%s was present in an earlier analysis, and is missing or changed", d.Chosen.Altered[0])
	}
	return ""
}

// partlyRead doubts gates on a process quantity that the runner read in a part of an arm's trials. The trials without a reading may be
// the slow ones, or those with the least use.
func partlyRead(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	point := pointOf(d, gate)
	if _, of := record.FindProcessQuantity(gate.Metric); of == nil {
		return ""
	}
	if d.Everything != nil {
		d = d.Everything
	}
	for _, arm := range gateArms(d, gate) {
		trials, read := d.Trials[selection.At(point, arm)], 0
		for _, attempt := range trials {
			if _, ok := attempt.Metric(gate.Metric); ok {
				read++
			}
		}
		if 0 < read && read < len(trials) {
			return fmt.Sprintf("%s has no value in %d of %s of arm %s and one in %d, and the missing values are unknown", gate.Metric,
				len(trials)-read, quantity.Count(len(trials), "trial"), d.Exp.Arms[arm].Name, read)
		}
	}
	return ""
}

// lossLevel is the significance at which a difference in lost trials doubts a candidate's gates. It is not part of a verdict's level:
// a false alarm costs a decision, while a missed difference may reverse one, so it is far above a gate's. Half of it is for all points
// together. The other half is shared among the points with enough losses for the arms to differ; points without losses hide nothing.
const lossLevel = 0.05

// lostApart describes losses of a candidate and the baseline that differ so much that the remaining trials are not comparable. Losses
// of another arm do not excuse a gate on one arm.
func lostApart(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	point, arm := pointOf(d, gate), selection.ArmIndex(d.Exp, gate.Candidate)
	why := lostDifferently(d, gate.Metric, point, arm, d.Exp.Baseline(), 1)
	if why == "" && !gate.Op.Relative() {
		why = lostDifferently(d, gate.Metric, point, arm, -1, 1)
	}
	return why
}

// lostDifferently compares the losses of two arms, at a point and over all points. Without another arm (-1) nothing attributes the
// losses to the machine, so they are compared with as many trials without losses. The comparison is one of several that share the
// level.
func lostDifferently(d *estimate.Data, metric string, point, mine, theirs int, comparisons float64) string {
	// Both the gate's point and all points together are tested, because small losses at every point may also differ.
	pair := func(a, b selection.Balance) [2]selection.Balance {
		if theirs < 0 {
			a = a.OfArm()
			b = selection.Balance{Of: a.Of}
		}
		return [2]selection.Balance{a, b}
	}
	at := func(p int) [2]selection.Balance {
		return pair(d.Chosen.Lost.Cells[selection.At(p, mine)], d.Chosen.Lost.Cells[selection.At(p, theirs)])
	}
	// Timeouts are part of the figures that they censor.
	higher, lower := d.Censors(metric)
	table := func(pair [2]selection.Balance) stats.Table {
		return stats.Table{
			A: pair[0].Besides(higher || lower), OfA: pair[0].Of, B: pair[1].Besides(higher || lower), OfB: pair[1].Of,
		}
	}
	here, level := at(point), lossLevel/comparisons
	describe := func(where string, pair [2]selection.Balance, level float64) string {
		p := d.Chosen.Lost.P(table(pair))
		if p > level {
			return ""
		}
		other := "the baseline"
		if theirs < 0 {
			other = "as many of no arm"
		} else if experiment.RoleOf(d.Exp.Arms[theirs]) != experiment.RoleBaseline {
			other = "arm " + d.Exp.Arms[theirs].Name
		}
		return fmt.Sprintf("%s arm %s lost %s, and %s %s (Fisher's exact test: p = %s), so the remaining trials may not be comparable",
			where, d.Exp.Arms[mine].Name, pair[0], other, pair[1], quantity.Plain(p, 2))
	}
	where := "at " + analysis.PointName(d.Exp.Points[point].Key)
	switch {
	case d.Exp.Plan.Search != nil:
		// Loads are not repetitions of each other, so losses of another arm at one load are neither an excuse nor a finding.
		if here[0].Lost.Total()*here[1].Of <= here[1].Lost.Total()*here[0].Of {
			return ""
		}
		return describe(where, here, level)
	case len(d.Exp.Points) == 1:
		return describe(where, here, level)
	}
	if d.Chosen.Lost.P(table(here)) <= level/2 { // A larger value cannot reach a share of the level.
		tables := make([]stats.Table, len(d.Exp.Points))
		for p := range tables {
			tables[p] = table(at(p))
		}
		if why := describe(where, here, stats.Shared(level/2, tables)); why != "" {
			return why
		}
	}
	return describe("at all points", pair(d.Chosen.Lost.OfArm(mine), d.Chosen.Lost.OfArm(theirs)), level/2)
}

// dependentPercentile caps gates on percentiles when the medians of the arms show that blocks depend on each other. The bootstrap draws
// whole blocks independently, and no published method widens its interval for this few blocks.
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

// fewForCorrelation doubts gates with too few blocks for the correlation that the design declares, because their interval assumes
// independent blocks.
func fewForCorrelation(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	if gate.Estimate == nil {
		return ""
	}
	return d.FewForCorrelation(gate.Estimate.Blocks)
}

// seriesOf returns the serial correlation of the block medians of a percentile gate.
func seriesOf(d *estimate.Data, gate *analysis.GateResult) *analysis.BlockSeries {
	point := pointOf(d, gate)
	arm := selection.ArmIndex(d.Exp, gate.Candidate)
	switch {
	case gate.Op.OfRatio():
		return d.Ratio(point, arm, gate.Metric, experiment.StatisticMedian).Series
	case gate.Op.OfDifference():
		return d.Difference(point, arm, gate.Metric, experiment.StatisticMedian).Series
	}
	return d.Level(estimate.Quantity{Cell: selection.At(point, arm), Metric: gate.Metric, Statistic: experiment.StatisticMedian}).Series
}
