package html

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	summary "assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/chart"
)

// report has the content of the page in its order, besides the run and the analysis themselves.
type report struct {
	Exp                          *experiment.Experiment
	Result                       *analysis.Analysis
	Name, Verdict, Class, Answer string
	Cause, Next, When, Machine   string
	Levels                       string
	Decides                      *decision
	Candidates                   []candidate
	Assumptions                  []string
	AssumptionsInShort           string
	Warnings, Notes              []summary.Warning
	Gates                        []gate
	AllGates                     *gatesPlot
	Narrowing                    narrowed
	Completes, Drawn, Neutral    bool
	Legend                       []key
	Curves, Ratios               panels
	Pairs, Distributions, Phases panels
	PhaseKeys                    []key
	Axis, Maximized              string
	Loads, Controls, Screening   summary.Table
	CarryOver                    summary.Table
	RecomputedSummary            string
	Recomputed, ArmNoise         summary.Table
	SeriesSays, SeriesNote       string
	Series                       summary.Table
	Own                          []summary.OwnTable
	Results, Predicted           summary.Table
	Excluded                     []analysis.Exclusion
	MoreExcluded                 string
	Processes                    summary.Table
	ProcessesNote                string
	Noise                        panels
	Quiet, Unread                []string
	Baseline                     string
	Files                        []file
	Missing                      []string
}

// decision has the plots of the gate that decides the verdict: the estimates against the bound, and the distributions of the trials, which
// are empty with too few trials.
type decision struct {
	Plot, Trials template.HTML
	Note         string
	Legend       []key
}

// panels are the plots of a section, and the titles of those that are not drawn.
type panels struct {
	Plots []template.HTML
	Left  []string
	Where string
}

// add draws a plot if there is room for one more.
func (p *panels) add(title string, svg func() template.HTML) {
	if len(p.Plots) < maxPanels {
		p.Plots = append(p.Plots, svg())
		return
	}
	p.Left = append(p.Left, title)
}

// Named are the titles that are listed, and Further counts the rest of them.
func (p panels) Named() []string { return p.Left[:min(len(p.Left), maxNamed)] }
func (p panels) Further() int    { return len(p.Left) - len(p.Named()) }

type candidate struct{ Name, Verdict, Class, Gain, Of, Levels, Sentence, Reason string }

type gate struct {
	analysis.GateResult
	Class, Asked, Detectable, Share string
	Plot                            template.HTML
	points                          int
}

type key struct {
	Name   string
	Sample template.HTML
	// Class is that of the series' marks.
	Class string
}

// shownExclusions bounds a list that could be as long as the ledger.
const shownExclusions = 30

func newReport(exp *experiment.Experiment, result *analysis.Analysis, evidence record.Evidence) *report {
	b := newBuilder(exp, result, evidence)
	r := &report{
		Exp: exp, Result: result, Name: summary.RunName(exp), Verdict: verdictName(result.Verdict), Class: VerdictClass(result.Verdict),
		Baseline: analysis.Baseline(exp), Answer: summary.Headline(exp, result), Cause: summary.Cause(result),
		Next:   summary.NextStep(exp, result),
		Levels: summary.Levels(exp, result, summary.Deciding(exp, result)), When: b.when(), Machine: summary.Machine(b.result),
		Assumptions: summary.Assumptions(result), AssumptionsInShort: summary.AssumptionsInShort(result),
		Warnings: summary.Warnings(exp, result), Notes: summary.Notes(exp, result), Decides: b.decides(), AllGates: allGates(result.Gates),
		Narrowing: b.narrowing(summary.Deciding(exp, result)),
	}
	for _, c := range result.Candidates {
		shown := candidate{Name: c.Name, Verdict: verdictName(c.Verdict), Class: VerdictClass(c.Verdict),
			Sentence: summary.Sentence(exp, result, c.Name), Reason: summary.Why(exp, result, &c)}
		if gate := result.GateOf(c.Headline); gate != nil {
			shown.Gain, shown.Of, shown.Levels = analysis.FigureText(exp, gate), b.gainOf(gate), summary.Levels(exp, result, gate)
		}
		r.Candidates = append(r.Candidates, shown)
	}
	for i, arm := range exp.Arms {
		r.Legend = append(r.Legend, key{arm.Name, chart.Legend(i), chart.Class(i)})
	}
	r.Gates = b.gates()
	r.describeGates()
	r.Curves, r.Ratios = b.curves(), b.ratioCurves()
	r.Pairs, r.Distributions = b.pairs(), b.distributions()
	r.Phases, r.PhaseKeys = b.phases()
	if len(result.Search) > 0 {
		r.Axis, r.Maximized = result.Search[0].Axis, result.Search[0].Metric
	}
	r.Loads, r.Predicted = summary.Tried(result), summary.Predictions(result)
	r.Controls, r.Screening, r.ArmNoise = summary.Controls(result), summary.Screening(result), summary.ArmNoise(result)
	r.RecomputedSummary, r.Recomputed = summary.Recomputed(result)
	r.CarryOver = summary.CarryOver(result)
	r.SeriesSays, r.Series = summary.Series(result)
	r.SeriesNote = summary.SeriesNote
	r.Own = summary.OwnTables(exp, result)
	r.Results = summary.Results(exp, result)
	r.Excluded = result.Excluded[:min(shownExclusions, len(result.Excluded))]
	r.MoreExcluded = summary.MoreExcluded(result, shownExclusions)
	r.Processes, r.ProcessesNote = summary.Processes(result), summary.ProcessesNote
	r.Noise, r.Quiet, r.Unread = b.noise()
	return r
}

