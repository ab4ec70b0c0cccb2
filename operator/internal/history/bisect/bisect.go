// Package bisect creates the runs of a search for the revisions that changed a series, and reports its answer. Package locate selects the
// revisions to measure. Here they are arms of an ordinary run, and their levels come from its analysis.
//
// A search is a value. Stored as JSON after each run, it can be resumed later or by another process.
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

// Search is the question and all measurements made for it.
type Search struct {
	// Key is the series whose level is compared.
	Key series.Key `json:"key"`
	// Revisions in their order, from the last one before the change to one with it.
	Revisions []points.Revision `json:"revisions"`
	Question  locate.Question   `json:"question"`
	// Change that is located; empty if none is recorded.
	Change string            `json:"change,omitempty"`
	Done   []locate.Measured `json:"done,omitempty"`
	// Ledgers of the waves, in order; empty for a wave that could not be run.
	Ledgers []string `json:"ledgers,omitempty"`
	// Fresh compares each culprit with its predecessor, using only the blocks of the last wave.
	Fresh []Fresh `json:"fresh,omitempty"`
}

// Fresh compares two revisions within the blocks of one wave.
type Fresh struct {
	After int             `json:"after"`
	At    int             `json:"at"`
	Ratio series.Estimate `json:"ratio"`
}

// Defaults returns the default number of blocks and waves and the default certainty. The rehearsals measure error rates with the same
// values.
func Defaults(revisions int) locate.Question {
	return locate.Question{
		Revisions: revisions, Arms: locate.MostArms, Blocks: 10, Between: Layout * Layout, Certain: 0.95, Waves: 6,
	}
}

// Layout is the standard deviation between builds of equal speed, used if there is no history to estimate it from: 0.3 %, as in the
// rehearsals.
const Layout = 0.003

// Check returns an error if the search is invalid.
func (s *Search) Check() error {
	if err := s.Key.Check(); err != nil {
		return err
	}
	if s.Question.Revisions != len(s.Revisions) {
		return fmt.Errorf("revisions: found %d, but the question has %d", len(s.Revisions), s.Question.Revisions)
	}
	seen := map[string]bool{}
	for i, r := range s.Revisions {
		switch {
		case r.Revision == "":
			return fmt.Errorf("revisions[%d]: the name is empty; name the state of the program, such as the hash of a commit", i)
		case seen[r.Revision]:
			return fmt.Errorf("revisions[%d]: found %q twice; each revision may occur once", i, r.Revision)
		}
		seen[r.Revision] = true
	}
	return s.Question.Check()
}

// mostWaves bounds the waves of a stored search, because every step iterates over all of them.
const mostWaves = 1000

// Read validates a stored search before it is resumed, because its revisions are used as indexes. A stopped search may violate the
// stricter rules of Check.
func (s *Search) Read() error {
	q := s.Question
	q.Waves = max(1, q.Waves)
	if err := q.Check(); err != nil {
		return fmt.Errorf("question: %w", err)
	}
	switch {
	case q.Revisions != len(s.Revisions):
		return fmt.Errorf("revisions: found %d, but the question has %d", len(s.Revisions), q.Revisions)
	case q.Arms > locate.MostArms:
		return fmt.Errorf("question: arms: found %d; a run has at most %d", q.Arms, locate.MostArms)
	case len(s.Done) > mostWaves:
		return fmt.Errorf("done: found %d waves; at most %d are allowed", len(s.Done), mostWaves)
	}
	for i, m := range s.Done {
		if found := max(len(m.Wave.Revisions), len(m.Levels)); found > q.Arms {
			return fmt.Errorf("done[%d]: found %d revisions; a wave has at most %d", i, found, q.Arms)
		}
		seen := map[int]bool{}
		for _, l := range m.Levels {
			if l.Revision < 0 || l.Revision >= q.Revisions || seen[l.Revision] {
				return fmt.Errorf("done[%d]: found a level of revision %d; each must be below %d and occur "+
					"once", i, l.Revision, q.Revisions)
			}
			seen[l.Revision] = true
		}
	}
	return nil
}

// Next returns the next step, which is a wave to measure or the answer.
func (s *Search) Next() locate.Step { return s.Question.Next(s.Done) }

// Arm returns the arm name of a revision in the runs of a search.
func Arm(revision int) string { return fmt.Sprintf("r%d", revision) }

// MostTrials is the largest trial budget that a run may have. A run that has more arms or blocks than a point is bounded by its time
// instead.
const MostTrials = 100000

