// Package calibrate measures the error rates of the analysis with experiments whose truth is known.
package calibrate

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/calibration/rehearse"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// Effects are the true relative differences. In every second run the candidate is slower, else faster, so that both kinds of wrong verdict
// can occur.
var Effects = []float64{0, 0.01, 0.02, 0.05}

// Tally counts the verdicts of many runs of one scenario and effect.
type Tally struct {
	Scenario fixture.Scenario `json:"-"`
	Effect   float64          `json:"-"`
	Runs     int              `json:"runs"`
	// FalseGo and FalseNoGo contradict the truth. Without a true difference this holds for every Go and NoGo.
	FalseGo   int `json:"falseGo"`
	FalseNoGo int `json:"falseNoGo"`
	// Unnamed counts the wrong verdicts that do not name the assumption that the scenario breaks.
	Unnamed int `json:"unnamed"`
	// Right counts the correct verdicts.
	Right int `json:"right"`
	// Covered counts the 95 % intervals that contain the truth, out of Intervals.
	Covered   int `json:"covered"`
	Intervals int `json:"intervals"`
	// PlainCovered counts the same for Student's interval of the blocks, without any widening.
	PlainCovered int `json:"plainCovered"`
	// Blocks of all runs.
	Blocks int `json:"blocks"`
}

// False returns the number of wrong verdicts.
func (t Tally) False() int { return t.FalseGo + t.FalseNoGo }

// add adds the counts of another tally.
func (t *Tally) add(o Tally) {
	t.Runs, t.Blocks = t.Runs+o.Runs, t.Blocks+o.Blocks
	t.Unnamed += o.Unnamed
	t.FalseGo, t.FalseNoGo, t.Right = t.FalseGo+o.FalseGo, t.FalseNoGo+o.FalseNoGo, t.Right+o.Right
	t.Covered, t.PlainCovered, t.Intervals = t.Covered+o.Covered, t.PlainCovered+o.PlainCovered, t.Intervals+o.Intervals
}

// Simulate simulates a scenario many times with every effect, using the real planner and analysis. The counts depend on the seed only, not
// on the number of workers.
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

// stream returns a separate seed for every run.
func stream(scenario string, effect float64, run int) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s/%g/%d", scenario, effect, run)
	return hash.Sum64()
}

// one simulates an experiment to its end, wave by wave.
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
	out := conclude(result, truth, course.Blocks())
	names := func(one analysis.Assumption) bool { return one.Name == world.Scenario().Breaks }
	if out.False() > 0 && !slices.ContainsFunc(result.Assumptions, names) {
		out.Unnamed = 1
	}
	return out, nil
}

// conclude tallies one run. The truth is the logarithm of the true ratio; above 0 the candidate is slower.
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
	if len(result.Gates) == 0 {
		return out
	}
	statistic, truth := result.Gates[0].Statistic, truth+math.Log(ptr.Deref(result.Gates[0].Bound, 1))
	for _, ratio := range result.Ratios {
		if ratio.Candidate == "new" && ratio.Statistic == statistic && ratio.Estimate.Low != nil && ratio.Estimate.High != nil {
			// If there are several points, the last one counts.
			out.Intervals, out.Covered, out.PlainCovered = 1, 0, 0
			if *ratio.Estimate.Low <= math.Exp(truth) && math.Exp(truth) <= *ratio.Estimate.High {
				out.Covered = 1
			}
			if len(ratio.PerBlock) > 0 && plainlyCovers(ratio.PerBlock, ratio.Terms, truth) {
				out.PlainCovered = 1
			}
		}
	}
	return out
}

// plainlyCovers reports whether Student's 95 % interval of the blocks' ratios contains the truth, a logarithm. The analysis only widens
// this interval.
func plainlyCovers(perBlock map[string]float64, terms int, truth float64) bool {
	var logarithms []float64
	for _, block := range slices.Sorted(maps.Keys(perBlock)) {
		logarithms = append(logarithms, math.Log(perBlock[block]))
	}
	mean, half := student(logarithms, terms)
	return math.Abs(mean-truth) <= half
}
