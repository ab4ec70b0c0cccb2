// Package ci writes how a run ended in the forms that forges and build servers show beside a change: Markdown and annotations for GitHub,
// Code Quality for GitLab, JUnit XML for Jenkins and the rest, and a badge. It decides nothing.
package ci

import (
	"cmp"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
)

// Result is how a run ended.
type Result struct {
	// Title is the run's name in its file.
	Title string
	// Verdict is empty for a run without one, and for one that failed.
	Verdict experiment.Verdict
	// Passed is whether a gate lets it pass.
	Passed bool
	// Sentence describes the verdict, or the reason for its absence.
	Sentence string
	// Cause is the first cause of lost trials, or "".
	Cause string
	// Gain is the deciding figure, for the badge.
	Gain       string
	Confidence float64
	Gates      []Gate
	Warnings   []report.Warning
	// Trials is empty for a run that measured nothing.
	Trials string
	// Report is the address of the full report, or "".
	Report string
	// File is the run's file in the repository, with the lines of its gates by their names, and of the run itself by none.
	File  string
	Lines map[string]int
}

// Gate is the outcome of one gate for one candidate at one point, with its condition as text.
type Gate struct {
	analysis.GateResult
	Asked string
}

// From is the result of an analysis.
func From(title string, exp *experiment.Experiment, result *analysis.Analysis) *Result {
	out := &Result{
		Title: title, Verdict: result.Verdict, Passed: result.Verdict == experiment.VerdictGo, Sentence: report.Headline(exp, result),
		Cause: report.Cause(result), Confidence: result.GateConfidence, Warnings: report.Warnings(exp, result), Trials: report.Trials(result),
	}
	if gate := result.GateOf(result.Headline); gate != nil && gate.Estimate != nil {
		out.Gain = quantity.Format(gate.Estimate.Value, gate.Estimate.Shown())
	}
	for _, g := range result.Gates {
		g.Message = report.Message(&g)
		out.Gates = append(out.Gates, Gate{g, analysis.Asked(exp, g.Condition())})
	}
	return out
}

// Key identifies later results of the same run: its file, or its title without a file.
func (r *Result) Key() string { return cmp.Or(r.File, r.Title) }

// Failed is the result of a run that has none.
func Failed(title, reason string) *Result { return &Result{Title: title, Sentence: reason} }

// Word is the verdict in a word.
func (r *Result) Word() string {
	switch {
	case r.Verdict != "":
		return string(r.Verdict)
	case len(r.Gates) > 0 || r.Trials != "":
		return "no verdict"
	default:
		return "failed"
	}
}

// line is that of a gate in the run's file.
func (r *Result) line(gate string) int { return max(1, r.Lines[gate]) }

// stands reports whether a gate fails the run: it is blocking and not Go, and the run does not pass through another candidate or an
// accepted Inconclusive.
func (r *Result) stands(gate Gate) bool {
	return !r.Passed && gate.Severity != experiment.Advisory && gate.Outcome != experiment.VerdictGo
}

// standing are the gates that stand in the way, those that are decided first.
func (r *Result) standing() []Gate {
	var out []Gate
	for _, outcome := range []experiment.Verdict{experiment.VerdictNoGo, experiment.VerdictInvalid, experiment.VerdictInconclusive} {
		for _, gate := range r.Gates {
			if gate.Outcome == outcome && r.stands(gate) {
				out = append(out, gate)
			}
		}
	}
	return out
}

// title names a gate with its candidate and point.
func (g Gate) title() string {
	text := g.Gate + " of " + g.Candidate
	if g.Point != "" {
		text += " at " + g.Point
	}
	return text
}
