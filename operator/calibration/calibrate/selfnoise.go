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

// signs are the readings by which a disturbance shows: each alone, and all together.
var signs = []fixture.Neighbour{
	{Throttled: 0.4}, {PressureMemory: 0.4}, {PressureIO: 0.6}, {OtherWork: 0.4}, {Steal: 0.2}, {Canary: 2}, {Spin: 2},
	{Throttled: 0.4, PressureMemory: 0.4, PressureIO: 0.6, OtherWork: 0.4, Steal: 0.2, Canary: 2, Spin: 2},
}

// sizes of the designs that are tried.
var sizes = []int32{8, 10, 20, 30}

// lightest and heaviest are the least and the most that a candidate does to itself: of 10 % to 50 % of its trials, each 5 % to 100 %
// slower.
const (
	lightestShare, heaviestShare = 0.10, 0.50
	lightestSlow, heaviestSlow   = 0.05, 1.00
	// What it is slower over all its trials, as a logarithm.
	leastLoss, mostLoss = 0.002, 0.16
)

// AttackBySelfNoise is how often a random candidate is Go that disturbs some of its own trials, is quick in the others, and over all trials
// is slower than its baseline, by having its noise left out: each is false.
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
		// What is left of the loss is the candidate's own speed: its other trials may well be faster than the baseline.
		trials := l.trials("new")
		hit := max(1, int(math.Round(share*float64(trials))))
		// In every other run its baseline has as many such readings, which do it no harm: what is left out is the same in both.
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

// rejectionRun is a run of two arms on a quiet machine, whose trials can be disturbed before it is judged.
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

// trials are how many the run has of an arm.
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

// judge runs it with a candidate that takes exp(own) times as long where nothing disturbs it.
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
