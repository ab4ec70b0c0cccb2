package calibrate

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"assay.dev/assay/operator/calibration/rehearse"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suite"
)

// SuiteRate is the family-wise error rate of simulated suites, the default of assay suite.
const SuiteRate = 0.01

// SuiteMix is the number of benchmarks with each of SuiteEffects.
type SuiteMix [4]int

// SuiteEffects are the true differences of the benchmarks of a simulated suite.
var SuiteEffects = [4]float64{0, 0.01, 0.02, 0.05}

// simulatedSuite is a suite of benchmarks with known differences and with different noises.
type simulatedSuite struct {
	exp     *experiment.Experiment
	members []suite.Member
	// truths are the logarithms of the ratios, and noises multiply the noise of the world.
	truths, noises []float64
	at             map[string]int
}

// newSimulatedSuite returns a suite whose i-th benchmark truly takes exp(truths[i]) times as long in the new build.
func newSimulatedSuite(truths, noises []float64) (*simulatedSuite, error) {
	out := &simulatedSuite{truths: truths, noises: noises, at: map[string]int{}}
	for i := range truths {
		out.members = append(out.members, suite.Member{File: "simulated.test", Name: "Benchmark" + strconv.Itoa(i)})
	}
	tool, _ := suite.FindTool("Go")
	asked := suite.Suite{
		Tool: tool, Folders: [2]string{"/old", "/new"}, Members: out.members, CPUs: 1, Budget: time.Hour, Error: SuiteRate,
	}
	run, err := asked.BenchmarkRun()
	if err != nil {
		return nil, err
	}
	identity := record.Run{Namespace: "calibration", Name: "suite", UID: "0d9f5c1e-6a57-4b6e-8d8f-3f6f2a9b7c12"}
	out.exp, err = experiment.Freeze(identity, run.Spec, *run.Spec.Template)
	if err != nil {
		return nil, err
	}
	for i := range out.exp.Points {
		out.at[out.exp.Points[i].Key] = i
	}
	return out, nil
}

// measure simulates the suite at an error rate, with the steps that next returns, and returns its result and the number of blocks of single
// benchmarks.
func (s *simulatedSuite) measure(world *fixture.World, rate float64,
	next func(members *suite.Course, used int) design.Step) (*suite.Result, int, error) {
	course, members, evidence := design.Begin(s.exp), suite.NewCourse(s.exp, rate), record.Evidence{}
	var result *suite.Result
	plan := func() design.Step { return next(members, suite.Size(s.exp, course.Waves)) }
	_, err := suite.Follow(course, []design.Lane{{}}, plan, func(wave *record.Wave, _ string) (design.Findings, bool, error) {
		evidence.Waves, evidence.Attempts = course.Waves, append(evidence.Attempts, s.truly(world.Run(s.exp, wave))...)
		analyzed := analyze.Evidence(s.exp, evidence, wave.Wave)
		members.Observe(analyzed, &evidence)
		result = members.Result(s.members)
		return analyzed.Findings(), false, nil
	})
	return result, suite.Size(s.exp, course.Waves), err
}

// within is the plan of a suite with room for a number of blocks.
func within(blocks int) func(members *suite.Course, used int) design.Step {
	return func(members *suite.Course, used int) design.Step { return members.Next(blocks - used) }
}

// alone measures a suite of one benchmark until it is decided, at most in a number of blocks, and returns the blocks that it had time for.
func (s *simulatedSuite) alone(world *fixture.World, rate float64, most int) (*suite.Result, int, error) {
	ended := false
	result, used, err := s.measure(world, rate, func(members *suite.Course, used int) design.Step {
		if used == 0 {
			return members.Next(most)
		}
		step := members.Further()
		if ended = !step.Done; ended && used+step.Blocks <= most {
			return step
		}
		return design.Step{Done: true}
	})
	if ended {
		used = most // It ends with its budget, not with a decision.
	}
	return result, used, err
}

