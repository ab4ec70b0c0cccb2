// Package calibrate finds out how often the analysis is wrong: it runs many experiments whose truth is known and counts.
package calibrate

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/calibration/rehearse"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// Effects are the true differences tried, relative. In every other run the candidate is slower by as much, else faster, so
// that both kinds of wrong verdict can happen.
var Effects = []float64{0, 0.01, 0.02, 0.05}

// Tally counts the verdicts of many runs of one scenario and effect.
type Tally struct {
	Scenario fixture.Scenario
	Effect   float64
	Runs     int
	// FalseGo and FalseNoGo are verdicts against the truth. Without any true difference every Go and NoGo is one.
	FalseGo, FalseNoGo int
	// Right are verdicts that agree with the truth.
	Right int
	// Covered counts the 95 % intervals that hold the truth, of Intervals.
	Covered, Intervals int
	// PlainCovered counts how many would hold it if nothing had widened them: Student's interval of the same blocks.
	PlainCovered int
	// Blocks that all runs took.
	Blocks int
}

// False is how many verdicts are wrong.
func (t Tally) False() int { return t.FalseGo + t.FalseNoGo }

// add counts the runs of another tally too.
func (t *Tally) add(o Tally) {
	t.Runs, t.Blocks = t.Runs+o.Runs, t.Blocks+o.Blocks
	t.FalseGo, t.FalseNoGo, t.Right = t.FalseGo+o.FalseGo, t.FalseNoGo+o.FalseNoGo, t.Right+o.Right
	t.Covered, t.PlainCovered, t.Intervals = t.Covered+o.Covered, t.PlainCovered+o.PlainCovered, t.Intervals+o.Intervals
}

// Simulate runs a scenario many times with every effect, through the real planner and the real analysis. The same seed gives
// the same counts, however many workers there are.
func Simulate(scenario fixture.Scenario, runs int, seed uint64, workers int) ([]Tally, error) {
	exp, err := fixture.ScenarioExperiment(scenario)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", scenario.Name, err)
	}
	var out []Tally
	effects := scenario.Effects
	if effects == nil {
		effects = Effects
	}
	for _, effect := range effects {
		outcomes := make([]Tally, runs)
		errs := make([]error, runs)
		rehearse.Parallel(runs, workers, func(i int) {
			truth := math.Log1p(effect)
			if i%2 == 1 {
				truth = -truth
			}
			world := fixture.NewWorld(scenario, truth, seed, stream(scenario.Name, effect, i))
			outcomes[i], errs[i] = one(exp, scenario.Lanes(), world, truth)
		})
		tally := Tally{Scenario: scenario, Effect: effect}
		for i := range outcomes {
			if errs[i] != nil {
				return nil, fmt.Errorf("scenario %s, run %d: %w", scenario.Name, i, errs[i])
			}
			tally.add(outcomes[i])
		}
		out = append(out, tally)
	}
	return out, nil
}

// stream gives every run its own random numbers.
func stream(scenario string, effect float64, run int) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s/%g/%d", scenario, effect, run)
	return hash.Sum64()
}

// one runs an experiment to its end, wave by wave as the design asks.
func one(exp *experiment.Experiment, lanes []design.Lane, world *fixture.World, truth float64) (Tally, error) {
	course, evidence := design.Begin(exp), record.Evidence{}
	var result *analysis.Analysis
	_, err := course.Follow(lanes, func(wave *record.Wave, _ string) (design.Findings, bool, error) {
		evidence.Waves, evidence.Attempts = course.Waves, append(evidence.Attempts, world.Run(exp, wave)...)
		result = analyze.Evidence(exp, evidence, wave.Wave)
		return result.Findings(), false, nil
	})
	if err != nil {
		return Tally{}, err
	}
	return conclude(result, truth, course.Blocks()), nil
}

// conclude tallies one run. The truth is the logarithm of the true ratio: above 0 the candidate is slower.
func conclude(result *analysis.Analysis, truth float64, blocks int) Tally {
	out := Tally{Runs: 1, Blocks: blocks}
	switch verdict := result.Verdict; {
	case verdict == experiment.VerdictGo && truth >= 0:
		out.FalseGo = 1
	case verdict == experiment.VerdictNoGo && truth <= 0:
		out.FalseNoGo = 1
	case verdict == experiment.VerdictGo || verdict == experiment.VerdictNoGo:
		out.Right = 1
	}
	for _, ratio := range result.Ratios {
		if ratio.Candidate == "new" && ratio.Statistic == experiment.StatisticValue && ratio.Estimate.Low != nil && ratio.Estimate.High != nil {
			// Of several points the last one counts.
			out.Intervals, out.Covered, out.PlainCovered = 1, 0, 0
			if *ratio.Estimate.Low <= math.Exp(truth) && math.Exp(truth) <= *ratio.Estimate.High {
				out.Covered = 1
			}
			if plainlyCovers(ratio.PerBlock, truth) {
				out.PlainCovered = 1
			}
		}
	}
	return out
}

// plainlyCovers reports whether Student's 95 % interval of the blocks' ratios holds the truth, which is a logarithm. What the
// analysis widens, it widens beyond this one.
func plainlyCovers(perBlock map[string]float64, truth float64) bool {
	var logarithms []float64
	for _, block := range slices.Sorted(maps.Keys(perBlock)) {
		logarithms = append(logarithms, math.Log(perBlock[block]))
	}
	mean, half := student(logarithms)
	return math.Abs(mean-truth) <= half
}
