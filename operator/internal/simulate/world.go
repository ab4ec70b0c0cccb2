package simulate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Scenario is a kind of machine and how a run is designed on it. Sizes are standard deviations of the logarithm of a trial's
// time, so 0.01 is one per cent.
type Scenario struct {
	Name string
	// What is said of it in the tables.
	What string
	// Claimed reports whether the method is meant to hold its error rates here. The others show where it ends.
	Claimed bool
	// Figure names the figure that a claimed scenario counts for; empty is the false rate and coverage of the method at large.
	Figure string
	// Effects are the true differences tried; nil is all of them.
	Effects []float64
	// Trial is the noise of one trial, and Shape what it looks like; empty is normal.
	Trial float64
	Shape Shape
	// Candidate multiplies the noise of the candidate's trials; 0 is 1.
	Candidate float64
	// Block is shared by all trials of a block.
	Block float64
	// Drift wanders from trial to trial: an AR(1) process with this spread and a correlation of 0.9 between neighbours.
	Drift float64
	// First slows down the first trial of every block, by this much and always.
	First float64
	// Layout is drawn once for an arm and stays for the whole run, as the addresses of a build do.
	Layout float64
	// Builds of every arm, each with a layout of its own that stays for the whole run; 0 is one.
	Builds int
	// Nodes that the blocks take turns on, and how far their speeds and their ratios are apart.
	Nodes                int
	NodeSpeed, NodeRatio float64
	// Wander is a drift of the candidate alone from block to block: an AR(1) process with this spread and the correlation
	// Persistence between neighbours.
	Wander, Persistence float64
	// Rare is the share of blocks in which the candidate alone is slower, by Slowdown. Its other blocks are faster by as much as
	// these cost on average, so that the truth stays what it is.
	Rare, Slowdown float64
	// Clock is the step of the clock, relative to a second, and Seconds between which true times lie, drawn once per run.
	// Aligned starts every trial on a step, so that its readings have no random phase. CandidateClock is the candidate's step if that has a
	// clock of its own; 0 is the same one.
	Clock, CandidateClock float64
	Seconds               [2]float64
	Aligned               bool
	// Design is how a run on it differs from the smallest one there is.
	Design Design
}

// Design is what a run asks for, in the words of its spec; what is empty is left as it is.
type Design struct {
	// Blocks of the run, neither fewer nor more.
	Blocks int32
	// Points of the sweep, with a gate at each; 0 is one.
	Points           int
	NullArm, Confirm bool
	// HalfWidth stops the run; the others are declared.
	HalfWidth, BlockCorrelation, RareSlowdown string
	// AtMost makes the gate one on the candidate's own time.
	AtMost string
}

// Shape is the distribution of a trial's noise. Every shape has mean 0 and is scaled by Scenario.Trial.
type Shape string

// Shapes.
const (
	Normal Shape = ""
	// Heavy is Student's t with 3 degrees of freedom, scaled to a standard deviation of 1.
	Heavy Shape = "heavy"
	// Outliers are normal, but for one trial in fifty that is ten standard deviations slower.
	Outliers Shape = "outliers"
	// Skewed is lognormal with a sigma of 1, scaled to a standard deviation of 1: never much faster, at times much slower.
	Skewed Shape = "skewed"
)

// Draw is one trial's noise, before it is scaled.
func (s Shape) Draw(random *rand.Rand) float64 {
	switch s {
	case Heavy:
		a, b, c := random.NormFloat64(), random.NormFloat64(), random.NormFloat64()
		return random.NormFloat64() / math.Sqrt(a*a+b*b+c*c)
	case Outliers:
		x := random.NormFloat64() - 0.2
		if random.Float64() < 0.02 {
			x += 10
		}
		return x
	case Skewed:
		const mean, deviation = 1.6487212707, 2.1611974158 // Of exp(z), z standard normal.
		return (math.Exp(random.NormFloat64()) - mean) / deviation
	default:
		return random.NormFloat64()
	}
}

// World is one simulated run: what stays the same in it, and the state of the machine as time goes on.
type World struct {
	scenario Scenario
	effect   float64
	random   *rand.Rand
	layout   []float64
	builds   map[buildOf]float64
	speed    []float64
	ratio    []float64
	drift    float64
	wander   float64
	seconds  float64
	blocks   int
}