// truly gives the attempts of a world without differences the noise and the difference of their benchmarks.
func (s *simulatedSuite) truly(attempts []record.Attempt) []record.Attempt {
	for i := range attempts {
		attempt := &attempts[i]
		at := s.at[attempt.Point]
		metric := attempt.Result.Metrics["time"]
		level := s.noises[at] * math.Log(*metric.Value)
		if attempt.Arm == suite.New {
			level += s.truths[at]
		}
		seconds := math.Exp(level)
		metric.Value, metric.Samples = nil, []float64{seconds}
		attempt.DurationSeconds = seconds
	}
	return attempts
}

// right counts the rows that agree with the truth: the sign of a difference, or none where there is none.
func (s *simulatedSuite) right(result *suite.Result) (right, falsely int) {
	truth := map[string]float64{}
	for i, member := range s.members {
		truth[member.Name] = s.truths[i]
	}
	for i := range result.Rows {
		row := &result.Rows[i]
		sign := map[suite.Outcome]int{suite.Slower: 1, suite.Faster: -1}[row.Outcome]
		if sign == cmp.Compare(truth[row.Name], 0) {
			right++
		} else if sign != 0 {
			falsely++
		}
	}
	return right, falsely
}

// SuiteCounts are the results of simulated and real suites of the same code. They accumulate in a file.
type SuiteCounts struct {
	// Code is the digest of the sources that plan and judge suites, and Machines are those that measured real ones.
	Code     string   `json:"code"`
	Machines []string `json:"machines,omitempty"`
	// Equal counts simulated suites of equal builds: Runs suites, of which Wrong found a difference, among Benchmarks.
	Equal SuiteErrors `json:"equal"`
	// Real are the same of real suites of copies of a program.
	Real SuiteErrors `json:"real"`
	// Mixed are the comparisons of suites with each benchmark alone, by the mix of their differences.
	Mixed []SuiteAgainstAlone `json:"mixed"`
	// Seeds are those of the simulated suites of equal builds.
	Seeds []uint64 `json:"seeds"`
}

// SuiteErrors counts suites of equal builds.
type SuiteErrors struct {
	Runs       int `json:"runs"`
	Wrong      int `json:"wrong"`
	Benchmarks int `json:"benchmarks"`
}

func (e *SuiteErrors) sum(o SuiteErrors) {
	e.Runs, e.Wrong, e.Benchmarks = e.Runs+o.Runs, e.Wrong+o.Wrong, e.Benchmarks+o.Benchmarks
}

// SuiteAgainstAlone sums suites with known differences and the same benchmarks alone.
type SuiteAgainstAlone struct {
	Mix SuiteMix `json:"mix"`
	// Seeds are those of the suites.
	Seeds []uint64 `json:"seeds"`
	// Shares and Ratios have for each suite the blocks over those of all benchmarks alone, and the right verdicts over theirs.
	Shares []float64 `json:"shares"`
	Ratios []float64 `json:"ratios"`
	// False counts benchmarks with the wrong sign, and Covered the suites whose interval of the geometric mean has the truth.
	False   int `json:"false"`
	Covered int `json:"covered"`
}

// quietMachines are the machines without a separate design, on which the method claims its error rates.
func quietMachines() []fixture.Scenario {
	var out []fixture.Scenario
	for _, one := range fixture.Scenarios() {
		if one.Claimed && one.Figure == "" && one.Nodes == 0 && one.Clock == 0 && one.Wander == 0 && one.Builds == 0 && one.Effect == nil &&
			one.Design == (fixture.Design{}) {
			out = append(out, one)
		}
	}
	return out
}

// noisesOf draws the noise of each benchmark, relative to that of the machine: 0.3 to 2.1 % of a trial on a machine with 1 %.
func noisesOf(random *rand.Rand, count int) []float64 {
	const low, high = 0.3, 2.1
	out := make([]float64, count)
	for i := range out {
		out[i] = low * math.Exp(math.Log(high/low)*random.Float64())
	}
	return out
}

