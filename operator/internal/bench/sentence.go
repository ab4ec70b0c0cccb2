package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// people maps metrics of processes to their names in sentences.
var people = map[string]string{
	"process.wallTime": "wall time", "process.cpuTime": "CPU time", "process.peakMemory": "memory",
}

// Sentence compares a candidate with the baseline by the requested metric and the resource usage.
func Sentence(exp *experiment.Experiment, result *analysis.Analysis, candidate string) string {
	asked := judged(exp, result, candidate)
	certain := doubt(asked)
	if why := cmp.Or(incomplete(exp, result, candidate), undecided(exp, result, asked, candidate)); why != "" {
		certain = ", not certain: " + why
	}
	text := comparison(exp, asked, candidate) + certain
	if asked.Estimate == nil && asked.Message != "" {
		text = fmt.Sprintf("%s has no comparison of %s: %s", quoteDigits(candidate), cmp.Or(people[asked.Metric], asked.Metric), asked.Message)
	}
	said := []string{asked.Metric}
	var beside []string
	for i := range result.Ratios {
		ratio := &result.Ratios[i]
		// The first ratio of a metric has its own statistic; percentiles are in the tables.
		if word := people[ratio.Metric]; ratio.Candidate == candidate && word != "" && !slices.Contains(said, ratio.Metric) {
			said = append(said, ratio.Metric)
			beside = append(beside, word+" "+analysis.Describe(&ratio.Estimate))
		}
	}
	if len(beside) > 0 {
		text += fmt.Sprintf("; %s, %s confidence", strings.Join(beside, ", "), quantity.Percent(result.Confidence, 4))
	}
	return text
}

// Short is how a candidate compares so far.
func Short(exp *experiment.Experiment, result *analysis.Analysis, candidate string) string {
	return comparison(exp, judged(exp, result, candidate), candidate)
}

// judged returns the gate of the first metric, which decides whether a candidate is faster.
func judged(exp *experiment.Experiment, result *analysis.Analysis, candidate string) *analysis.GateResult {
	for i := range result.Gates {
		if gate := &result.Gates[i]; gate.Gate == Faster && gate.Candidate == candidate {
			return gate
		}
	}
	metric := exp.Metrics()[0].Name
	out := &analysis.GateResult{Metric: metric}
	i := slices.IndexFunc(result.Ratios, func(r analysis.RatioResult) bool { return r.Candidate == candidate && r.Metric == metric })
	if i >= 0 {
		out.Estimate, out.Confidence = &result.Ratios[i].Estimate, result.Confidence
	}
	return out
}

// comparison formats the ratio of a candidate to the baseline with its interval. A ratio of times reads "takes 3.4x as long as", because
// readers disagree whether "3.4x slower" adds the baseline.
func comparison(exp *experiment.Experiment, of *analysis.GateResult, candidate string) string {
	e, label := of.Estimate, cmp.Or(people[of.Metric], of.Metric)
	candidate, baseline := quoteDigits(candidate), quoteDigits(exp.Arms[exp.Baseline()].Name)
	if e == nil {
		return candidate + " has no comparison of " + label + " yet"
	}
	var text string
	if ratio, interval, _ := strings.Cut(analysis.Describe(e), " "); exp.Metric(of.Metric).Unit == "s" {
		text = strings.TrimSpace(fmt.Sprintf("%s takes %s as long as %s %s", candidate, ratio, baseline, interval)) + " (" + label + ")"
	} else {
		text = fmt.Sprintf("%s has %s of %s's %s", candidate, analysis.Describe(e), baseline, label)
	}
	switch {
	case e.Low == nil || e.High == nil:
		return text + ", no interval yet"
	case *e.Low <= 1 && *e.High >= 1:
		return text + ", no difference detected"
	}
	return text
}

// quoteDigits returns the name of an arm, in quotes if it would read as a number.
func quoteDigits(name string) string {
	if onlyDigits.MatchString(name) {
		return strconv.Quote(name)
	}
	return name
}

// incomplete names the trials that one of the two lost: the others say nothing of them. It is empty when both completed.
func incomplete(exp *experiment.Experiment, result *analysis.Analysis, candidate string) string {
	var out []string
	for i := range result.Gates {
		gate := &result.Gates[i]
		if gate.Op != experiment.Completes || gate.Outcome == experiment.VerdictGo ||
			gate.Candidate != candidate && gate.Candidate != exp.Arms[exp.Baseline()].Name {
			continue
		}
		if why := gate.Candidate + " did not complete: " + gate.Message; !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	return strings.Join(out, "; ")
}

// undecided returns the reason that prevents a decision regardless of the interval: a cap on the gate, arms that cannot be compared, or the
// correction for multiple comparisons. It is "" otherwise.
func undecided(exp *experiment.Experiment, result *analysis.Analysis, of *analysis.GateResult, candidate string) string {
	if len(of.Caps) > 0 {
		return of.Caps[0].Detail
	}
	other := func(arm string) bool { return arm != candidate && arm != exp.Arms[exp.Baseline()].Name }
	for _, doubt := range result.Doubts {
		if of.Outcome == "" && !slices.ContainsFunc(doubt.Arms, other) && (doubt.Metric == "" || doubt.Metric == of.Metric) {
			return doubt.Detail
		}
	}
	for _, c := range result.Candidates {
		if c.Name == candidate && of.Outcome == experiment.VerdictGo && c.Verdict == experiment.VerdictInconclusive {
			return c.Reason
		}
	}
	return ""
}

// doubt formats the confidence of a decision, or its absence.
func doubt(of *analysis.GateResult) string {
	switch {
	case of.Outcome == experiment.VerdictGo || of.Outcome == experiment.VerdictNoGo:
		return ", " + quantity.Percent(of.Confidence, 4) + " confidence"
	case of.Outcome == experiment.VerdictInconclusive && of.MoreBlocks != nil:
		return fmt.Sprintf(", not certain: about %d more blocks may decide (--budget)", *of.MoreBlocks)
	case of.Outcome == experiment.VerdictInconclusive, of.Outcome == experiment.VerdictInvalid:
		return ", not certain"
	default:
		return ""
	}
}
