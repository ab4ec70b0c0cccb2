package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Headline is the figure of the gate that a verdict rests on, for display beside the verdict.
type Headline struct {
	Gate      string             `json:"gate"`
	Candidate string             `json:"candidate"`
	Point     string             `json:"point,omitempty"`
	Outcome   experiment.Verdict `json:"outcome"`
	// Estimate with its interval at Confidence.
	Estimate   *Estimate `json:"estimate"`
	Confidence float64   `json:"confidence"`
	// Text has all of it: "1.053x [1.021, 1.086] (99.5 %), worth-it at batchSize=8".
	Text string `json:"text"`
}

// Deciding returns the gate that the verdict on a candidate rests on; nil if no Blocking gate of the candidate has an outcome that explains
// the verdict.
//
// Of the gates with the outcome of the verdict it is the one with the least room: the gate that passed most narrowly for Go, the clearest
// miss for NoGo, and the gate closest to a miss for Inconclusive. Missed gates on outputs precede those on completion, and these precede
// figures, because neither a figure of different work nor one of the remaining trials is an answer. Elsewhere figures precede them. An
// Inconclusive candidate whose gates are all decided lost its decision to a correction or to its confirming blocks, and rests on the
// decided gate with the least room.
func Deciding(candidate string, verdict experiment.Verdict, gates []GateResult) *GateResult {
	of := func(fits func(*GateResult) bool) *GateResult {
		var out *GateResult
		for i := range gates {
			gate := &gates[i]
			if gate.Candidate == candidate && gate.Severity == experiment.Blocking && fits(gate) &&
				(out == nil || precedes(gate, out, verdict)) {
				out = gate
			}
		}
		return out
	}
	if verdict == "" {
		return nil
	}
	found := of(func(gate *GateResult) bool { return gate.Outcome == verdict })
	if found == nil && verdict == experiment.VerdictInconclusive {
		found = of(func(gate *GateResult) bool { return gate.Outcome != experiment.VerdictInvalid && gate.Room != nil })
	}
	return found
}

// precedes reports whether the verdict rests on gate a instead of b. Of equal gates it rests on the first.
func precedes(a, b *GateResult, verdict experiment.Verdict) bool {
	if order := cmp.Compare(rank(a, verdict), rank(b, verdict)); order != 0 {
		return order < 0
	}
	return a.Room != nil && b.Room != nil && *a.Room < *b.Room
}

// rank orders kinds of gates.
func rank(gate *GateResult, verdict experiment.Verdict) int {
	switch subject := gate.Op.Subject(); {
	case verdict == experiment.VerdictNoGo && subject == experiment.SubjectOutputs:
		return 0
	case verdict == experiment.VerdictNoGo && subject == experiment.SubjectCompletion:
		return 1
	case gate.Room != nil:
		return 2
	case subject == experiment.SubjectOutputs:
		return 5
	case subject == experiment.SubjectCompletion:
		return 4
	default:
		return 3
	}
}

// HeadlineOf returns the headline of a gate; nil for one without an interval.
func HeadlineOf(exp *experiment.Experiment, gate *GateResult) *Headline {
	if gate == nil || gate.Estimate == nil || gate.Estimate.Low == nil || gate.Estimate.High == nil {
		return nil
	}
	return &Headline{
		Gate: gate.Gate, Candidate: gate.Candidate, Point: gate.Point, Outcome: gate.Outcome, Estimate: gate.Estimate,
		Confidence: gate.Confidence, Text: headlineText(exp, gate, gate.Title()),
	}
}

func headlineText(exp *experiment.Experiment, gate *GateResult, title string) string {
	return fmt.Sprintf("%s (%s %%), %s", FigureText(exp, gate), quantity.InPercent(gate.Confidence), title)
}

// RunHeadline returns the headline of the candidate that stands for the run, with its name if several candidates have a verdict.
func RunHeadline(exp *experiment.Experiment, a *Analysis) *Headline {
	lead := a.Leading()
	if lead == nil || lead.Headline == nil {
		return nil
	}
	out := *lead.Headline
	judged := slices.DeleteFunc(slices.Clone(a.Candidates), func(c Candidate) bool { return c.Verdict == "" })
	if gate := a.GateOf(&out); gate != nil && len(judged) > 1 {
		named := *gate
		named.Gate += " of " + gate.Candidate
		out.Text = headlineText(exp, gate, named.Title())
	}
	return &out
}

// FigureText formats the estimate of a gate in the gate's unit: shares of completed trials in per cent, differences with their direction.
func FigureText(exp *experiment.Experiment, gate *GateResult) string {
	e := gate.Estimate
	switch {
	case e == nil:
		return Describe(nil)
	case gate.Op.Subject() == experiment.SubjectCompletion && e.Low != nil && e.High != nil:
		return fmt.Sprintf("%s of trials complete [%s, %s]", quantity.PercentTo(e.Value, 1), quantity.PercentTo(*e.Low, 1),
			quantity.PercentTo(*e.High, 1))
	case gate.Op.OfDifference():
		return Describe(e) + MoreThan(exp)
	default:
		return Describe(e)
	}
}

// GateOf returns the gate of a headline; nil if the analysis has no such gate.
func (a *Analysis) GateOf(of *Headline) *GateResult {
	if of == nil {
		return nil
	}
	i := slices.IndexFunc(a.Gates, func(gate GateResult) bool {
		return gate.Gate == of.Gate && gate.Candidate == of.Candidate && gate.Point == of.Point
	})
	if i < 0 {
		return nil
	}
	return &a.Gates[i]
}

// Leading returns the candidate that stands for the run: the best one, or the first with the verdict of the run; nil without one.
func (a *Analysis) Leading() *Candidate {
	name := a.Best
	if name == "" && len(a.BestOf) > 0 {
		name = a.BestOf[0]
	}
	i := slices.IndexFunc(a.Candidates, func(c Candidate) bool {
		return name != "" && c.Name == name || name == "" && c.Verdict != "" && c.Verdict == a.Verdict
	})
	if i < 0 {
		return nil
	}
	return &a.Candidates[i]
}
