// Package design decides what to measure next. It is pure, and depends on neither Kubernetes nor the API: from an experiment, its waves so
// far and the findings of their analysis it computes the next step, and from a step a wave. Package plan decides when to act on it.
package design

import (
	"errors"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Course is the state of an experiment: its waves, all of them analysed, and the findings of the newest analysis. Next and Lay are called
// alternately. Follow does so to the end; the operator reads the course from the ledger in every reconcile.
type Course struct {
	Experiment *experiment.Experiment
	Waves      []record.Wave
	Found      Findings
}

// Begin returns the course of an experiment without waves.
func Begin(exp *experiment.Experiment) *Course { return &Course{Experiment: exp} }

// Next decides the next step. It is the whole of the stopping rule, for the operator, the local executor and the calibration alike. It does
// not depend on the verdict, except that a verdict may have to be confirmed.
func (c *Course) Next() Step {
	t := &target{exp: c.Experiment, findings: c.Found, tally: count(c.Waves, c.Found.Unrun)}
	step := t.next(c.Waves)
	step.Earlier = begun(c.Waves)
	step.BuildTurns = buildTurns(c.Experiment, c.Waves, step.Purpose, c.Found)
	return step
}

// Lay lays out a step on lanes as the next wave, or as many of its blocks as fit: the next step asks for the others. It fails when not even
// one block fits. Fits may be nil.
func (c *Course) Lay(step Step, lanes []Lane, fits Fits) (*record.Wave, error) {
	before := TooLarge{}
	for {
		wave, err := BuildStep(c.Experiment, len(c.Waves), c.Blocks(), step, lanes)
		if err == nil && fits != nil {
			err = fits(c.Experiment, wave, lanes)
		}
		var large *TooLarge
		if !errors.As(err, &large) || step.Blocks <= 1 {
			return wave, err
		}
		// The size is mostly proportional to the number of blocks, so reduce it by the ratio of the allowed size to the size found.
		fewer := step.Blocks * large.Allowed / large.Found
		// If that does not suffice, estimate the size per block from the last attempt, because the fixed part may be nearly all of the limit.
		if per := before.Found - large.Found; before.What == large.What && per > 0 {
			fewer = min(fewer, step.Blocks-((large.Found-large.Allowed)*(before.Blocks-step.Blocks)+per-1)/per)
		}
		before, step.Blocks = TooLarge{What: large.What, Found: large.Found, Blocks: step.Blocks}, max(1, fewer)
	}
}

// Blocks counts the blocks of all waves.
func (c *Course) Blocks() int {
	count := 0
	for i := range c.Waves {
		count += len(c.Waves[i].Blocks)
	}
	return count
}

// Execute measures a wave, which the course already has, and returns the findings of an analysis of all waves. Stopped means that no
// further wave can be executed.
type Execute func(wave *record.Wave, why string) (findings Findings, stopped bool, err error)

// Follow executes wave after wave until the design is satisfied or execute was stopped, and returns the step that is next then.
func (c *Course) Follow(lanes []Lane, execute Execute) (Step, error) {
	for stopped := false; ; {
		step := c.Next()
		// Without any wave, laying out the first one returns the error that explains why it cannot be.
		if stopped || step.Done && len(c.Waves) > 0 {
			return step, nil
		}
		wave, err := c.Lay(step, lanes, nil)
		if err != nil {
			return step, err
		}
		c.Waves = append(c.Waves, *wave)
		if c.Found, stopped, err = execute(wave, step.Why); err != nil {
			return step, err
		}
	}
}
