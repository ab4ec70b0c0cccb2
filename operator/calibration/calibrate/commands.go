package calibrate

import (
	"errors"
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/rehearse"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// Figures of comparisons of commands.
const (
	CommandDecidedFigure = "bench.decided_share"
	CommandWrongFigure   = "bench.wrong"
	CommandFalseFigure   = "bench.false_rate"
)

// Pairs counts comparisons of two commands, of which Decided ended Go or NoGo, and Wrong of these against the truth.
type Pairs struct {
	Runs    int `json:"runs"`
	Decided int `json:"decided"`
	Wrong   int `json:"wrong"`
}

// Add counts a comparison. Slower is the sign of the true difference: 1 where the candidate takes longer, -1 where it takes less, and 0 for
// equal commands, of which every decision is wrong.
func (p *Pairs) Add(verdict experiment.Verdict, slower int) {
	p.Runs++
	switch verdict {
	case experiment.VerdictGo, experiment.VerdictNoGo:
		p.Decided++
		if (verdict == experiment.VerdictGo) != (slower < 0) || slower == 0 {
			p.Wrong++
		}
	case experiment.VerdictInconclusive, experiment.VerdictInvalid:
	}
}

func (p *Pairs) sum(o Pairs) {
	p.Runs, p.Decided, p.Wrong = p.Runs+o.Runs, p.Decided+o.Decided, p.Wrong+o.Wrong
}

// CommandCounts are the results of comparisons of commands, real and simulated, of the same code. They accumulate in a file.
type CommandCounts struct {
	// Code is the digest of the sources that plan and judge comparisons, and Machines are those that measured.
	Code     string   `json:"code"`
	Machines []string `json:"machines"`
	// By is the deciding figure of the real ones, as of --by.
	By string `json:"by"`
	// Different are real commands with a known difference, Equal real copies of one, and Simulated simulated copies.
	Different Pairs `json:"different"`
	Equal     Pairs `json:"equal"`
	Simulated Pairs `json:"simulated"`
	// Seeds are those of the simulated ones.
	Seeds []uint64 `json:"seeds"`
}

// CommandCode returns the digest of the sources that plan and judge comparisons of commands.
func CommandCode(root string) (string, error) { return CodeDigest(root, "internal/bench") }

// ReadCommandCounts reads the counts of a code and a deciding figure. Those of others are discarded, as are those of a file that does not
// exist.
func ReadCommandCounts(path, code, by string) (*CommandCounts, error) {
	belong := func(found *CommandCounts) bool { return found.Code == code && found.By == by }
	return readCounts(path, &CommandCounts{Code: code, By: by}, belong)
}

// Write writes the counts.
func (c *CommandCounts) Write(path string) error { return writeCounts(path, c) }

// Measured notes a machine that measured.
func (c *CommandCounts) Measured(machine string) {
	if !slices.Contains(c.Machines, machine) {
		c.Machines = append(c.Machines, machine)
	}
}

// NextSeed returns a seed that no simulated comparison had.
func (c *CommandCounts) NextSeed() uint64 {
	if len(c.Seeds) == 0 {
		return 1
	}
	return slices.Max(c.Seeds) + 1
}

// Simulate adds simulated comparisons with the next seed.
func (c *CommandCounts) Simulate(runs, workers int) error {
	seed := c.NextSeed()
	found, err := SimulateCommands(runs, seed, workers)
	if err != nil {
		return err
	}
	c.Simulated.sum(found)
	c.Seeds = append(c.Seeds, seed)
	return nil
}

// Figures returns the figures of the counts, without those of no comparison.
func (c *CommandCounts) Figures() []Figure {
	wrong := c.Different.Wrong + c.Equal.Wrong
	out := []Figure{
		NewShare(c.Different.Decided, c.Different.Runs).Figure(CommandDecidedFigure),
		{Figure: CommandWrongFigure, Value: float64(wrong), Unit: "runs", Low: float64(wrong), High: float64(wrong),
			Samples: c.Different.Runs + c.Equal.Runs},
		NewShare(c.Simulated.Wrong, c.Simulated.Runs).Figure(CommandFalseFigure),
	}
	return slices.DeleteFunc(out, func(figure Figure) bool { return figure.Samples == 0 })
}

// SimulateCommands compares copies of a command on simulated machines with the experiment and the stopping rule of assay bench. The noise
// takes turns over the machines without a separate design, with trials of 1 and of 5 %, and the time over 11 to 100 blocks, so that
// comparisons end by their width and by their budget.
func SimulateCommands(runs int, seed uint64, workers int) (Pairs, error) {
	question := bench.Question{
		Commands: [][]string{{"/command", "old"}, {"/command", "new"}}, Names: []string{"old", "new"}, CPUs: 1, Budget: time.Minute,
		Figures: bench.Figures{Format: assayv1alpha1.NoOutput}, OnViolation: assayv1alpha1.ViolationWarn,
	}
	run, err := question.BenchmarkRun()
	if err != nil {
		return Pairs{}, err
	}
	exp, err := experiment.Freeze(record.Run{Namespace: "calibration", Name: "bench", UID: "0d9f5c1e-6a57-4b6e-8d8f-3f6f2a9b7c11"}, run.Spec,
		*run.Spec.Template)
	if err != nil {
		return Pairs{}, err
	}
	machines := quietMachines()
	outcomes, errs := make([]Pairs, runs), make([]error, runs)
	rehearse.Parallel(runs, workers, func(i int) {
		const noisy, fewest, most = 5, bench.LeastBlocks + 1, 100
		machine := machines[i%len(machines)]
		if i/len(machines)%2 == 1 {
			machine.Trial *= noisy
		}
		world := fixture.NewWorld(machine, 0, seed, stream("bench/"+machine.Name, 0, i))
		outcomes[i], errs[i] = simulateCommand(exp, world, fewest+i%(most-fewest+1))
	})
	var out Pairs
	for _, one := range outcomes {
		out.sum(one)
	}
	return out, errors.Join(errs...)
}

// simulateCommand simulates a comparison of equal commands for which there is time for a number of blocks.
func simulateCommand(exp *experiment.Experiment, world *fixture.World, blocks int) (out Pairs, err error) {
	course, evidence := design.Begin(exp), record.Evidence{}
	var result *analysis.Analysis
	room := func() int { return blocks - course.Blocks() }
	_, err = bench.Follow(course, []design.Lane{{}}, room, func(wave *record.Wave, _ string) (design.Findings, bool, error) {
		evidence.Waves, evidence.Attempts = course.Waves, append(evidence.Attempts, world.Run(exp, wave)...)
		for i := range evidence.Attempts {
			evidence.Attempts[i].Result = nil // Commands report nothing.
		}
		result = analyze.Evidence(exp, evidence, wave.Wave)
		return result.Findings(), false, nil
	})
	if err == nil {
		out.Add(result.Verdict, 0)
	}
	return out, err
}
