package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

const undecided = "it is not decided whether "

// Headline formats the verdict as a self-contained sentence with effect, lower bound and confidence.
func Headline(exp *experiment.Experiment, result *analysis.Analysis) string {
	switch {
	case exp.Plan.Search != nil:
		return searchHeadline(result)
	case result.Verdict == "":
		return "No blocking gate decides this run: it has results and no verdict."
	}
	if result.SetupBroken != "" {
		return "The experiment measures nothing: " + result.SetupBroken + "."
	}
	lead, rest := result.Leading(), 0
	if lead == nil {
		return "The run has no candidate to judge."
	}
	for _, candidate := range result.Candidates {
		if candidate.Verdict != "" && candidate.Name != lead.Name {
			rest++
		}
	}
	text := Sentence(exp, result, lead.Name)
	switch {
	case result.Verdict == experiment.VerdictGo && len(result.BestOf) > 1:
		return "The blocks do not decide whether " + strings.Join(result.BestOf, " or ") + " is best: " + text + "."
	case result.Verdict == experiment.VerdictNoGo && rest > 0:
		return fmt.Sprintf("None of %d candidates meets the gates: %s.", rest+1, text)
	}
	if strings.HasPrefix(text, undecided) {
		text = "I" + text[1:]
	}
	return text + "."
}

// Sentence formats the verdict on one candidate, without a full stop.
func Sentence(exp *experiment.Experiment, result *analysis.Analysis, name string) string {
	i := slices.IndexFunc(result.Candidates, func(c analysis.Candidate) bool { return c.Name == name })
	if i < 0 {
		return name + " is not a candidate"
	}
	candidate := &result.Candidates[i]
	gate := decidingOf(result, candidate)
	switch {
	case gate == nil:
		return name + ": " + reasonOf(result, candidate)
	case candidate.Verdict == experiment.VerdictGo:
		return name + " " + measured(exp, gate) + askedFor(exp, gate) + sameAnswers(exp, result, name)
	case candidate.Verdict == experiment.VerdictNoGo:
		return name + " " + measured(exp, gate) + askedFor(exp, gate) + others(result, gate)
	case candidate.Verdict == experiment.VerdictInconclusive:
		text := undecided + fmt.Sprintf("%s has %s: it %s", name, analysis.Asked(exp, gate.Condition()), measured(exp, gate))
		if blocks, took, known := forecast(result, gate); known {
			text += "; " + moreTime(blocks, took) + " would decide"
		}
		return text
	default:
		return name + ": " + reasonOf(result, candidate)
	}
}

// askedFor follows a measurement in words.
func askedFor(exp *experiment.Experiment, gate *analysis.GateResult) string {
	return ", where " + analysis.Asked(exp, gate.Condition()) + " was asked for"
}

// Why returns the reason for the verdict on a candidate, if its sentence lacks it.
func Why(exp *experiment.Experiment, result *analysis.Analysis, candidate *analysis.Candidate) string {
	gate := decidingOf(result, candidate)
	decided := candidate.Verdict == experiment.VerdictNoGo || candidate.Verdict == experiment.VerdictInconclusive
	if decided && gate != nil && gate.Outcome == candidate.Verdict ||
		Sentence(exp, result, candidate.Name) == candidate.Name+": "+reasonOf(result, candidate) {
		return ""
	}
	return reasonOf(result, candidate)
}

// Deciding returns the gate that the verdict rests on, if it compares a figure; nil otherwise.
func Deciding(exp *experiment.Experiment, result *analysis.Analysis) *analysis.GateResult {
	if lead := result.Leading(); lead != nil && exp.Plan.Search == nil {
		return decidingOf(result, lead)
	}
	return nil
}

// decidingOf returns the gate of a candidate's headline. The reason for a verdict on failed trials has their first cause, which a sentence
// about their share would lack.
func decidingOf(result *analysis.Analysis, candidate *analysis.Candidate) *analysis.GateResult {
	gate := result.GateOf(candidate.Headline)
	if gate == nil || !gate.Op.Timed() || gate.Estimate == nil || gate.Estimate.Low == nil || gate.Estimate.High == nil {
		return nil
	}
	return gate
}

// others counts further gates with the same outcome.
func others(result *analysis.Analysis, of *analysis.GateResult) string {
	n := -1
	for _, gate := range result.Gates {
		if gate.Candidate == of.Candidate && gate.Outcome == of.Outcome && gate.Severity == experiment.Blocking {
			n++
		}
	}
	return analysis.FurtherGates(n, of.Outcome)
}

func sameAnswers(exp *experiment.Experiment, result *analysis.Analysis, name string) string {
	agree := exp.Plan.Workload.ParityRequired && exp.Plan.Parity == experiment.ParityOfAll
	for _, gate := range result.Gates {
		if gate.Op == experiment.ParityEqual && gate.Candidate == name {
			agree = agree || gate.Outcome == experiment.VerdictGo
			if gate.Outcome != experiment.VerdictGo {
				return ""
			}
		}
	}
	if !agree {
		return ""
	}
	return ", with the same answers"
}

