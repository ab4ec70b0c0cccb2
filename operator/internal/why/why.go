// Package why computes which causes cover the difference between two arms. It is pure: its input are the costs of the trials of a cause
// wave, its output is a table of causes that exclude each other, with an interval for each, and the row "unexplained".
package why

import (
	"math"
	"slices"
)

// Figure is the quantity whose difference is explained, in seconds per operation.
type Figure string

// Figures.
const (
	WallTime Figure = "wall time"
	CPUTime  Figure = "CPU time"
)

// Cost is the part of a trial's figure that was spent in one place.
type Cost struct {
	// Stack is the place: a class (see classes.go), then functions, the outermost first.
	Stack []string `json:"stack"`
	// Seconds per operation.
	Seconds float64 `json:"seconds"`
}

// Trial has the observations of one trial.
type Trial struct {
	// Block pairs the trials of different arms.
	Block int    `json:"block"`
	Arm   string `json:"arm"`
	// Instrument that observed it. Only trials of the same instrument are compared.
	Instrument string `json:"instrument"`
	// Elapsed is the wall time of the process in seconds, for the overhead of the instrument.
	Elapsed float64 `json:"elapsed"`
	// Seconds is the whole figure per operation.
	Seconds float64 `json:"seconds"`
	// Costs partition the figure as far as the instrument saw it. They are empty for a trial of an instrument that only counts.
	Costs []Cost `json:"costs,omitempty"`
	// Counts per operation by name, such as "page faults". A count that was not measured is absent.
	Counts map[string]float64 `json:"counts,omitempty"`
}

// Question states the subject of an explanation and the certainty that the answer must have.
type Question struct {
	Figure Figure `json:"figure"`
	// Baseline, Candidate and Null are names of arms; Null is the second copy of the baseline.
	Baseline  string `json:"baseline"`
	Candidate string `json:"candidate"`
	Null      string `json:"null"`
	// Instrument whose costs partition the figure.
	Instrument string `json:"instrument"`
	// Uninstrumented is the name of the instrument that attaches nothing.
	Uninstrumented string `json:"uninstrumented"`
	// Judged is the ratio of the candidate to the baseline in the judged trials; nil if they have none.
	Judged *Interval `json:"judged,omitempty"`
	// Resolution is the time that one sample of the instrument stands for, in seconds.
	Resolution float64 `json:"resolution"`
}

// The limits of an explanation.
const (
	// Level is the probability of at least one false cause in an explanation, over all causes it asks about.
	Level = 0.01
	// MinShare is the least share of the difference that a named cause covers.
	MinShare = 0.1
	// MinEffect is the least size of a named cause, relative to the baseline's figure.
	MinEffect = 0.01
	// Tolerance is the relative distance between the judged and the instrumented ratio, beyond their intervals, that withholds nothing.
	Tolerance = 0.02
	// smallestPlace is the share of the figure below which a place is not asked about separately.
	smallestPlace = 0.005
	// EnoughExplained is the half-width of the interval of "unexplained", relative to the difference, at which sampling ends.
	EnoughExplained = 0.1
)

// Interval is an estimate with its confidence interval.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Excludes reports whether a value is outside of the interval.
func (i Interval) Excludes(value float64) bool { return value < i.Low || value > i.High }

// Cause is one part of the difference. Causes exclude each other.
type Cause struct {
	Kind Kind `json:"kind"`
	// Function is the innermost function that the difference is in; empty if the instrument saw none.
	Function string `json:"function,omitempty"`
	// Spread reports whether the cause is the sum of small differences in Function and in the functions that it calls.
	Spread bool `json:"spread,omitempty"`
	// Path is the place in the profile, a class and functions.
	Path []string `json:"path"`
	// Replaces has functions that only the baseline ran in this place.
	Replaces []string `json:"replaces,omitempty"`
	// Baseline and Candidate are mean costs in seconds per operation.
	Baseline  float64 `json:"baseline"`
	Candidate float64 `json:"candidate"`
	// Difference in seconds per operation. Its interval is corrected for the number of causes asked about.
	Difference Interval `json:"difference"`
	// Share of the difference; the absolute shares of all causes and "unexplained" add up to 1. Its ends are those of Difference in the
	// same unit.
	Share Interval `json:"share"`
	// Evidence has counts that belong to the cause, as text.
	Evidence []string `json:"evidence,omitempty"`
}

// Overlap is a view of the difference that overlaps the causes, so that it is never added to them.
type Overlap struct {
	// Function with all that it calls, in all classes.
	Function   string   `json:"function"`
	Difference Interval `json:"difference"`
	Share      float64  `json:"share"`
}

// Count compares a count per operation.
type Count struct {
	Name      string  `json:"name"`
	Baseline  float64 `json:"baseline"`
	Candidate float64 `json:"candidate"`
	// Difference is paired in blocks; its interval is corrected for the number of counts.
	Difference Interval `json:"difference"`
	Differs    bool     `json:"differs"`
}

