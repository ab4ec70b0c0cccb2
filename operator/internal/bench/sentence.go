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
	text := candidate + " " + comparison(exp, asked) + certain
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
		text += fmt.Sprintf("; with %s confidence: %s", quantity.Percent(result.Confidence, 4), strings.Join(beside, ", "))
	}
	return text
}

// Short is how a candidate compares so far.
func Short(exp *experiment.Experiment, result *analysis.Analysis, candidate string) string {
	return candidate + " " + comparison(exp, judged(exp, result, candidate))
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

// comparison formats whether the interval excludes 1.
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
