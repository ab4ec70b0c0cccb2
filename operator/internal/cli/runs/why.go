package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report/causes"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/why"
	"assay.dev/assay/operator/internal/why/instrument"
	"assay.dev/assay/operator/internal/why/wave"
)

// Why explains the difference between a candidate and the baseline of a local run, by a cause wave after its judged waves. The trials of
// this wave are in a ledger of their own below the run's, and are never judged.
type Why struct {
	Run    *LocalRun
	Result *analysis.Analysis
	// Figure is explained, and Metric is its name in the analysis.
	Figure why.Figure
	Metric string
	// Budget is the time for each candidate, after which no round begins.
	Budget time.Duration
	// Instruments returns the ladder for arms with the given programs.
	Instruments func(programs []string) []instrument.Instrument
	// Log receives progress lines.
	Log io.Writer
}

// WhyFolder is the folder of cause waves in the ledger of a run.
const WhyFolder = "causes"

// Files of the ledger of a cause wave.
const (
	WhyTrialsFile      = "trials.json"
	WhyExplanationFile = "explanation.json"
	whyFlameFile       = "flame.svg"
)

// leastRounds is the number of rounds after which the first explanation is computed, and mostRounds bounds sampling.
const (
	leastRounds = 6
	stepRounds  = 3
	mostRounds  = 60
)

// WhyTrials has the input of an explanation, so that it can be computed again.
type WhyTrials struct {
	Question why.Question `json:"question"`
	Rungs    []why.Rung   `json:"rungs"`
	Trials   []why.Trial  `json:"trials"`
}

// Explain runs the cause waves of a candidate and returns the explanation.
func (w *Why) Explain(ctx context.Context, candidate string) (*why.Explanation, error) {
	judged, err := w.judgedWave(ctx)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(w.Run.Executor.Folder, WhyFolder, candidate)
	of := w.Run.Executor
	var log strings.Builder
	executor := &local.Executor{Runner: of.Runner, Within: of.Within, Folder: folder, Name: of.Name + "-" + WhyFolder, CPUs: of.CPUs,
		Log: &log, Steps: of.Steps, Counters: of.Counters}
	c := &causeRun{Why: w, executor: executor, judged: judged, candidate: candidate, limit: time.Now().Add(w.Budget)}
	if c.store, err = c.open(ctx); err != nil {
		return nil, err
	}
	var names []string
	for _, rung := range w.Instruments(programs(judged)) {
		limits, err := rung.Check()
		seen := why.Rung{Name: rung.Name(), Notes: limits}
		if err != nil {
			seen.Absent = err.Error()
		} else {
			c.use, names = append(c.use, rung), append(names, rung.Name())
		}
		c.rungs = append(c.rungs, seen)
	}
	explanation, err := c.follow(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("explain %s: %w\n%s", candidate, err, log.String())
	}
	return explanation, c.write(explanation)
}

// programs returns the programs that the cells of a wave execute.
func programs(of *record.Wave) (out []string) {
	for _, cell := range of.Cells {
		for _, role := range cell.Roles {
			out = append(out, role.Argv[0])
		}
		out = append(out, cell.Argv[0])
	}
	return out
}

// judgedWave reads the first wave, whose commands the cause waves run.
func (w *Why) judgedWave(ctx context.Context) (*record.Wave, error) {
	waves, _, err := ledger.ReadWaves(ctx, w.Run.Store, 0)
	if err != nil {
		return nil, err
	}
	if len(waves) == 0 {
		return nil, fmt.Errorf("ledger %s has no wave whose trials can be explained", w.Run.Executor.Folder)
	}
	return &waves[0], nil
}

// causeRun is the state of the cause waves of one candidate.
type causeRun struct {
	*Why
	executor  *local.Executor
	judged    *record.Wave
	candidate string
	store     store.Store
	limit     time.Time
	use       []instrument.Instrument
	rungs     []why.Rung
	plan      wave.Plan
	raw       map[string][]byte
	trials    []why.Trial
	rounds    int
	waves     int
}

// open creates the ledger of the cause waves. Its experiment has the format only, so that no analysis accepts it.
func (c *causeRun) open(ctx context.Context) (store.Store, error) {
	if err := os.MkdirAll(c.executor.Folder, 0o755); err != nil {
		return nil, err
	}
	s, err := store.OpenFolder(ctx, c.executor.Folder)
	if err != nil {
		return nil, err
	}
	raw, err := ledger.JSON(map[string]any{"format": experiment.Format, "kind": wave.Kind})
	if err != nil {
		return nil, err
	}
	err = s.Create(ctx, ledger.ExperimentKey, raw)
	if errors.Is(err, store.ErrExists) {
		err = fmt.Errorf("folder %s has cause waves already", c.executor.Folder)
	}
	return s, err
}

// follow adds rounds until the unexplained part is known well enough, or the time is used up.
func (c *causeRun) follow(ctx context.Context, names []string) (*why.Explanation, error) {
	for rounds := leastRounds; ; rounds = stepRounds {
		began := time.Now()
		if err := c.wave(ctx, rounds, names); err != nil {
			return nil, err
		}
		pace := time.Since(began)
		explanation := why.Explain(c.question(), c.trials, c.rungs)
		left := time.Until(c.limit)
		if explanation.MoreBlocks == 0 || c.rounds >= mostRounds || left < pace*stepRounds/time.Duration(rounds) || ctx.Err() != nil {
			return explanation, ctx.Err()
		}
	}
}

