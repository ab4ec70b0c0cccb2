package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/ledgers"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/recompute"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/steps"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/suite"
)

// LocalRun is a run on this machine. Each wave is planned from the analysis of the previous ones, as in the operator.
type LocalRun struct {
	Experiment *experiment.Experiment
	programs   local.Programs
	Executor   *local.Executor
	// AfterBlock is called after each block. If nil, a line is written to the log of the executor.
	AfterBlock func(ctx context.Context, done, total int, remaining time.Duration)

	// Planner plans the waves in place of the design; nil for the design.
	Planner Planner

	// Budget is the time in which the run may begin blocks; 0 is the wall-clock budget of the experiment, after which blocks are interrupted.
	Budget time.Duration
	// Pace is the mean duration of the blocks so far, with the analyses between them; 0 before the first block.
	Pace time.Duration

	// Written is the run as a person would write it; nil unless it was made from a command line.
	Written *assayv1alpha1.BenchmarkRun

	// inherited are the variables that trials inherit; nil for none.
	inherited *record.Inherited

	// Store is nil before the first wave.
	Store  store.Store
	course *design.Course
	// history is the object that describes the point of a series; nil outside of series.
	history []byte
	// shortfall explains an unsatisfied design.
	shortfall string
}

// Planner plans the waves of a run whose design does not.
type Planner interface {
	// Observe takes the analysis of all waves so far.
	Observe(found *recompute.Analyzed)
	// Next returns the next step. Used is the time since the run began, and left the time in which blocks may begin.
	Next(course *design.Course, used, left time.Duration) design.Step
}

// localLanes is the single lane of a local run.
var localLanes = []design.Lane{{}}

// Run executes waves until the design is satisfied and returns the last analysis. After an interruption or timeout it analyzes the attempts
// so far.
func (r *LocalRun) Run(ctx context.Context) (*analysis.Analysis, error) {
	if err := r.Executor.CheckCPUs(); err != nil {
		return nil, cli.UsageError(err)
	}
	if err := local.Hide(); err != nil {
		return nil, err
	}
	began, wallClock := time.Now(), r.Experiment.Plan.Budget.WallClock.Duration
	budget, cancel := context.WithTimeout(ctx, wallClock)
	defer cancel()
	const share = 0.95 // The rest of the budget is for blocks that take longer than the mean.
	left := func() time.Duration { return cmp.Or(r.Budget, wallClock) - time.Since(began) }
	room := func() int {
		if r.Pace = 0; r.course.Blocks() > 0 {
			r.Pace = time.Since(began) / time.Duration(r.course.Blocks())
		}
		return int(min(share*float64(left())/float64(max(r.Pace, 1)), math.MaxInt32))
	}
	var result *analysis.Analysis
	r.course = design.Begin(r.Experiment)
	execute := func(laid *record.Wave, why string) (findings design.Findings, stopped bool, err error) {
		r.printExpected(result)
		wave, err := r.writeWave(ctx, laid)
		if err != nil {
			return findings, false, err
		}
		if stopped, err = r.execute(budget, wave, why); err != nil {
			return findings, stopped, err
		}
		if err := r.Executor.CheckUnaltered(context.WithoutCancel(ctx), r.Store); err != nil {
			return findings, stopped, err
		}
		found, err := ledgers.AnalyzeInto(context.WithoutCancel(ctx), r.Store, wave.Wave, r.Store)
		if err != nil {
			return findings, stopped, err
		}
		if result = found.Analysis; r.Planner != nil {
			r.Planner.Observe(found)
		}
		return result.Findings(), stopped, nil
	}
	follow := func() (design.Step, error) { return bench.Follow(r.course, localLanes, room, execute) }
	if r.Planner != nil {
		plan := func() design.Step {
			used := time.Since(began)
			return r.Planner.Next(r.course, used, time.Duration(share*float64(left())))
		}
		follow = func() (design.Step, error) { return suite.Follow(r.course, localLanes, plan, execute) }
	}
	next, err := follow()
	if _, tooLarge := errors.AsType[*design.TooLarge](err); tooLarge {
		return nil, cli.UsageError(err) // The design is too large, which is an error of the input.
	}
	if err != nil {
		return nil, err
	}
	r.Pace = time.Since(began) / time.Duration(max(1, r.course.Blocks()))
	r.shortfall = next.Why
	if !next.Done {
		r.printExpected(result)
		r.shortfall = "stopped before the design was satisfied"
		if next.Why != "" {
			r.shortfall += ": " + next.Why
		}
	}
	return result, nil
}