// Explanation is the answer.
type Explanation struct {
	Question
	Blocks int `json:"blocks"`
	// Asked is the number of places asked about, for which the intervals are corrected.
	Asked int `json:"asked"`
	// BaselineSeconds and CandidateSeconds are the mean figures of the instrumented trials.
	BaselineSeconds  float64  `json:"baselineSeconds"`
	CandidateSeconds float64  `json:"candidateSeconds"`
	Difference       Interval `json:"difference"`
	// Ratio of the candidate to the baseline in the instrumented trials.
	Ratio Interval `json:"ratio"`
	// Withheld is why no cause is named although causes were found; empty otherwise.
	Withheld string `json:"withheld,omitempty"`
	// Causes are named causes, the largest first; empty if the explanation is withheld.
	Causes      []Cause `json:"causes"`
	Unexplained Cause   `json:"unexplained"`
	// NullCauses are causes of the difference between the two copies of the baseline. There should be none.
	NullCauses []Cause   `json:"nullCauses"`
	Overlaps   []Overlap `json:"overlaps,omitempty"`
	Counts     []Count   `json:"counts,omitempty"`
	// MoreBlocks is the estimated number of further blocks until the interval of "unexplained" is narrow enough; 0 if it is.
	MoreBlocks int `json:"moreBlocks"`
	// Rungs are the instruments, also those that were absent.
	Rungs []Rung `json:"rungs,omitempty"`
	// Sentence is the answer in one sentence.
	Sentence string `json:"sentence"`
}

// Rung is one instrument of the ladder.
type Rung struct {
	Name string `json:"name"`
	// Absent is the reason why it was not used; empty if it was.
	Absent string `json:"absent,omitempty"`
	// Overhead is the figure of the baseline under this instrument over that of the uninstrumented trials of the same wave; nil if unknown.
	Overhead *Interval `json:"overhead,omitempty"`
	// Lost is the number of events that the kernel dropped.
	Lost int64 `json:"lost,omitempty"`
	// Notes are limits of this recording, such as programs without symbols.
	Notes []string `json:"notes,omitempty"`
}

// Explain compares the candidate with the baseline. The trials have at least two blocks with trials of both.
func Explain(question Question, trials []Trial, rungs []Rung) *Explanation {
	out := &Explanation{Question: question, Rungs: slices.Clone(rungs), Causes: []Cause{}, NullCauses: []Cause{}}
	for i := range out.Rungs {
		out.Rungs[i].Overhead = overhead(question, out.Rungs[i].Name, trials)
	}
	whole := newPaired(question, trials)
	out.Blocks = len(whole.blocks)
	if out.Blocks < 2 {
		out.Withheld = "fewer than two blocks have trials of the baseline, of its second copy and of the candidate"
		out.Unexplained = Cause{Kind: Unexplained}
		out.Sentence = sentence(out)
		return out
	}
	base, cand, null := whole.figure(question.Baseline), whole.figure(question.Candidate), whole.figure(question.Null)
	out.BaselineSeconds, out.CandidateSeconds = mean(base), mean(cand)
	difference := subtract(cand, base)
	out.Difference = interval(difference, Level, question.Resolution)
	out.Ratio = ratio(cand, base, Level/2)
	found := whole.explain(question.Candidate, difference)
	if math.Abs(found.unexplained.Difference.Value) < 1e-9*out.BaselineSeconds {
		found.unexplained.Difference.Value, found.unexplained.Share.Value = 0, 0 // Only the rounding of sums.
	}
	out.Asked, out.Causes, out.Unexplained = found.asked, found.causes, found.unexplained
	out.NullCauses = whole.explain(question.Null, subtract(null, base)).causes
	out.Counts = counts(question, trials)
	out.Overlaps = whole.overlaps(out.Causes)
	addEvidence(out)
	out.MoreBlocks = moreBlocks(found.rest, out.scale())
	out.Withheld = withheld(out)
	if out.Withheld != "" {
		out.Causes, out.Overlaps = []Cause{}, nil
		out.Unexplained = Cause{Kind: Unexplained, Baseline: out.BaselineSeconds, Candidate: out.CandidateSeconds,
			Difference: out.Difference, Share: Interval{1, 1, 1}}
	}
	out.Sentence = sentence(out)
	return out
}

// scale is the total of the absolute sizes of the causes and of the unexplained part.
func (e *Explanation) scale() float64 {
	total := math.Abs(e.Unexplained.Difference.Value)
	for _, cause := range e.Causes {
		total += math.Abs(cause.Difference.Value)
	}
	return total
}

// withheld returns why the found causes must not be named.
func withheld(e *Explanation) string {
	if len(e.NullCauses) > 0 {
		return "the second copy of the baseline differs from the baseline (" + e.NullCauses[0].Name() + "), so that the instruments do not " +
			"separate causes from noise here"
	}
	if e.Judged == nil {
		return ""
	}
	if distance, within := distance(e.Ratio, *e.Judged); distance > within {
		return "the ratio under the instruments is " + ratioText(e.Ratio) + ", and the interval of its distance from the judged " +
			ratioText(*e.Judged) + " excludes equality: the instruments changed the difference"
	}
	return ""
}

// distance returns the distance of two ratios on a logarithmic scale, and the largest one that their intervals and Tolerance allow.
func distance(a, b Interval) (between, within float64) {
	half := func(of Interval) float64 { return math.Log(of.High/of.Low) / 2 }
	return math.Abs(math.Log(a.Value / b.Value)), math.Hypot(half(a), half(b)) + math.Log1p(Tolerance)
}