// NewWorld starts a run in which the candidate truly takes exp(effect) times as long as the baseline.
func NewWorld(scenario Scenario, effect float64, seed, stream uint64) *World {
	w := &World{scenario: scenario, effect: effect, random: rand.New(rand.NewPCG(seed, stream)), builds: map[buildOf]float64{}}
	for range 3 { // Baseline, candidate and null arm.
		w.layout = append(w.layout, scenario.Layout*w.random.NormFloat64())
	}
	for arm := range 2 { // Where an arm is one build nothing is drawn here.
		for b := range scenario.Builds {
			w.builds[buildOf{arm, BuildName(b)}] = scenario.Layout * w.random.NormFloat64()
		}
	}
	for range max(1, scenario.Nodes) {
		w.speed = append(w.speed, scenario.NodeSpeed*w.random.NormFloat64())
		w.ratio = append(w.ratio, scenario.NodeRatio*w.random.NormFloat64())
	}
	w.drift = scenario.Drift * w.random.NormFloat64()
	if w.seconds = 1; scenario.Seconds[1] > 0 {
		low, high := math.Log(scenario.Seconds[0]), math.Log(scenario.Seconds[1])
		w.seconds = math.Exp(low + (high-low)*w.random.Float64())
	}
	if scenario.Wander > 0 {
		w.wander = scenario.Wander * w.random.NormFloat64()
	}
	return w
}

var (
	worldStart       = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	worldEnvironment = record.Environment{Hard: map[string]any{"cpuModel": "simulated"}, Soft: map[string]any{"runnerVersion": "simulated"}}
)

// Lanes are those that the planner gives blocks to: one of every node, distinguished by its lease's token.
func (s Scenario) Lanes() []design.Lane {
	if s.Nodes == 0 {
		return []design.Lane{{}}
	}
	var out []design.Lane
	for node := range s.Nodes {
		out = append(out, design.Lane{Node: fmt.Sprintf("node-%d", node), Token: int64(node + 1)})
	}
	return out
}

// Run executes the blocks of a wave.
func (w *World) Run(exp *experiment.Experiment, wave *record.Wave) []record.Attempt {
	const correlation = 0.9
	s := w.scenario
	var out []record.Attempt
	for b := range wave.Blocks {
		block := &wave.Blocks[b]
		node := 0
		if block.Lease != nil {
			node = int(block.Lease.Token) - 1
		}
		w.blocks++
		shared := s.Block*w.random.NormFloat64() + w.speed[node]
		own := w.candidate()
		clock := worldStart.Add(time.Duration(w.blocks) * time.Minute)
		for slot, index := range block.Order {
			c := wave.Cells[index]
			w.drift = correlation*w.drift + math.Sqrt(1-correlation*correlation)*s.Drift*w.random.NormFloat64()
			noise := s.Trial * s.Shape.Draw(w.random)
			level, step := shared+w.drift+w.layoutOf(c), s.Clock
			if arm := wave.Arms[c.Arm]; !arm.Baseline && !arm.Null {
				level += w.effect + w.ratio[node] + own
				step = cmp.Or(s.CandidateClock, step)
				if s.Candidate > 0 {
					noise *= s.Candidate
				}
			}
			if slot == 0 {
				level += s.First
			}
			seconds := w.read(step, w.seconds*math.Exp(level+noise))
			trial := record.TrialName(block.ID, slot, false)
			out = append(out, record.Attempt{
				Schema: record.AttemptSchema, ID: "simulated/" + trial, Trial: trial, Run: exp.Run, Experiment: exp.Digest,
				Wave: wave.Wave, Block: block.ID, Slot: slot, Point: wave.Points[c.Point].Key, Arm: wave.Arms[c.Arm].Name, Build: c.Build,
				Lease:     block.Lease,
				StartedAt: clock, DurationSeconds: seconds, Outcome: record.Succeeded, ExitCode: ptr.To(0),
				Argv: c.Argv, Parameters: c.Parameters, Environment: worldEnvironment, Isolation: record.Isolation{Level: "ExclusiveCPUs"},
				Result: &record.Result{
					Schema: record.ResultSchema, Workload: record.WorkloadID{Name: "simulated", Version: "0.1.0"},
					Metrics: map[string]*record.Metric{"time": {Unit: "s", Value: ptr.To(seconds)}},
				},
				// The bytes are never looked at, so their sum stands for nothing.
				Source: record.Source{Key: "attempts/" + block.ID + "/simulated/" + trial + ".json", SHA256: "simulated"},
			})
			clock = clock.Add(time.Duration(seconds * float64(time.Second)))
		}
	}
	return out
}

// candidate is what a block does to the candidate alone.
func (w *World) candidate() float64 {
	s, out := w.scenario, 0.0
	if s.Wander > 0 {
		out += w.wander
		w.wander = s.Persistence*w.wander + math.Sqrt(1-s.Persistence*s.Persistence)*s.Wander*w.random.NormFloat64()
	}
	if s.Rare > 0 {
		out -= s.Rare * math.Log1p(s.Slowdown)
		if w.random.Float64() < s.Rare {
			out += math.Log1p(s.Slowdown)
		}
	}
	return out
}

// read is a time as a clock measures it: the steps that passed.
func (w *World) read(step, seconds float64) float64 {
	if step == 0 {
		return seconds
	}
	phase := 0.0
	if !w.scenario.Aligned {
		phase = w.random.Float64()
	}
	return math.Floor(seconds/step+phase) * step
}
