// Package bisect makes the runs that a search for the revisions that changed a series takes, and its answer of what they found. Package
// locate decides which revisions are measured; here they are arms of an ordinary run, and their levels come from its analysis.
//
// A search is a value. Whoever keeps it as JSON after each run can go on from there, on another day or in another process.
package bisect

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/locate"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
)

// Search is what is asked, and all that was measured for it.
type Search struct {
	// Key is the series whose level is followed.
	Key series.Key `json:"key"`
	// Revisions in their order, from the last one before the change to one with it.
	Revisions []points.Revision `json:"revisions"`
	Question  locate.Question   `json:"question"`
	// Change that is located; empty where nobody has recorded one.
	Change string            `json:"change,omitempty"`
	Done   []locate.Measured `json:"done,omitempty"`
	// Ledgers of the waves, in their order; empty for one that could not be run.
	Ledgers []string `json:"ledgers,omitempty"`
	// Fresh are the culprits against the revision before them, in the blocks of the last wave alone.
	Fresh []Fresh `json:"fresh,omitempty"`
}

// Fresh is one revision over another in the blocks of one wave.
type Fresh struct {
	After int   `json:"after"`
	At    int   `json:"at"`
	Ratio Ratio `json:"ratio"`
}

// Ratio is an estimate of a series, as programs read it.
type Ratio struct {
	LogRatio float64 `json:"logRatio"`
	SE       float64 `json:"se"`
	DF       float64 `json:"df"`
	Blocks   int     `json:"blocks"`
}

// Defaults are what a search asks for unless it is told otherwise: the blocks, waves and certainty that the rehearsals count errors with.
func Defaults(revisions int) locate.Question {
	return locate.Question{
		Revisions: revisions, Arms: locate.MostArms, Blocks: 10, Between: Layout * Layout, Certain: 0.95, Waves: 6,
	}
}

// Layout is what builds of equal speed differ by where no history says it: 0.3 %, as in the rehearsals.
const Layout = 0.003

// Check reports what cannot be searched.
func (s *Search) Check() error {
	if err := s.Key.Check(); err != nil {
		return err
	}
	if s.Question.Revisions != len(s.Revisions) {
		return fmt.Errorf("revisions: found %d, and the question is about %d", len(s.Revisions), s.Question.Revisions)
	}
	seen := map[string]bool{}
	for i, r := range s.Revisions {
		switch {
		case r.Revision == "":
			return fmt.Errorf("revisions[%d]: found no name; name the state of the program, such as the hash of a commit", i)
		case seen[r.Revision]:
			return fmt.Errorf("revisions[%d]: found %q a second time; each is one step of the history", i, r.Revision)
		}
		seen[r.Revision] = true
	}
	return s.Question.Check()
}

// mostWaves bounds what a search is read with: every step goes through all waves there were.
const mostWaves = 1000

// Read reports what cannot be a search that was kept: whoever goes on with it looks up its revisions by their numbers. One that was stopped
// need not be one that Check lets begin.
func (s *Search) Read() error {
	q := s.Question
	q.Waves = max(1, q.Waves)
	if err := q.Check(); err != nil {
		return fmt.Errorf("question: %w", err)
	}
	switch {
	case q.Revisions != len(s.Revisions):
		return fmt.Errorf("revisions: found %d, and the question is about %d", len(s.Revisions), q.Revisions)
	case q.Arms > locate.MostArms:
		return fmt.Errorf("question: arms: found %d; a run has at most %d", q.Arms, locate.MostArms)
	case len(s.Done) > mostWaves:
		return fmt.Errorf("done: found %d waves; at most %d are gone on with", len(s.Done), mostWaves)
	}
	for i, m := range s.Done {
		if found := max(len(m.Wave.Revisions), len(m.Levels)); found > q.Arms {
			return fmt.Errorf("done[%d]: found %d revisions; a wave has at most %d", i, found, q.Arms)
		}
		seen := map[int]bool{}
		for _, l := range m.Levels {
			if l.Revision < 0 || l.Revision >= q.Revisions || seen[l.Revision] {
				return fmt.Errorf("done[%d]: found a level of revision %d; each is one of %d, and there once", i, l.Revision, q.Revisions)
			}
			seen[l.Revision] = true
		}
	}
	return nil
}

// Next is what comes next: a wave to measure, or the answer.
func (s *Search) Next() locate.Step { return s.Question.Next(s.Done) }

// Arm is the name of a revision in the runs of a search.
func Arm(revision int) string { return fmt.Sprintf("r%d", revision) }

// MostTrials is the most that a run may have as its budget: a run that has more arms or blocks than a point is bounded by its time.
const MostTrials = 100000