// Shortfall returns why the run ended before its design or planner was satisfied; empty otherwise.
func (r *LocalRun) Shortfall() string { return r.shortfall }

// Blocks returns the number of blocks of all waves.
func (r *LocalRun) Blocks() int { return r.course.Blocks() }

// printExpected prints the expected effect of further blocks, if the analysis has an estimate.
func (r *LocalRun) printExpected(result *analysis.Analysis) {
	if result == nil {
		return
	}
	if text := explain.ExpectedText(r.Experiment, result); text != "" {
		fmt.Fprintf(r.Executor.Log, "%s: %s\n", r.Experiment.Run.Name, text)
	}
}

// Pilot runs the first step with the given number of blocks in a temporary folder. Its attempts are not part of the run.
func (r *LocalRun) Pilot(ctx context.Context, blocks int) (result *recompute.Analyzed, took time.Duration, err error) {
	if err := r.Executor.CheckCPUs(); err != nil {
		return nil, 0, cli.UsageError(err)
	}
	folder, err := os.MkdirTemp("", "assay-pilot-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	executor := *r.Executor
	executor.Folder, executor.Name, executor.Log = folder, "pilot", io.Discard
	pilot := &LocalRun{Experiment: r.Experiment, programs: r.programs, Executor: &executor, inherited: r.inherited}
	first := design.Begin(r.Experiment)
	step := first.Next()
	step.Blocks = blocks
	wave, err := first.Lay(step, localLanes, nil)
	if err != nil {
		return nil, 0, cli.UsageError(err)
	}
	if wave, err = pilot.writeWave(ctx, wave); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := executor.Run(ctx, wave, nil); err != nil {
		return nil, 0, err
	}
	took = time.Since(began)
	result, err = ledgers.AnalyzeLedger(ctx, pilot.Store, wave.Wave)
	return result, took, err
}

// writeWave writes a wave for this machine to the ledger. The first wave creates the ledger.
func (r *LocalRun) writeWave(ctx context.Context, laid *record.Wave) (*record.Wave, error) {
	wave, err := local.Prepare(laid, r.programs)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	wave.Workload.Inherited = r.inherited
	if r.Store == nil {
		if r.Store, err = startLedger(ctx, r.Executor, r.Experiment); err != nil {
			return nil, err
		}
		if around := r.Executor.Steps; around != nil {
			raw, err := ledger.JSON(around)
			if err != nil {
				return nil, err
			}
			if err := r.Executor.Plan(ctx, r.Store, steps.Key, raw); err != nil {
				return nil, err
			}
		}
		if r.history != nil {
			if err := r.Executor.Plan(ctx, r.Store, points.Key, r.history); err != nil {
				return nil, err
			}
		}
	}
	raw, err := ledger.JSON(wave)
	if err != nil {
		return nil, err
	}
	return wave, r.Executor.Plan(ctx, r.Store, ledger.WaveKey(wave.Wave), raw)
}

// execute runs the blocks of a wave. stopped reports an interruption or timeout.
func (r *LocalRun) execute(ctx context.Context, wave *record.Wave, why string) (stopped bool, err error) {
	name, log, started := r.Experiment.Run.Name, r.Executor.Log, time.Now()
	total, done, trials, ran := len(wave.Blocks), 0, wave.Trials(), 0
	if why != "" {
		why = ": " + why
	}
	if wave.Wave == 0 {
		why += ", ledger " + r.Executor.Folder
	}
	fmt.Fprintf(log, "%s: wave %d: %d blocks, %d trials%s\n", name, wave.Wave, total, trials, why)
	engine := &local.Engine{Executor: r.Executor, Done: func(block record.Block) {
		done, ran = done+1, ran+block.Trials()
		remaining := time.Duration(float64(time.Since(started)) / float64(ran) * float64(trials-ran))
		if r.AfterBlock != nil {
			r.AfterBlock(context.WithoutCancel(ctx), done, total, remaining)
			return
		}
		fmt.Fprintf(log, "%s: block %s done, %d/%d trials, remaining about %s\n", name, block.ID, ran, trials, quantity.Seconds(remaining))
	}}
	err = engine.Execute(ctx, plan.StartWave{Experiment: r.Experiment, Wave: wave})
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return false, err
	}
	fmt.Fprintf(log, "%s: stopped after %d of %d blocks (%v); analyzing the attempts so far\n", name, done, total, err)
	return true, nil
}
