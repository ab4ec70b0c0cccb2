package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// people are the words in which people name what the runner reads of a process.
var people = map[string]string{
	"process.wallTime": "wall time", "process.cpuTime": "CPU time", "process.peakMemory": "memory",
}

// Sentence describes how a candidate compares with the baseline: by the metric that it is asked about, then by what its process took.
func Sentence(exp *experiment.Experiment, result *analysis.Analysis, candidate string) string {
	asked := judged(exp, result, candidate)
	certain := doubt(asked)
	if why := cmp.Or(incomplete(exp, result, candidate), undecided(exp, result, asked, candidate)); why != "" {
		certain = ", not certain: " + why
	}
	text := candidate + " " + comparison(exp, asked) + certain
	said := []string{asked.Metric}
	var beside []string
	for i := range result.Ratios {
		ratio := &result.Ratios[i]
		// The first of a metric is that of its own statistic; percentiles are in the tables.
		if word := people[ratio.Metric]; ratio.Candidate == candidate && word != "" && !slices.Contains(said, ratio.Metric) {
			said = append(said, ratio.Metric)
			beside = append(beside, word+" "+analysis.Describe(&ratio.Estimate))
		}
	}
	if len(beside) > 0 {
		text += fmt.Sprintf("; with %s confidence: %s", quantity.Percent(result.Confidence, 4), strings.Join(beside, ", "))
	}
	return text
}

// Short is how a candidate compares so far.
func Short(exp *experiment.Experiment, result *analysis.Analysis, candidate string) string {
	return candidate + " " + comparison(exp, judged(exp, result, candidate))
}

// judged is the gate that says whether a candidate is faster. Where others are asked for, it is what its first metric is.
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

// comparison is what an interval says: that it is on one side of 1, or that it is not.
func comparison(exp *experiment.Experiment, of *analysis.GateResult) string {
	e, metric, what := of.Estimate, exp.Metric(of.Metric), cmp.Or(people[of.Metric], of.Metric)
	if e == nil {
		return "has no comparison of " + what + " yet"
	}
	baseline := exp.Arms[exp.Baseline()].Name
	if e.Low == nil || e.High == nil {
		return fmt.Sprintf("has %s of %s's %s, and no interval yet", analysis.Describe(e), baseline, what)
	}
	if *e.Low <= 1 && *e.High >= 1 {
		return fmt.Sprintf("does not differ from %s beyond doubt: %s of its %s", baseline, analysis.Describe(e), what)
	}
	if metric.Unit != "s" {
		return fmt.Sprintf("has %s of %s's %s", analysis.Describe(e), baseline, what)
	}
	word, shown := "slower", *e
	if *e.High < 1 {
		low, high := 1 / *e.High, 1 / *e.Low
		word, shown.Value, shown.Low, shown.High = "faster", 1/e.Value, &low, &high
	}
	ratio, interval, _ := strings.Cut(analysis.Describe(&shown), " ")
	return fmt.Sprintf("is %s %s than %s %s (%s)", ratio, word, baseline, interval, what)
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

// undecided is what keeps a comparison from being certain whatever its interval is: what keeps its gate from a decision, or where no gate
// makes it the two arms from being compared; or that as sure a comparison is one of too many. It is empty where nothing does.
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

// doubt is how certain the comparison is.
func doubt(of *analysis.GateResult) string {
	switch {
	case of.Outcome == experiment.VerdictGo || of.Outcome == experiment.VerdictNoGo:
		return ", certain at " + quantity.Percent(of.Confidence, 4)
	case of.Outcome == experiment.VerdictInconclusive && of.MoreBlocks != nil:
		return fmt.Sprintf(", not certain: about %d more blocks may decide (--budget)", *of.MoreBlocks)
	case of.Outcome == experiment.VerdictInconclusive, of.Outcome == experiment.VerdictInvalid:
		return ", not certain"
	default:
		return ""
	}
}