// Spec is the run of a wave: the spec by which points of the series are measured, with the revisions in the place of its arms. Each is made
// from the arm head by fill. The first revision is the baseline. Those in failed are left out.
func (s *Search) Spec(of assayv1alpha1.BenchmarkRunSpec, wave *locate.Wave, failed map[int]string,
	fill func(arm *assayv1alpha1.Arm, revision points.Revision)) (assayv1alpha1.BenchmarkRunSpec, error) {
	head := slices.IndexFunc(of.Arms, func(arm assayv1alpha1.Arm) bool { return arm.Name == points.Head })
	if head < 0 {
		return of, fmt.Errorf("arms: found none with the name %q: the arms of a search are made from it", points.Head)
	}
	spec := *of.DeepCopy()
	spec.Arms = nil
	for _, r := range wave.Revisions {
		if failed[r] != "" {
			continue
		}
		arm := *of.Arms[head].DeepCopy()
		arm.Name, arm.Baseline = Arm(r), r == 0
		fill(&arm, s.Revisions[r])
		spec.Arms = append(spec.Arms, arm)
	}
	Wave(&spec, wave.Blocks)
	return spec, nil
}

// Wave makes the run of a wave of so many blocks from the spec of a point whose arms are the revisions already.
func Wave(spec *assayv1alpha1.BenchmarkRunSpec, blocks int) {
	// A gate says what is followed. It judges every arm, and nobody reads that.
	for i := range spec.Gates {
		spec.Gates[i].Candidate = ""
	}
	spec.Predictions = nil
	Blocks(spec, blocks)
}

// Blocks gives a run so many blocks, as a wave or a confirmation needs them. It has more arms than a point and measures them more often:
// what it may cost is bounded by the time that the template gives a run.
func Blocks(spec *assayv1alpha1.BenchmarkRunSpec, blocks int) {
	spec.Design.Blocks = assayv1alpha1.Blocks{Min: int32(blocks), Max: int32(blocks)}
	spec.Design.Stop, spec.Design.Confirm = nil, nil
	spec.Budget.Trials = MostTrials
}

// Ran is a wave that has been measured, as far as it could be.
type Ran struct {
	Wave *locate.Wave
	// Failed are the revisions that were not there to be measured, with the reasons.
	Failed map[int]string
	// Experiment and Analysis are those of its run; nil where an end of the history is among Failed, so that there was none.
	Experiment *experiment.Experiment
	Analysis   *analysis.Analysis
	Ledger     string
}

// Add adds what a wave found.
func (s *Search) Add(ran Ran) error {
	step := s.Next()
	if step.Wave == nil || !slices.Equal(step.Wave.Revisions, ran.Wave.Revisions) || step.Wave.Blocks != ran.Wave.Blocks {
		return fmt.Errorf("the search waits for %+v, and %+v was measured", step.Wave, ran.Wave)
	}
	s.Done = append(s.Done, locate.Measured{Wave: *ran.Wave, Levels: s.levels(&ran)})
	s.Ledgers = append(s.Ledgers, ran.Ledger)
	for _, c := range s.Next().Culprits {
		over, under := []string{Arm(c.At)}, []string{Arm(c.After)}
		if ratio, err := points.Difference(ran.Experiment, ran.Analysis, s.Key, over, under); err == nil {
			s.Fresh = append(s.Fresh, Fresh{c.After, c.At, Ratio(ratio)})
		}
	}
	return nil
}

// levels are those of the revisions of a wave about their mean in each block. What arms have in common goes with it, and the error of one
// is estimated from all: the sum of the squared errors about a mean has one degree of freedom less than there are arms.
func (s *Search) levels(ran *Ran) []locate.Level {
	out := make([]locate.Level, 0, len(ran.Wave.Revisions))
	if ran.Analysis == nil {
		for _, r := range ran.Wave.Revisions {
			out = append(out, locate.Level{Revision: r, Failed: ran.Failed[r] != "", Why: ran.Failed[r]})
		}
		return out
	}
	var measured []string
	for _, r := range ran.Wave.Revisions {
		why := ran.Failed[r]
		if why == "" {
			why = s.unmeasured(ran, r)
		}
		if why == "" {
			measured = append(measured, Arm(r))
		}
		out = append(out, locate.Level{Revision: r, Failed: why != "", Why: why})
	}
	sum := 0.0
	for i := range out {
		if out[i].Failed {
			continue
		}
		level, err := points.Apart(ran.Experiment, ran.Analysis, s.Key, []string{Arm(out[i].Revision)}, measured)
		if err != nil {
			out[i].Failed, out[i].Why = true, err.Error()
			continue
		}
		out[i].Log = level.LogRatio
		sum += level.SE * level.SE
	}
	for i := range out {
		if !out[i].Failed {
			// One that is left alone is about itself, which has no error.
			out[i].SE = math.Sqrt(sum / float64(max(1, len(measured)-1)))
		}
	}
	return out
}

