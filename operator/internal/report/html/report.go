package html

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	summary "assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/chart"
)

// report is everything the page shows, in its order.
type report struct {
	Name, Verdict, Class, Answer string
	When, Machine                string
	Candidates                   []candidate
	Warnings                     []string
	Gates                        []gate
	Legend                       []key
	Curves, Ratios               []template.HTML
	Pairs, Distributions, Phases []template.HTML
	PhaseKeys                    []key
	Predictions                  []prediction
	Axis, Maximized              string
	Answers                      []answer
	Loads                        table
	Controls                     table
	Screening                    table
	TwiceSays                    string
	Twice                        table
	ArmNoise                     table
	SeriesSays, SeriesNote       string
	Unseen                       string
	Series                       table
	GateConfidence               string
	Own                          []ownTable
	Results                      table
	Trials                       analysis.Trials
	Excluded                     []analysis.Exclusion
	MoreExcluded                 int
	Processes                    table
	ProcessesNote, Layout        string
	Noise                        []template.HTML
	Isolation, Environment       [][2]string
	Experiment, Evidence, UID    string
	Image                        string
	Wave                         int
	Seed                         int64
	Confidence                   string
	Baseline                     string
	Command                      []string
}

type candidate struct{ Name, Verdict, Class, Gain, Reason string }

type gate struct {
	Outcome, Class, Name, Candidate, Point, Asked, Estimate, Detectable, Share, Message string
	Advisory                                                                            bool
	Blocks                                                                              int
	Plot                                                                                template.HTML
	points                                                                              int
}

type key struct {
	Name   string
	Sample template.HTML
}

type prediction struct{ Point, Candidate, Metric, Predicted, Measured, Message string }

// answer is what a search found for one arm.
type answer struct{ Arm, Feasible, Value, Reason, Binding string }

type table struct {
	Header []string
	Rows   [][]string
}

// ownTable is a table that the run asks for.
type ownTable struct {
	Title string
	Table table
}

// shownExclusions bounds a list that could be as long as the ledger.
const shownExclusions = 30

func newReport(exp *experiment.Experiment, found *analysis.Analysis, evidence record.Evidence) *report {
	b := &builder{exp: exp, found: found, trials: usedTrials(found, evidence), all: measured(evidence)}
	r := &report{
		Name: strings.TrimPrefix(exp.Run.Namespace+"/"+exp.Run.Name, "/"), Verdict: verdictName(found.Verdict),
		Class:  verdictClass(found.Verdict),
		Answer: b.answer(), When: b.when(), Machine: b.machine(),
		Warnings: found.Warnings, Layout: found.Layout, Trials: found.Trials,
		Experiment: found.Experiment, Evidence: found.Evidence, UID: exp.Run.UID, Image: exp.ImageNames(),
		GateConfidence: fmt.Sprintf("%g %%", 100*found.GateConfidence),
		Wave:           found.Wave, Seed: found.Seed, Confidence: fmt.Sprintf("%g %%", 100*found.Confidence), Command: exp.Plan.Command,
	}
	if baseline := exp.Baseline(); baseline >= 0 {
		r.Baseline = exp.Arms[baseline].Name
	}
	for _, c := range found.Candidates {
		r.Candidates = append(r.Candidates, candidate{c.Name, verdictName(c.Verdict), verdictClass(c.Verdict), gain(c.Gain), c.Reason})
	}
	for i, arm := range exp.Arms {
		r.Legend = append(r.Legend, key{arm.Name, chart.Legend(i)})
	}
	r.Gates = b.gates()
	r.Curves, r.Ratios = b.curves(), b.ratioCurves()
	r.Pairs, r.Distributions = b.pairs(), b.distributions()
	r.Phases, r.PhaseKeys = b.phases()
	for _, p := range found.Predicted {
		r.Predictions = append(r.Predictions,
			prediction{p.Point, p.Candidate, p.Metric, analysis.FormatNumber(p.Predicted, analysis.Times), analysis.Describe(p.Measured), p.Message})
	}
	b.search(r)
	r.Controls, r.Screening = b.controls(), b.screening()
	r.TwiceSays, r.Twice.Rows = summary.Twice(found)
	r.Twice.Header, r.ArmNoise = summary.TwiceHeader, table{summary.ArmNoiseHeader, summary.ArmNoise(found)}
	r.SeriesSays, r.Series.Rows = summary.Series(found)
	r.Series.Header, r.SeriesNote, r.Unseen = summary.SeriesHeader, summary.SeriesNote, found.Unseen
	for _, own := range summary.OwnTables(exp, found) {
		header, rows := own.Text()
		r.Own = append(r.Own, ownTable{own.Heading(), table{header, rows}})
	}
	r.Results = b.results()
	r.Excluded = found.Excluded[:min(shownExclusions, len(found.Excluded))]
	r.MoreExcluded = len(found.Excluded) - len(r.Excluded)
	r.Processes.Header, r.Processes.Rows = summary.Processes(found)
	r.ProcessesNote = summary.ProcessesNote
	r.Noise = b.noise()
	for _, level := range slices.Sorted(maps.Keys(found.Isolation)) {
		r.Isolation = append(r.Isolation, [2]string{level, fmt.Sprintf("%d trials", found.Isolation[level])})
	}
	for _, name := range slices.Sorted(maps.Keys(found.Environment)) {
		r.Environment = append(r.Environment, [2]string{name, fmt.Sprint(found.Environment[name])})
	}
	return r
}

