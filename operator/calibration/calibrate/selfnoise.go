package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// signs are the noise readings that a disturbance affects: each alone, and all together.
var signs = []fixture.Neighbour{
	{Throttled: 0.4}, {PressureMemory: 0.4}, {PressureIO: 0.6}, {OtherWork: 0.4}, {Steal: 0.2}, {Canary: 2}, {Spin: 2},
	{Throttled: 0.4, PressureMemory: 0.4, PressureIO: 0.6, OtherWork: 0.4, Steal: 0.2, Canary: 2, Spin: 2},
}

// sizes are the numbers of blocks to simulate.
var sizes = []int32{8, 10, 20, 30}

// lightest and heaviest bound the disturbance that a candidate causes to itself: 10 % to 50 % of its trials, each 5 % to 100 % slower.
const (
	lightestShare, heaviestShare = 0.10, 0.50
	lightestSlow, heaviestSlow   = 0.05, 1.00
	// Bounds of the resulting slowdown over all its trials, as a logarithm.
	leastLoss, mostLoss = 0.002, 0.16
)

// AttackBySelfNoise returns the rate of false Go for random candidates that disturb some of their trials so that these are rejected, are
// fast in the others, and are slower than the baseline over all trials.
func AttackBySelfNoise(runs int, seed uint64) (Share, error) {
	wrong := 0
	for i := range runs {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		between := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
		disturbance := signs[i%len(signs)]
		disturbance.Slowdown = 1 + between(lightestSlow, heaviestSlow)
		share, truth := between(lightestShare, heaviestShare), between(leastLoss, mostLoss)
		l, err := newRejectionRun(sizes[i/len(signs)%len(sizes)])
		if err != nil {
			return Share{}, err
		}
		// The remaining slowdown is the candidate's undisturbed speed; its other trials may be faster than the baseline.
		trials := l.trials("new")
		hit := max(1, int(math.Round(share*float64(trials))))
		// In every second run the baseline has as many noise readings without a slowdown, so that both arms have the same number of
		// rejected trials.
		masked := i/len(signs)/len(sizes)%2 == 1
		own := truth - float64(hit)/float64(trials)*math.Log(disturbance.Slowdown)
		result := l.judge(own, random, func(attempts map[string][]*record.Attempt) {
			for _, arm := range []string{"old", "new"} {
				of := attempts[arm]
				random.Shuffle(len(of), func(a, b int) { of[a], of[b] = of[b], of[a] })
				harm := disturbance
				if arm == "old" {
					if !masked {
						continue
					}
					harm.Slowdown = 1
				}
				for _, attempt := range of[:min(hit, len(of))] {
					harm.Disturb(attempt)
				}
			}
		})
		if result.Verdict == experiment.VerdictGo {
			wrong++
		}
	}
	return NewShare(wrong, runs), nil
}

// rejectionRun is a run of two arms on a quiet machine, whose trials can be disturbed before the analysis.
type rejectionRun struct {
	exp  *experiment.Experiment
	wave *record.Wave
}

func newRejectionRun(blocks int32) (*rejectionRun, error) {
	exp, err := fixture.PairExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Design.Blocks.Min = blocks })
	if err != nil {
		return nil, err
	}
	first := design.Begin(exp)
	wave, err := first.Lay(first.Next(), []design.Lane{{}}, nil)
	if err != nil {
		return nil, fmt.Errorf("%d blocks: %w", blocks, err)
	}
	return &rejectionRun{exp, wave}, nil
}

// trials returns the number of trials of an arm.
func (l *rejectionRun) trials(arm string) int {
	sum := 0
	for _, block := range l.wave.Blocks {
		for _, index := range block.Order {
			if l.wave.Arms[l.wave.Cells[index].Arm].Name == arm {
				sum++
			}
		}
	}
	return sum
}

// judge analyzes the run with a candidate that takes exp(own) times as long in undisturbed trials.
func (l *rejectionRun) judge(own float64, random *rand.Rand, disturb func(attempts map[string][]*record.Attempt)) *analysis.Analysis {
	world := fixture.NewWorld(fixture.Scenario{Name: "selfnoise", Trial: 0.01}, own, random.Uint64(), random.Uint64())
	attempts := world.Run(l.exp, l.wave)
	byArm := map[string][]*record.Attempt{}
	for i := range attempts {
		attempts[i].Noise = fixture.Quiet(attempts[i].DurationSeconds)
		byArm[attempts[i].Arm] = append(byArm[attempts[i].Arm], &attempts[i])
	}
	disturb(byArm)
	return analyze.Evidence(l.exp, record.Evidence{Waves: []record.Wave{*l.wave}, Attempts: attempts}, l.wave.Wave)
}