// measured formats the interval of a gate as a predicate, such as "takes 3.1 % less time than old (at least 2.6 %, 99.5 % confidence)".
func measured(exp *experiment.Experiment, gate *analysis.GateResult) string {
	at, confidence := "", Confidence(gate.Confidence)+" confidence"
	if gate.Point != "" {
		at = " at " + gate.Point
	}
	metric, e := exp.Metric(gate.Metric), gate.Estimate
	if !gate.Op.OfRatio() || metric == nil {
		text := analysis.Describe(e)
		if gate.Op.OfDifference() {
			text += analysis.MoreThan(exp)
		}
		return fmt.Sprintf("has %s %s%s (%s)", analysis.StatisticName(gate.Metric, gate.Statistic), text, at, confidence)
	}
	baseline := cmp.Or(analysis.Baseline(exp), "the baseline")
	predicate := predicateOf(metric, gate.Statistic)
	if *e.Low <= 1 && *e.High >= 1 {
		return predicate.between(*e.Low, *e.High, baseline) + at + " (" + confidence + ")"
	}
	ratio, least := e.Value, *e.Low
	if ratio < 1 {
		least = *e.High
	}
	return predicate.compare(ratio, baseline) + at + fmt.Sprintf(" (%s, %s)", predicate.atLeast(ratio, least), confidence)
}

// predicate has the words for more or less of a metric.
type predicate struct {
	verb, noun, fewer string
	// counted selects "many" instead of "much".
	counted bool
	// inverse inverts ratios below 1, because half the time is twice as fast.
	inverse bool
}

func predicateOf(metric *experiment.Metric, statistic experiment.Statistic) predicate {
	name := analysis.StatisticName(metric.Name, statistic)
	if things, ok := strings.CutSuffix(metric.Unit, "/s"); ok && things != "" && things != "By" && things != "1" {
		return predicate{verb: "handles", noun: things + " per second", fewer: "fewer", counted: true}
	}
	if metric.Unit == "s" && metric.Direction == experiment.LowerIsBetter {
		return predicate{noun: name, inverse: true}
	}
	return predicate{verb: "has", noun: name, fewer: "less"}
}

// Ratios farther from 1 are formatted as multiples instead of percentages.
const multiple, fraction = 1.25, 0.8

func (p predicate) compare(ratio float64, baseline string) string {
	switch {
	case p.inverse && ratio <= fraction:
		return fmt.Sprintf("is %s times as fast as %s (%s)", quantity.Rough(1/ratio, false), baseline, p.noun)
	case p.inverse && ratio >= multiple:
		return fmt.Sprintf("takes %s times as long as %s (%s)", quantity.Rough(ratio, false), baseline, p.noun)
	case p.inverse && ratio < 1:
		return fmt.Sprintf("takes %s %% less time than %s (%s)", quantity.Rough(100*(1-ratio), false), baseline, p.noun)
	case p.inverse:
		return fmt.Sprintf("takes %s %% longer than %s (%s)", quantity.Rough(100*(ratio-1), false), baseline, p.noun)
	case ratio >= multiple && p.counted:
		return fmt.Sprintf("%s %s times as many %s as %s", p.verb, quantity.Rough(ratio, false), p.noun, baseline)
	case ratio >= multiple:
		return fmt.Sprintf("%s %s times the %s of %s", p.verb, quantity.Rough(ratio, false), p.noun, baseline)
	case ratio < 1:
		return fmt.Sprintf("%s %s %% %s %s than %s", p.verb, quantity.Rough(100*(1-ratio), false), p.fewer, p.noun, baseline)
	default:
		return fmt.Sprintf("%s %s %% more %s than %s", p.verb, quantity.Rough(100*(ratio-1), false), p.noun, baseline)
	}
}

// between formats an interval that contains 1.
func (p predicate) between(low, high float64, baseline string) string {
	less, more := quantity.Rough(100*(1-low), false), quantity.Rough(100*(high-1), false)
	switch {
	case p.inverse:
		return fmt.Sprintf("is between %s %% faster and %s %% slower than %s (%s)", less, more, baseline, p.noun)
	default:
		return fmt.Sprintf("%s between %s %% %s and %s %% more %s than %s", p.verb, less, p.fewer, more, p.noun, baseline)
	}
}

// atLeast formats the end of the interval that is nearer to 1, rounded towards 1, so that the statement holds.
func (p predicate) atLeast(ratio, least float64) string {
	switch {
	case p.inverse && ratio <= fraction:
		return "at least " + quantity.Rough(1/least, true) + " times"
	case ratio >= multiple:
		return "at least " + quantity.Rough(least, true) + " times"
	default:
		return "at least " + quantity.Rough(100*math.Abs(least-1), true) + " %"
	}
}

// Confidence formats a confidence level, such as 99.5 %.
func Confidence(level float64) string { return quantity.InPercent(level) + " %" }

// Interval returns the confidence level as a suffix for column titles.
func Interval(level float64) string { return " [" + Confidence(level) + "]" }

func searchHeadline(analyzed *analysis.Analysis) string {
	var parts []string
	for _, result := range analyzed.Search {
		switch {
		case result.FeasibleMax == "":
			parts = append(parts, fmt.Sprintf("%s meets the constraints at no tested %s", result.Arm, result.Axis))
		case result.Interval == nil:
			parts = append(parts, fmt.Sprintf("%s meets the constraints up to %s %s or more", result.Arm, result.Axis, result.FeasibleMax))
		default:
			parts = append(parts, fmt.Sprintf("%s meets the constraints up to %s %s", result.Arm, result.Axis, result.FeasibleMax))
		}
	}
	if len(parts) == 0 {
		return "The search has no answer yet."
	}
	return strings.Join(parts, "; ") + " (" + Confidence(analyzed.GateConfidence) + " confidence)."
}

// Detectable formats the smallest relative change that these blocks detect with a probability of 80 %. It is "" beyond 100 %.
func Detectable(gate *analysis.GateResult) string {
	if effect := gate.MinimumDetectableEffect; effect != nil && *effect < 1 {
		return quantity.PercentTo(*effect, 1)
	}
	return ""
}