// builder holds the inputs of the sections.
type builder struct {
	exp    *experiment.Experiment
	result *analysis.Analysis
	// trials are those that count, all are those that were measured.
	trials, all []*record.Attempt
	// levels and ratios are those of the result.
	levels map[analysis.Figure]*analysis.ArmResult
	ratios map[analysis.Figure]*analysis.RatioResult
}

func newBuilder(exp *experiment.Experiment, result *analysis.Analysis, evidence record.Evidence) *builder {
	b := &builder{exp: exp, result: result, trials: usedTrials(result, evidence), all: measured(evidence)}
	b.levels, b.ratios = result.Figures()
	return b
}

// decides draws the gate that the verdict rests on, with every candidate that it judges there.
func (b *builder) decides() *decision {
	gate := summary.Deciding(b.exp, b.result)
	if gate == nil || gate.Bound == nil {
		return nil
	}
	asked, holds := analysis.Asked(b.exp, gate.Condition()), gate.Condition().Region()
	plot := chart.Forest{
		Title: asked + atPoint(gate.Point), From: holds.Low, To: holds.High, Ratio: gate.Op.OfRatio(),
		Number: numberOf(gate.Estimate.Shown()),
	}
	note := "Bars are intervals of " + summary.Confidence(gate.Confidence) + " confidence; the shaded side is where the gate " + gate.Gate +
		" holds."
	if plot.Ratio && *gate.Bound != 1 {
		note += " The thin line is no change from " + b.baseline() + "."
	}
	for _, g := range b.result.Gates {
		if g.Gate == gate.Gate && g.Point == gate.Point && g.Estimate != nil && g.Estimate.Low != nil && g.Estimate.High != nil {
			plot.Rows = append(plot.Rows, chart.Estimate{
				Name: g.Candidate + ": " + analysis.Describe(g.Estimate), Value: g.Estimate.Value, Low: *g.Estimate.Low, High: *g.Estimate.High,
				Class: VerdictClass(g.Outcome),
			})
		}
	}
	out := &decision{Plot: plot.SVG(), Note: note}
	out.Trials, out.Legend = b.cumulative(gate)
	return out
}

// gainOf describes the figure of a gate: its metric, its point, its confidence and the gate.
func (b *builder) gainOf(g *analysis.GateResult) string {
	of := ""
	switch g.Op.Subject() {
	case experiment.SubjectRatio:
		of = "of " + b.baseline() + "’s " + analysis.StatisticName(g.Metric, g.Statistic)
	case experiment.SubjectLevel, experiment.SubjectDifference:
		of = "of " + analysis.StatisticName(g.Metric, g.Statistic)
	case experiment.SubjectCompletion, experiment.SubjectOutputs:
	}
	return strings.TrimSpace(of + atPoint(g.Point) + summary.Interval(g.Confidence) + ", gate " + g.Gate)
}

func (b *builder) baseline() string { return cmp.Or(analysis.Baseline(b.exp), "the baseline") }

// when the first and the last trial ran.
func (b *builder) when() string {
	if len(b.all) == 0 {
		return ""
	}
	first, last := b.span()
	return first.UTC().Format("2 January 2006, 15:04") + last.UTC().Format(" to 15:04 UTC")
}

// span is when the first and the last trial started.
func (b *builder) span() (first, last time.Time) {
	early := func(a, b *record.Attempt) int { return a.StartedAt.Compare(b.StartedAt) }
	return slices.MinFunc(b.all, early).StartedAt, slices.MaxFunc(b.all, early).StartedAt
}

func verdictName(verdict experiment.Verdict) string { return string(cmp.Or(verdict, "No verdict")) }

// VerdictClass is the style class of a verdict. Charts write it without escaping.
func VerdictClass(verdict experiment.Verdict) string {
	switch verdict {
	case experiment.VerdictGo, experiment.VerdictNoGo, experiment.VerdictInconclusive, experiment.VerdictInvalid:
		return strings.ToLower(string(verdict))
	default:
		return "none"
	}
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
func usedTrials(result *analysis.Analysis, evidence record.Evidence) []*record.Attempt {
	excluded := map[string]bool{}
	for _, e := range result.Excluded {
		excluded[e.Attempt] = true
	}
	var out []*record.Attempt
	for _, attempt := range measured(evidence) {
		if attempt.Outcome == record.Succeeded && !excluded[attempt.ID] && attempt.Wave <= result.Wave {
			out = append(out, attempt)
		}
	}
	return out
}