// Spec builds the run of a wave from the spec that measures points of the series. Revisions replace its arms; each is made from the arm
// head by fill, and the first is the baseline. Revisions in failed are omitted.
func (s *Search) Spec(of assayv1alpha1.BenchmarkRunSpec, wave *locate.Wave, failed map[int]string,
	fill func(arm *assayv1alpha1.Arm, revision points.Revision)) (assayv1alpha1.BenchmarkRunSpec, error) {
	head := slices.IndexFunc(of.Arms, func(arm assayv1alpha1.Arm) bool { return arm.Name == points.Head })
	if head < 0 {
		return of, fmt.Errorf("arms: found none named %q, from which the arms of a search are made", points.Head)
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

// Wave builds the run of a wave with the given number of blocks from the spec of a point whose arms are already the revisions.
func Wave(spec *assayv1alpha1.BenchmarkRunSpec, blocks int) {
	// Gates select the metrics to analyze. The arms are revisions to compare, so that none of them may be Go or the best.
	for i := range spec.Gates {
		spec.Gates[i].Candidate, spec.Gates[i].Severity = "", assayv1alpha1.Advisory
	}
	spec.Predictions = nil
	Blocks(spec, blocks)
}

// Blocks sets the number of blocks for a wave or a confirming run. Such a run has more arms and trials than a point, so its cost is
// bounded by the template's time limit only.
func Blocks(spec *assayv1alpha1.BenchmarkRunSpec, blocks int) {
	spec.Design.Blocks = assayv1alpha1.Blocks{Min: int32(blocks), Max: int32(blocks)}
	spec.Design.Stop, spec.Design.Confirm = nil, nil
	spec.Budget.Trials = MostTrials
}

// Ran is the result of a wave, possibly partial.
type Ran struct {
	Wave *locate.Wave
	// Failed maps revisions that could not be measured to the reasons.
	Failed map[int]string
	// Experiment and Analysis of the run; nil if an end of the history is among Failed, in which case nothing was measured.
	Experiment *experiment.Experiment
	Analysis   *analysis.Analysis
	Ledger     string
}

// Add records the result of a wave.
func (s *Search) Add(ran Ran) error {
	step := s.Next()
	if step.Wave == nil || !slices.Equal(step.Wave.Revisions, ran.Wave.Revisions) || step.Wave.Blocks != ran.Wave.Blocks {
		return fmt.Errorf("the search waits for wave %+v, but wave %+v was measured", step.Wave, ran.Wave)
	}
	s.Done = append(s.Done, locate.Measured{Wave: *ran.Wave, Levels: s.levels(&ran)})
	s.Ledgers = append(s.Ledgers, ran.Ledger)
	for _, c := range s.Next().Culprits {
		over, under := []string{Arm(c.At)}, []string{Arm(c.After)}
		if ratio, err := points.Difference(ran.Experiment, ran.Analysis, s.Key, over, under); err == nil {
			s.Fresh = append(s.Fresh, Fresh{c.After, c.At, ratio})
		}
	}
	return nil
}

// levels returns the level of each revision relative to the mean of all in each block. Subtracting the mean removes the common block
// effect. The error of each level is pooled over all of them, and the sum of squares about a mean has one degree of freedom less than
// there are arms.
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
		level, err := points.DifferenceWithinSide(ran.Experiment, ran.Analysis, s.Key, []string{Arm(out[i].Revision)}, measured)
		if err != nil {
			out[i].Failed, out[i].Why = true, err.Error()
			continue
		}
		out[i].Log = level.LogRatio
		sum += level.SE * level.SE
	}
	for i := range out {
		if !out[i].Failed {
			// A single arm equals its own mean, so its error is 0.
			out[i].SE = math.Sqrt(sum / float64(max(1, len(measured)-1)))
		}
	}
	return out
}

// unmeasured returns why the run of a wave has no level of a revision, or "".
func (s *Search) unmeasured(ran *Ran, revision int) string {
	if why := points.Unanswered(ran.Analysis, Arm(revision)); why != "" {
		return why
	}
	if revision == 0 {
		return "" // The baseline; without it no other revision has a ratio.
	}
	if _, err := points.Difference(ran.Experiment, ran.Analysis, s.Key, []string{Arm(revision)}, []string{Arm(0)}); err != nil {
		return err.Error()
	}
	return ""
}

// Answer is the result of a search.
type Answer struct {
	// Culprits in the order of the history. An empty list with Why is a valid answer.
	Culprits []Culprit `json:"culprits"`
	Why      string    `json:"why,omitempty"`
	// Skipped lists the revisions that could not be measured.
	Skipped []Skipped `json:"skipped,omitempty"`
	Waves   int       `json:"waves"`
	Ledgers []string  `json:"ledgers,omitempty"`
}

// Culprit is one commit, or a range of commits that contains it.
type Culprit struct {
	// After is the last revision without the change, and At the first one that certainly has it.
	After string `json:"after"`
	At    string `json:"at"`
	// Among lists the candidate revisions, the last of them At. One entry is an identified culprit, more are a range.
	Among       []string `json:"among"`
	Probability float64  `json:"probability"`
	// Ratio is the level after the change over the level before it, estimated from all adjacent revisions of the last wave.
	Ratio float64 `json:"ratio"`
	// Fresh is At over After in the same blocks. It is independent of the decisions of the search; nil if it has no interval.
	Fresh *series.Estimate `json:"fresh,omitempty"`
}

// Skipped is a revision that could not be measured.
type Skipped struct {
	Revision string `json:"revision"`
	Why      string `json:"why"`
}

// Answer returns the result of a completed search.
func (s *Search) Answer() (*Answer, error) {
	step := s.Next()
	if step.Wave != nil {
		return nil, errors.New("the search has not ended; its next wave is not measured yet")
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

// Story formats an answer in one line, for the history of a change.
func (a *Answer) Story() string {
	if len(a.Culprits) == 0 {
		return fmt.Sprintf("found no culprit in %d waves: %s", a.Waves, a.Why)
	}
	var parts []string
	for _, c := range a.Culprits {
		parts = append(parts, fmt.Sprintf("%s: %.4gx, probability %.3f", c.Name(), c.Ratio, c.Probability))
	}
	return strings.Join(parts, "; ")
}

// Name formats the culprit or the range that contains it.
func (c *Culprit) Name() string {
	if len(c.Among) == 1 {
		return c.At
	}
	return fmt.Sprintf("one of %d revisions after %s up to %s", len(c.Among), c.After, c.At)
}

// Names of the culprits, most likely first.
func (a *Answer) Names() []string {
	sorted := slices.Clone(a.Culprits)
	slices.SortStableFunc(sorted, func(x, y Culprit) int { return cmp.Compare(y.Probability, x.Probability) })
	var out []string
	for i := range sorted {
		out = append(out, sorted[i].Name())
	}
	return out
}