// question is the question with the judged ratio.
func (c *causeRun) question() why.Question {
	out := why.Question{Figure: c.Figure, Candidate: c.candidate, Null: wave.NullArm, Uninstrumented: instrument.UsageName,
		Instrument: instrument.UsageName, Resolution: instrument.UsageResolution}
	for _, arm := range c.judged.Arms {
		if arm.Baseline {
			out.Baseline = arm.Name
		}
	}
	for _, rung := range c.use {
		if rung.Name() == instrument.ProfilerName {
			out.Instrument, out.Resolution = rung.Name(), instrument.SamplePeriod/1e9
		}
	}
	for _, ratio := range c.Result.Ratios {
		if ratio.Candidate == c.candidate && ratio.Metric == c.Metric && ratio.Estimate.Low != nil && ratio.Estimate.High != nil {
			out.Judged = &why.Interval{Value: ratio.Estimate.Value, Low: *ratio.Estimate.Low, High: *ratio.Estimate.High}
		}
	}
	return out
}

// wave runs a cause wave and adds its trials.
func (c *causeRun) wave(ctx context.Context, rounds int, names []string) error {
	const point = 0
	laid, plan, err := wave.Lay(c.judged, c.candidate, point, c.waves, c.rounds, rounds, names)
	if err != nil {
		return err
	}
	raw, err := ledger.JSON(laid)
	if err != nil {
		return err
	}
	if err := c.executor.Plan(ctx, c.store, ledger.WaveKey(laid.Wave), raw); err != nil {
		return err
	}
	c.plan.Kind, c.plan.Blocks = plan.Kind, append(c.plan.Blocks, plan.Blocks...)
	c.raw = map[string][]byte{}
	by := map[string]wave.Block{}
	for _, block := range plan.Blocks {
		by[block.ID] = block
	}
	c.executor.Instrument = func(block *record.Block, start func() (int, error)) (func() error, error) {
		return c.observe(by[block.ID], start)
	}
	if err := c.executor.Run(ctx, laid, func(block record.Block) {
		fmt.Fprintf(c.Log, "%s: cause block %s done (%s)\n", c.Run.Experiment.Run.Name, block.ID, by[block.ID].Instrument)
	}); err != nil {
		return err
	}
	attempts, _, err := ledger.ReadAttempts(ctx, c.store, laid.Wave)
	if err != nil {
		return err
	}
	for _, block := range plan.Blocks {
		if err := c.read(block, attempts); err != nil {
			return err
		}
	}
	c.waves, c.rounds = c.waves+1, c.rounds+rounds
	return nil
}

// observe starts a runner under the instrument of its block.
func (c *causeRun) observe(block wave.Block, start func() (int, error)) (func() error, error) {
	session, err := c.instrument(block.Instrument).Start(start)
	if err != nil {
		return nil, err
	}
	return func() error {
		raw, err := session.Stop()
		if err != nil || raw == nil {
			return err
		}
		c.raw[block.ID] = raw
		path := filepath.Join(c.executor.Folder, "recordings", block.ID)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, raw, 0o444)
	}, nil
}

func (c *causeRun) instrument(name string) instrument.Instrument {
	for _, rung := range c.use {
		if rung.Name() == name {
			return rung
		}
	}
	return nil
}

// read adds the trials of a block.
func (c *causeRun) read(block wave.Block, attempts []record.Attempt) error {
	observed := wave.Observed{Block: block, Attempts: attempts}
	if raw := c.raw[block.ID]; raw != nil {
		readings, err := c.instrument(block.Instrument).Read(raw, wave.Windows(attempts, block.ID))
		if err != nil {
			return fmt.Errorf("recording of block %s: %w", block.ID, err)
		}
		observed.Readings = readings
		c.note(block.Instrument, readings.Lost, readings.Notes)
	}
	c.trials = append(c.trials, observed.Trials(c.Figure)...)
	return nil
}

// note adds the limits of a recording to its rung, each once.
func (c *causeRun) note(name string, lost int64, notes []string) {
	for i := range c.rungs {
		rung := &c.rungs[i]
		if rung.Name != name {
			continue
		}
		rung.Lost += lost
		for _, note := range notes {
			if !strings.Contains(strings.Join(rung.Notes, "\n"), note) {
				rung.Notes = append(rung.Notes, note)
			}
		}
	}
}

// write stores the input of the explanation, the explanation and its flame graph.
func (c *causeRun) write(explanation *why.Explanation) error {
	input := WhyTrials{Question: explanation.Question, Rungs: c.rungs, Trials: c.trials}
	for name, value := range map[string]any{WhyTrialsFile: input, WhyExplanationFile: explanation, "plan.json": c.plan} {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.executor.Folder, name), append(raw, '\n'), 0o444); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(c.executor.Folder, whyFlameFile))
	if err != nil {
		return err
	}
	return errors.Join(causes.Flame(file, explanation.Question, causes.Stacks(explanation.Question, c.trials)), file.Close())
}
