// Package rehearse simulates years of nightly runs through detection and confirmation, and bisections through the planner, and measures
// their error rates. A night consists of blocks of trials, as in the calibration of verdicts.
package rehearse

import (
	"cmp"
	"math"
	"math/rand/v2"

	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/history/detect"
	"assay.dev/assay/operator/internal/history/watch"
)

// Year is a kind of simulated history. Sizes are logarithms, so 0.01 is one per cent.
type Year struct {
	Name string
	// Description is shown in the tables.
	Description string
	// Step is the size of the changes, at random nights and in random directions, and Steps their number.
	Step  float64
	Steps int
	// Early places the first change within four weeks, when the series is short.
	Early bool
	// Ramp is the total slowdown over the year, in equal steps every night.
	Ramp float64
	// Layout is the standard deviation between builds of equal speed, drawn once per revision.
	Layout float64
	// Spike is the share of nights on which a disturbance slows the head down by SpikeSize.
	Spike, SpikeSize float64
	// Season is the amplitude of a periodic component of 90 nights in the ratio, for example if temperature affects two revisions
	// differently.
	Season float64
	// Drift is a random walk of the machine's speed, common to all arms.
	Drift float64
	// Noise multiplies the standard deviation of trials; 0 means 1.
	Noise float64
	// Missing is the share of nights without a point.
	Missing float64
	// Machines is the number of replacements of the machine.
	Machines int
	Shape    fixture.Shape
}

// Years returns the simulated kinds.
func Years() []Year {
	const layout, noisy = 0.003, 5
	return []Year{
		{Name: "quiet", Description: "nothing changes"},
		{Name: "layout", Layout: layout, Description: "nothing changes but the layout of each build, 0.3 %"},
		{Name: "drift", Layout: layout, Drift: 0.05, Description: "and the machine's speed wanders, 5 %"},
		{Name: "spikes", Layout: layout, Spike: 0.02, SpikeSize: 0.1, Description: "and on one night in fifty the head is slowed down by 10 %"},
		{Name: "season", Layout: layout, Season: 0.004, Description: "and the ratio itself has a season, 0.4 % up and down over 90 nights"},
		{Name: "heavy", Layout: layout, Shape: fixture.Heavy, Description: "and trials have heavy tails"},
		{Name: "noisy", Layout: layout, Noise: noisy, Description: "and trials are five times as noisy"},
		{Name: "missing", Layout: layout, Missing: 0.2, Description: "and one night in five has no point"},
		{Name: "machines", Layout: layout, Machines: 3, Description: "and the machine is replaced three times"},
		{Name: "ramp", Layout: layout, Ramp: 0.05, Description: "and the program gets 5 % slower over the year, a little every night"},
		{Name: "step-1", Layout: layout, Step: 0.01, Steps: 1, Description: "one change of 1 %"},
		{Name: StepName, Layout: layout, Step: 0.02, Steps: 1, Description: "one change of 2 %"},
		{Name: "step-5", Layout: layout, Step: 0.05, Steps: 1, Description: "one change of 5 %"},
		{Name: "step-2-early", Layout: layout, Step: 0.02, Steps: 1, Early: true,
			Description: "one change of 2 % between the 13th and the 28th night"},
		{Name: "step-5-noisy", Layout: layout, Noise: noisy, Step: 0.05, Steps: 1, Early: true,
			Description: "one change of 5 % between the 13th and the 28th night, where trials are five times as noisy"},
		{Name: MixedName, Layout: layout, Drift: 0.05, Spike: 0.02, SpikeSize: 0.1, Season: 0.004, Missing: 0.1, Shape: fixture.Heavy,
			Step: 0.02, Steps: 1,
			Description: "one change of 2 % among drift, spikes, season, missing nights and heavy tails"},
		{Name: "several", Layout: layout, Step: 0.02, Steps: 5, Description: "five changes of 2 %"},
	}
}

// StepName is the year for which recall and delay are specified, and MixedName the one for comparison with a peer.
const (
	StepName  = "step-2"
	MixedName = "step-2-everything"
)

const (
	nights = 365
	// Blocks of a night and of a confirming run; trials of an arm in a block, and their standard deviation.
	blocks, confirmBlocks, trialsOfArm, spread = 10, watch.ConfirmingBlocks, 2, 0.01
	// The first change is after settled nights, or, if early, within early nights after soonest points.
	settled, early, soonest = 40, 16, 12
)

