package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// localRun is a run on this machine: waves, each planned from the analysis of those before it, as the operator plans them.
type localRun struct {
	experiment *experiment.Experiment
	programs   local.Programs
	executor   *local.Executor
	// after shows every block that is done; nil writes a line of it to the executor's log.
	after func(ctx context.Context, done, total int, remaining time.Duration)

	// store is nil until the first wave is laid out.
	store  store.Store
	course *design.Course
	// history is what the run is measured for, and lies in its ledger; nil where it is no point of a series.
	history []byte
	// note is what the design asked for and did not get.
	note string
}

// anywhere is the one lane of a run on this machine.
var anywhere = []design.Lane{{}}

// run executes waves until the design is satisfied and returns the last analysis. Interrupted or out of time, what was
// measured is judged all the same.
func (r *localRun) run(ctx context.Context) (*analysis.Analysis, error) {
	if err := local.Hide(); err != nil {
		return nil, err
	}
	budget, cancel := context.WithTimeout(ctx, r.experiment.Plan.Budget.WallClock.Duration)
	defer cancel()
	var result *analysis.Analysis
	r.course = design.Begin(r.experiment)
	left, err := r.course.Follow(anywhere, func(laid *record.Wave, why string) (findings design.Findings, stopped bool, err error) {
		r.printExpected(result)
		wave, err := r.keep(ctx, laid)
		if err != nil {
			return findings, false, err
		}
		if stopped, err = r.execute(budget, wave, why); err != nil {
			return findings, stopped, err
		}
		if err := r.executor.Untouched(context.WithoutCancel(ctx), r.store); err != nil {
			return findings, stopped, err
		}
		found, err := analyzeInto(context.WithoutCancel(ctx), r.store, wave.Wave, r.store)
		if err != nil {
			return findings, stopped, err
		}
		result = found.analysis
		return result.Findings(), stopped, nil
	})
	if _, tooLarge := errors.AsType[*design.TooLarge](err); tooLarge {
		return nil, &exitCode{exitUsage, err} // What was asked for is at fault.
	}
	if err != nil {
		return nil, err
	}
	r.note = left.Why
	if !left.Done {
		r.printExpected(result)
		r.note = "stopped before the design was satisfied"
		if left.Why != "" {
			r.note += ": " + left.Why
		}
	}
	return result, nil
}

// printExpected says what is expected of the blocks to come, once something was found.
func (r *localRun) printExpected(result *analysis.Analysis) {
	if result == nil {
		return
	}
	if text := explain.ExpectedText(r.experiment, result); text != "" {
		fmt.Fprintf(r.executor.Log, "%s: %s\n", r.experiment.Run.Name, text)
	}
}

// pilot runs the first step of the run, with so many blocks, in a folder of its own that is gone afterwards. It is no part of the run.
func (r *localRun) pilot(ctx context.Context, blocks int) (result *analyzed, took time.Duration, err error) {
	folder, err := os.MkdirTemp("", "assay-pilot-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	executor := *r.executor
	executor.Folder, executor.Name, executor.Log = folder, "pilot", io.Discard
	pilot := &localRun{experiment: r.experiment, programs: r.programs, executor: &executor}
	first := design.Begin(r.experiment)
	step := first.Next()
	step.Blocks = blocks
	wave, err := first.Lay(step, anywhere, nil)
	if err != nil {
		return nil, 0, &exitCode{exitUsage, err}
	}
	if wave, err = pilot.keep(ctx, wave); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := executor.Run(ctx, wave, nil); err != nil {
		return nil, 0, err
	}
	took = time.Since(began)
	result, err = analyzeLedger(ctx, pilot.store, wave.Wave)
	return result, took, err
}

// keep writes a wave, as this machine executes it, to the ledger, which the first one starts.
func (r *localRun) keep(ctx context.Context, laid *record.Wave) (*record.Wave, error) {
	wave, err := local.Prepare(laid, r.programs)
	if err != nil {
		return nil, &exitCode{exitUsage, err}
	}
	if r.store == nil {
		if r.store, err = startLedger(ctx, r.executor, r.experiment); err != nil {
			return nil, err
		}
		if r.history != nil {
			if err := r.executor.Plan(ctx, r.store, points.Key, r.history); err != nil {
				return nil, err
			}
		}
	}
	raw, err := ledger.JSON(wave)
	if err != nil {
		return nil, err
	}
	return wave, r.executor.Plan(ctx, r.store, ledger.WaveKey(wave.Wave), raw)
}

// execute runs the blocks of a wave; stopped reports whether it was interrupted or ran out of time.
func (r *localRun) execute(ctx context.Context, wave *record.Wave, why string) (stopped bool, err error) {
	name, log, started := r.experiment.Run.Name, r.executor.Log, time.Now()
	total, done, trials, ran := len(wave.Blocks), 0, wave.Trials(), 0
	if why != "" {
		why = ": " + why
	}
	if wave.Wave == 0 {
		why += ", ledger " + r.executor.Folder
	}
	fmt.Fprintf(log, "%s: wave %d: %d blocks, %d trials%s\n", name, wave.Wave, total, trials, why)
	err = r.executor.Run(ctx, wave, func(block record.Block) {
		done, ran = done+1, ran+block.Trials()
		remaining := time.Duration(float64(time.Since(started)) / float64(ran) * float64(trials-ran))
		if r.after != nil {
			r.after(context.WithoutCancel(ctx), done, total, remaining)
			return
		}
		fmt.Fprintf(log, "%s: block %s done, %d/%d trials, remaining about %s\n", name, block.ID, ran, trials, quantity.Seconds(remaining))
	})
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return false, err
	}
	fmt.Fprintf(log, "%s: stopped after %d of %d blocks (%v); judging what was measured\n", name, done, total, err)
	return true, nil
}
