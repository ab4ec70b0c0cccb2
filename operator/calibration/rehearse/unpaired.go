package rehearse

import (
	"math"
	"math/rand/v2"

	"assay.dev/assay/operator/calibration/labelled"
	"assay.dev/assay/operator/internal/history/detect"
)

// Unpaired is a kind of simulated history of values without an anchor, as other tools store them: builds of one program on a machine, each
// with several measured values. Sizes are logarithms.
type Unpaired struct {
	// Name and Description are shown in the tables.
	Name, Description string
	// Build is the standard deviation between builds of equal speed, and Row that of the values of one build.
	Build, Row float64
	// Spike is the share of builds at which a disturbance begins that slows down by SpikeSize, for 1 to SpikeLength builds.
	Spike, SpikeSize float64
	SpikeLength      int
	// Second is the share of builds that are SecondSize slower, for example by their layout.
	Second, SecondSize float64
	// Uneven is the standard deviation of the logarithm of the noise of a build.
	Uneven float64
	// Wander is the standard deviation of the machine's speed, whose correlation between neighbours is 0.9.
	Wander float64
	// Step is the size of one change.
	Step float64
}

// UnpairedKinds returns the simulated kinds, without a change and with one.
func UnpairedKinds() []Unpaired {
	const step = 0.1
	quiet := []Unpaired{
		{Name: "stable", Build: 0.01, Row: 0.01, Description: "builds differ by 1 %, and the values of one build by 1 %"},
		{Name: "spikes", Build: 0.01, Row: 0.01, Spike: 0.03, SpikeSize: 0.3, SpikeLength: 1, Description: "and one build in 33 is 30 % slower"},
		{Name: "bursts", Build: 0.01, Row: 0.01, Spike: 0.015, SpikeSize: 0.2, SpikeLength: 4,
			Description: "and a disturbance of 20 % lasts for up to four builds"},
		{Name: "layouts", Build: 0.01, Row: 0.01, Second: 0.3, SecondSize: 0.05,
			Description: "and three builds in ten are 5 % slower by their layout"},
		{Name: "uneven", Build: 0.01, Row: 0.02, Uneven: 1, Description: "and the noise of builds differs by a factor of e"},
		{Name: "wander", Build: 0.01, Row: 0.01, Wander: 0.02, Description: "and the machine's speed wanders, 2 %"},
	}
	out := quiet
	for _, kind := range quiet {
		kind.Name, kind.Step, kind.Description = kind.Name+", step", step, "the same with one change of 10 %"
		out = append(out, kind)
	}
	return out
}

const (
	fewestBuilds, mostBuilds = 25, 300
	mostValues               = 8
	// besideStep is the least number of builds on either side of a change.
	besideStep = 10
	correlated = 0.9
)

// Draw simulates a series.
func (u Unpaired) Draw(seed uint64) labelled.Series {
	random := rand.New(rand.NewPCG(seed, 0x756e7061))
	n := fewestBuilds + random.IntN(mostBuilds-fewestBuilds)
	perBuild := 1 + random.IntN(mostValues)
	out := labelled.Series{Name: u.Name, Change: labelled.NoChange}
	if u.Step != 0 {
		out.Change = besideStep + random.IntN(n-2*besideStep)
	}
	step := u.Step
	if random.IntN(2) == 0 {
		step = -step
	}
	disturbed, speed := 0, u.Wander*random.NormFloat64()
	for build := range n {
		speed = correlated*speed + math.Sqrt(1-correlated*correlated)*u.Wander*random.NormFloat64()
		uneven := math.Exp(u.Uneven * random.NormFloat64())
		level := speed + uneven*u.Build*random.NormFloat64()
		if out.Change != labelled.NoChange && build >= out.Change {
			level += step
		}
		if disturbed == 0 && random.Float64() < u.Spike {
			disturbed = 1 + random.IntN(u.SpikeLength)
		}
		if disturbed > 0 {
			disturbed--
			level += u.SpikeSize
		}
		if random.Float64() < u.Second {
			level += u.SecondSize
		}
		values := make([]float64, 1+random.IntN(perBuild))
		for i := range values {
			values[i] = math.Exp(level + uneven*u.Row*random.NormFloat64())
		}
		out.Builds = append(out.Builds, detect.OfValues(values))
	}
	return out
}

// WatchUnpaired scores series of a kind, in the two forms of a series.
func WatchUnpaired(kind Unpaired, count, workers int, seed uint64) (withErrors, bare labelled.Score) {
	scores := make([][2]labelled.Score, count)
	Parallel(count, workers, func(i int) {
		drawn := kind.Draw(seed + uint64(i))
		scores[i] = [2]labelled.Score{labelled.Judge(drawn), labelled.Judge(drawn.Bare())}
	})
	for _, s := range scores {
		withErrors.Add(s[0])
		bare.Add(s[1])
	}
	return withErrors, bare
}