// builder holds what the sections are made from.
type builder struct {
	exp   *experiment.Experiment
	found *analysis.Analysis
	// trials are those that count, all are those that were measured.
	trials, all []*record.Attempt
}

func (b *builder) answer() string {
	switch {
	case b.exp.Plan.Search != nil:
		return "The highest feasible " + b.exp.Plan.Search.Axis
	case b.found.Best != "":
		for _, c := range b.found.Candidates {
			if c.Name == b.found.Best && c.Gain != nil {
				return fmt.Sprintf("%s is the best candidate: %s of %s.", c.Name, analysis.Describe(c.Gain), b.baseline())
			}
		}
		return b.found.Best + " is the best candidate."
	case len(b.found.BestOf) > 0:
		return b.found.BestText() + " is the best candidate: the blocks do not show which."
	case b.found.Verdict == "":
		return "No gate decides this run: it has results and no verdict."
	case len(b.found.Candidates) == 1:
		return b.found.Candidates[0].Reason
	default:
		return "No candidate is Go."
	}
}

func (b *builder) baseline() string {
	if i := b.exp.Baseline(); i >= 0 {
		return b.exp.Arms[i].Name
	}
	return "the baseline"
}

// when the first and the last trial ran.
func (b *builder) when() string {
	if len(b.all) == 0 {
		return ""
	}
	first, last := b.all[0].StartedAt, b.all[0].StartedAt
	for _, attempt := range b.all {
		if attempt.StartedAt.Before(first) {
			first = attempt.StartedAt
		}
		if attempt.StartedAt.After(last) {
			last = attempt.StartedAt
		}
	}
	return first.UTC().Format("2 January 2006, 15:04") + last.UTC().Format(" to 15:04 UTC")
}

func (b *builder) machine() string {
	var parts []string
	for _, name := range []string{"cpuModel", "machine"} {
		if text, ok := b.found.Environment[name].(string); ok && text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

func gain(estimate *analysis.Estimate) string {
	if estimate == nil {
		return ""
	}
	return analysis.Describe(estimate)
}

func verdictName(verdict experiment.Verdict) string {
	if verdict == "" {
		return "No verdict"
	}
	return string(verdict)
}

// verdictClass is the style class of a verdict.
func verdictClass(verdict experiment.Verdict) string {
	if verdict == "" {
		return "none"
	}
	return strings.ToLower(string(verdict))
}

// measured are the attempts that are no warm-ups.
func measured(evidence record.Evidence) []*record.Attempt {
	var out []*record.Attempt
	for i := range evidence.Attempts {
		if !evidence.Attempts[i].Warmup {
			out = append(out, &evidence.Attempts[i])
		}
	}
	return out
}

// usedTrials are the attempts that the figures rest on.
func usedTrials(found *analysis.Analysis, evidence record.Evidence) []*record.Attempt {
	excluded := map[string]bool{}
	for _, e := range found.Excluded {
		excluded[e.Attempt] = true
	}
	var out []*record.Attempt
	for _, attempt := range measured(evidence) {
		if attempt.Outcome == record.Succeeded && !excluded[attempt.ID] && attempt.Wave <= found.Wave {
			out = append(out, attempt)
		}
	}
	return out
}