// unmeasured is why the run of a wave has no level of a revision; empty where it has one.
func (s *Search) unmeasured(ran *Ran, revision int) string {
	if why := points.Unanswered(ran.Analysis, Arm(revision)); why != "" {
		return why
	}
	if revision == 0 {
		return "" // It is the baseline: where it is missing, every other one has no ratio.
	}
	if _, err := points.Difference(ran.Experiment, ran.Analysis, s.Key, []string{Arm(revision)}, []string{Arm(0)}); err != nil {
		return err.Error()
	}
	return ""
}

// Answer is what a search found, for people and programs.
type Answer struct {
	// Culprits in the order of the history. None of them, and Why, is an answer as well.
	Culprits []Culprit `json:"culprits"`
	Why      string    `json:"why,omitempty"`
	// Skipped are the revisions that could not be measured.
	Skipped []Skipped `json:"skipped,omitempty"`
	Waves   int       `json:"waves"`
	Ledgers []string  `json:"ledgers,omitempty"`
}

// Culprit is one commit, or a range of which one did it.
type Culprit struct {
	// After is the last revision without the change, and At the first one that has it for certain.
	After string `json:"after"`
	At    string `json:"at"`
	// Among are the revisions of which one made the change, the last of them At; one is a culprit, more are a range.
	Among       []string `json:"among"`
	Probability float64  `json:"probability"`
	// Ratio is the level after the change over that before it, by all revisions of the last wave around it.
	Ratio float64 `json:"ratio"`
	// Fresh is At over After in the same blocks, which no decision of the search rests on; nil where it has no interval.
	Fresh *Ratio `json:"fresh,omitempty"`
}

// Skipped is a revision that could not be measured.
type Skipped struct {
	Revision string `json:"revision"`
	Why      string `json:"why"`
}

// Answer is what a search that has ended found.
func (s *Search) Answer() (*Answer, error) {
	step := s.Next()
	if step.Wave != nil {
		return nil, errors.New("the search has not ended: a wave is to be measured")
	}
	out := &Answer{Culprits: []Culprit{}, Why: step.Why, Waves: len(s.Done), Ledgers: s.Ledgers}
	for _, c := range step.Culprits {
		culprit := Culprit{
			After: s.Revisions[c.After].Revision, At: s.Revisions[c.At].Revision, Probability: c.Probability, Ratio: series.Ratio(c.Shift),
		}
		for _, r := range s.Revisions[c.After+1 : c.At+1] {
			culprit.Among = append(culprit.Among, r.Revision)
		}
		if i := slices.IndexFunc(s.Fresh, func(f Fresh) bool { return f.After == c.After && f.At == c.At }); i >= 0 {
			culprit.Fresh = &s.Fresh[i].Ratio
		}
		out.Culprits = append(out.Culprits, culprit)
	}
	seen := map[int]bool{}
	for _, m := range s.Done {
		for _, l := range m.Levels {
			if l.Failed && !seen[l.Revision] {
				seen[l.Revision] = true
				out.Skipped = append(out.Skipped, Skipped{s.Revisions[l.Revision].Revision, l.Why})
			}
		}
	}
	return out, nil
}

// Story is an answer in a line, for the history of a change.
func (a *Answer) Story() string {
	if len(a.Culprits) == 0 {
		return fmt.Sprintf("no culprit was found in %d waves: %s", a.Waves, a.Why)
	}
	var parts []string
	for _, c := range a.Culprits {
		parts = append(parts, fmt.Sprintf("%s: %.4gx, probability %.3f", c.Name(), c.Ratio, c.Probability))
	}
	return strings.Join(parts, "; ")
}

// Name is the culprit, or the range of which one is.
func (c *Culprit) Name() string {
	if len(c.Among) == 1 {
		return c.At
	}
	return fmt.Sprintf("one of %d revisions after %s up to %s", len(c.Among), c.After, c.At)
}

// Names of the culprits, the likeliest first.
func (a *Answer) Names() []string {
	sorted := slices.Clone(a.Culprits)
	slices.SortStableFunc(sorted, func(x, y Culprit) int { return cmp.Compare(y.Probability, x.Probability) })
	var out []string
	for i := range sorted {
		out = append(out, sorted[i].Name())
	}
	return out
}
