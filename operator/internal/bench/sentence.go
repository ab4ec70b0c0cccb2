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
	"assay.dev/assay/operator/internal/record"
)

// people maps metrics of processes to their names in sentences.
var people = map[string]string{
	"process.wallTime": "wall time", "process.cpuTime": "CPU time", "process.peakMemory": "memory",
}

// Answer formats the comparison of a candidate with the baseline: the deciding figure, a line with the others beside it, and with
// requirements a closing line with their outcome. More formats the advice for a number of further blocks. By is the command that decides by
// the figure beside; "" for none.
func Answer(exp *experiment.Experiment, result *analysis.Analysis, candidate string, more func(blocks int) string, by string) []string {
	asked := judged(exp, result, candidate)
	lines := []string{sentence(exp, result, candidate, asked, more)}
	beside := others(result, candidate, asked)
	if why := decidesBeside(result, candidate, asked); why != "" && by != "" {
		beside += "; " + why + " would decide: " + by
	}
	if beside != "" {
		lines = append(lines, "  beside it: "+beside)
	}
	return append(lines, requirements(result, candidate, more)...)
}

// decidesBeside names the figure of the gate beside if it decides and the deciding figure does not; empty otherwise.
func decidesBeside(result *analysis.Analysis, candidate string, asked *analysis.GateResult) string {
	if asked.Outcome != experiment.VerdictInconclusive {
		return ""
	}
	for i := range result.Gates {
		gate := &result.Gates[i]
		decides := gate.Outcome == experiment.VerdictGo || gate.Outcome == experiment.VerdictNoGo
		if gate.Gate == Beside && gate.Candidate == candidate && decides {
			return people[gate.Metric]
		}
	}
	return ""
}

// requirements formats the outcome of each requirement of a candidate; none without --require.
func requirements(result *analysis.Analysis, candidate string, more func(blocks int) string) (out []string) {
	words := map[experiment.Verdict]string{
		experiment.VerdictGo: "meets", experiment.VerdictNoGo: "misses", experiment.VerdictInconclusive: "may meet",
		experiment.VerdictInvalid: "may meet",
	}
	signs := map[experiment.Op][2]string{
		experiment.AtMost: {"<=", ""}, experiment.RatioAtMost: {"<=", "x"}, experiment.AtLeast: {">=", ""}, experiment.RatioAtLeast: {">=", "x"},
	}
	for i := range result.Gates {
		gate := &result.Gates[i]
		sign, known := signs[gate.Op]
		if gate.Candidate != candidate || !strings.HasPrefix(gate.Gate, requirementPrefix) || !known || gate.Bound == nil {
			continue
		}
		text := fmt.Sprintf("%s %s %s%s%s%s", quoteDigits(candidate), words[gate.Outcome], strings.TrimPrefix(gate.Metric, record.ProcessPrefix),
			sign[0], quantity.Full(*gate.Bound), sign[1])
		if gate.Estimate != nil {
			text += ": " + analysis.Describe(gate.Estimate)
		} else if gate.Message != "" {
			text += ": " + gate.Message
		}
		out = append(out, text+doubt(gate, more))
	}
	return out
}

// sentence compares a candidate with the baseline by the deciding figure.
func sentence(exp *experiment.Experiment, result *analysis.Analysis, candidate string, asked *analysis.GateResult,
	more func(blocks int) string) string {
	certain := doubt(asked, more)
	if why := cmp.Or(incomplete(exp, result, candidate), undecided(exp, result, asked, candidate)); why != "" {
		certain = ", not certain: " + why
	}
	text := comparison(exp, asked, candidate) + certain
	if asked.Estimate == nil && asked.Message != "" {
		text = fmt.Sprintf("%s has no comparison of %s: %s", quoteDigits(candidate), cmp.Or(people[asked.Metric], asked.Metric), asked.Message)
	}
	return text
}

// others formats the figures that do not decide.
func others(result *analysis.Analysis, candidate string, asked *analysis.GateResult) string {
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
	if len(beside) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, %s confidence", strings.Join(beside, ", "), quantity.Percent(result.Confidence, 4))
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
func doubt(of *analysis.GateResult, more func(blocks int) string) string {
	switch {
	case of.Outcome == experiment.VerdictGo || of.Outcome == experiment.VerdictNoGo:
		return ", " + quantity.Percent(of.Confidence, 4) + " confidence"
	case of.Outcome == experiment.VerdictInconclusive && of.MoreBlocks != nil:
		return ", not certain: " + more(*of.MoreBlocks)
	case of.Outcome == experiment.VerdictInconclusive, of.Outcome == experiment.VerdictInvalid:
		return ", not certain"
	default:
		return ""
	}
}