// truth is a simulated year.
type truth struct {
	year   Year
	random *rand.Rand
	// level is the level of every night's revision, and layout the effect of its build; changed are the nights of the steps.
	level, layout []float64
	changed       []int
	missing       []bool
	machine       []int
	speed         float64
}

func draw(year Year, seed uint64) *truth {
	t := &truth{year: year, random: rand.New(rand.NewPCG(seed, 0x79656172))}
	apart := (nights - settled) / max(1, year.Steps)
	for i := range year.Steps {
		first, within := settled, apart-settled/2
		if year.Early {
			first, within = soonest, early
		}
		t.changed = append(t.changed, first+i*apart+t.random.IntN(within))
	}
	level, next := 0.0, 0
	for night := range nights {
		if next < len(t.changed) && night == t.changed[next] {
			if next++; t.random.IntN(2) == 0 {
				level += year.Step
			} else {
				level -= year.Step
			}
		}
		t.level = append(t.level, level+year.Ramp*float64(night)/nights)
		t.layout = append(t.layout, year.Layout*t.random.NormFloat64())
		t.missing = append(t.missing, t.random.Float64() < year.Missing)
		t.machine = append(t.machine, night*(year.Machines+1)/nights)
	}
	return t
}

// arms simulates a run: logarithms of the time of every arm in every block.
func (t *truth) arms(levels []float64, blocks int) [][]float64 {
	out := make([][]float64, blocks)
	for b := range out {
		shared := t.speed + 0.01*t.random.NormFloat64()
		for _, level := range levels {
			sum := 0.0
			for range trialsOfArm {
				sum += spread * cmp.Or(t.year.Noise, 1) * t.year.Shape.Draw(t.random)
			}
			out[b] = append(out[b], shared+level+sum/trialsOfArm)
		}
	}
	return out
}

// contrast returns the mean over blocks of the difference between the means of two groups of arms, with its standard error.
func contrast(measured [][]float64, of, less []int) detect.Observation {
	n := float64(len(measured))
	mean, squares := 0.0, 0.0
	differences := make([]float64, len(measured))
	for b, arms := range measured {
		for _, i := range of {
			differences[b] += arms[i] / float64(len(of))
		}
		for _, i := range less {
			differences[b] -= arms[i] / float64(len(less))
		}
		mean += differences[b] / n
	}
	for _, d := range differences {
		squares += (d - mean) * (d - mean)
	}
	return detect.Observation{Y: mean, SE: math.Sqrt(squares / (n - 1) / n), DF: n - 1}
}

// night measures the revision of a night against the anchor, and returns the head's unpaired value as well.
func (t *truth) night(i int) (point detect.Observation, bare float64) {
	t.speed = 0.9*t.speed + math.Sqrt(1-0.81)*t.year.Drift*t.random.NormFloat64()
	head := t.level[i] + t.layout[i] + t.year.Season*math.Sin(2*math.Pi*float64(i)/90)
	if t.random.Float64() < t.year.Spike {
		head += t.year.SpikeSize
	}
	measured := t.arms([]float64{0, head}, blocks)
	for _, arms := range measured {
		bare += arms[1] / blocks
	}
	return contrast(measured, []int{1}, []int{0}), bare
}

// confirm measures the revisions of some nights against those of others and the anchor in fresh blocks, and remeasures the newest one.
// apart is the spread of the revisions of each side.
func (t *truth) confirm(old, new []int) (difference detect.Observation, apart detect.Spread, newest detect.Observation) {
	levels := []float64{0}
	var before, after []int
	for _, nights := range []struct {
		which []int
		into  *[]int
	}{{old, &before}, {new, &after}} {
		for _, i := range nights.which {
			*nights.into = append(*nights.into, len(levels))
			levels = append(levels, t.level[i]+t.layout[i]+t.year.Season*math.Sin(2*math.Pi*float64(new[len(new)-1])/90))
		}
	}
	measured := t.arms(levels, confirmBlocks)
	about := func(side []int) (out []detect.Observation) {
		for _, arm := range side {
			out = append(out, contrast(measured, []int{arm}, side))
		}
		return out
	}
	return contrast(measured, after, before), detect.Sides(about(before), about(after)), contrast(measured, []int{len(levels) - 1}, []int{0})
}
