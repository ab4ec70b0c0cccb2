// Package design decides what to measure next. It is pure and knows neither clusters nor the kinds that people write: an experiment, the
// waves that it had and what their analysis found give the next step, and a step gives a wave. When to act on it is for others to decide.
package design

import (
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Course is how far an experiment has come: its waves, all of them analysed, and what the newest analysis found. Whoever measures asks
// it the same two things in turn, Next and Lay. Follow does so to the end; the operator reads a course from the ledger in every pass.
type Course struct {
	Experiment *experiment.Experiment
	Waves      []record.Wave
	Found      Findings
}

// Begin is the course of an experiment of which nothing was measured yet.
func Begin(exp *experiment.Experiment) *Course { return &Course{Experiment: exp} }

// Next decides how the design goes on. It is the whole of the stopping rule: the operator, the local executor and the calibration ask
// the same function. The verdict plays no part in it, but to ask for its confirmation.
func (c *Course) Next() Step {
	t := &target{exp: c.Experiment, found: c.Found, tally: count(c.Waves, c.Found.Unrun)}
	step := t.next(c.Waves)
	step.Earlier = begun(c.Waves)
	step.BuildTurns = buildTurns(c.Experiment, c.Waves, step.Purpose, c.Found)
	return step
}

// Lay lays out a step on lanes as the next wave, or as many of its blocks as fit: the design asks again for those that are missing. It
// fails when not even one does. Fits may be nil.
func (c *Course) Lay(step Step, lanes []Lane, fits Fits) (*record.Wave, error) {
	return buildFitting(c.Experiment, len(c.Waves), c.Blocks(), step, lanes, fits)
}

// Blocks counts those of all waves.
func (c *Course) Blocks() int {
	count := 0
	for i := range c.Waves {
		count += len(c.Waves[i].Blocks)
	}
	return count
}

// Execute measures a wave, which is the last one of the course by then, and returns what an analysis of all waves finds. Stopped means
// that no other wave can follow.
type Execute func(wave *record.Wave, why string) (found Findings, stopped bool, err error)

// Follow measures wave after wave until the design has what it asks for or execute was stopped, and returns what is asked for then.
func (c *Course) Follow(lanes []Lane, execute Execute) (Step, error) {
	for stopped := false; ; {
		step := c.Next()
		// There is always a first wave, if only to say why it cannot be laid out.
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