// SimulateEqualSuites simulates suites of equal builds, with 4 to 12 benchmarks and room for 12 to 24 blocks of each, on all machines in
// turn.
func SimulateEqualSuites(runs int, seed uint64, workers int) (SuiteErrors, error) {
	machines := quietMachines()
	const fewest, most, fewestBlocks, mostBlocks = 4, 12, 12, 24
	outcomes, errs := make([]SuiteErrors, runs), make([]error, runs)
	rehearse.Parallel(runs, workers, func(i int) {
		random := rand.New(rand.NewPCG(seed, stream("suite", 0, i)))
		count := fewest + random.IntN(most-fewest+1)
		one, err := newSimulatedSuite(make([]float64, count), noisesOf(random, count))
		if err != nil {
			errs[i] = err
			return
		}
		machine := machines[i%len(machines)]
		world := fixture.NewWorld(machine, 0, seed, stream("suite/"+machine.Name, 0, i))
		room := count * (fewestBlocks + random.IntN(mostBlocks-fewestBlocks+1))
		result, _, err := one.measure(world, SuiteRate, within(room))
		if errs[i] = err; err != nil {
			return
		}
		outcomes[i] = SuiteErrors{Runs: 1, Benchmarks: count}
		if _, falsely := one.right(result); falsely > 0 {
			outcomes[i].Wrong = 1
		}
	})
	var out SuiteErrors
	for _, one := range outcomes {
		out.sum(one)
	}
	return out, errors.Join(errs...)
}

// SimulateMixedSuite measures 100 benchmarks with known differences each alone, and in a suite that has a fifth of their time. Alone a
// benchmark has the level that it has in the suite, ends when it is decided, and otherwise with its budget of a number of blocks.
func SimulateMixedSuite(mix SuiteMix, budget int, seed uint64, workers int) (SuiteAgainstAlone, error) {
	const share = 0.2
	random := rand.New(rand.NewPCG(seed, stream("mixed", 0, 0)))
	var truths []float64
	mean := 0.0
	for e, count := range mix {
		for range count {
			truths = append(truths, math.Log1p(SuiteEffects[e]))
			mean += math.Log1p(SuiteEffects[e])
		}
	}
	mean /= float64(len(truths))
	noises := noisesOf(random, len(truths))
	machine := fixture.Scenarios()[0] // Normal noise; the others are in the suites of equal builds.
	used, right, errs := make([]int, len(truths)), make([]int, len(truths)), make([]error, len(truths))
	rehearse.Parallel(len(truths), workers, func(i int) {
		alone, err := newSimulatedSuite(truths[i:i+1], noises[i:i+1])
		if err != nil {
			errs[i] = err
			return
		}
		world := fixture.NewWorld(machine, 0, seed, stream("mixed/alone", 0, i))
		result, blocks, err := alone.alone(world, SuiteRate/float64(len(truths)), budget)
		if errs[i] = err; err == nil {
			used[i] = blocks
			right[i], _ = alone.right(result)
		}
	})
	if err := errors.Join(errs...); err != nil {
		return SuiteAgainstAlone{}, err
	}
	all, err := newSimulatedSuite(truths, noises)
	if err != nil {
		return SuiteAgainstAlone{}, err
	}
	result, blocks, err := all.measure(fixture.NewWorld(machine, 0, seed, stream("mixed/suite", 0, 0)), SuiteRate,
		within(int(share*float64(sumOf(used)))))
	if err != nil {
		return SuiteAgainstAlone{}, err
	}
	together, falsely := all.right(result)
	out := SuiteAgainstAlone{
		Mix: mix, Seeds: []uint64{seed}, Shares: []float64{float64(blocks) / float64(sumOf(used))},
		Ratios: []float64{float64(together) / float64(sumOf(right))}, False: falsely,
	}
	if m := result.Mean; m != nil && m.Low != nil && *m.Low <= math.Exp(mean) && math.Exp(mean) <= *m.High {
		out.Covered = 1
	}
	return out, nil
}

func sumOf(values []int) int {
	sum := 0
	for _, value := range values {
		sum += value
	}
	return sum
}
