package local

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// Engine executes waves on this machine. It writes nothing to the API server, so that its callers pass no writer. An execution is known
// until it is deleted or the program ends.
type Engine struct {
	// Executor runs the blocks.
	Executor *Executor
	// Done is called after each block; nil if the caller does not follow them.
	Done func(block record.Block)
	// Analyze analyses a wave of the ledger; nil if the caller does it.
	Analyze func(ctx context.Context, wave int) error

	mutex      sync.Mutex
	executions map[string]*execution
}

var _ executor.Executor = (*Engine)(nil)

// execution is the state of one started execution.
type execution struct {
	executor.Execution
	// cancel ends its blocks. over is closed once its blocks and its analysis have ended; err is valid from then on.
	cancel context.CancelFunc
	over   chan struct{}
	err    error
	// resumed is closed while the execution is not suspended.
	resumed chan struct{}
	// terminated means that no analysis follows its blocks.
	terminated bool
}

// Execute starts a wave and waits until it is over. When ctx ends, so do its blocks, and the error of ctx is returned.
func (e *Engine) Execute(ctx context.Context, start plan.StartWave) error {
	var engine executor.Executor = e
	if err := engine.StartWave(ctx, nil, start); err != nil {
		return err
	}
	e.mutex.Lock()
	of := e.executions[executor.Name(start.Wave.Run.Name, start.Wave.Wave)]
	e.mutex.Unlock()
	<-of.over
	return of.err
}

// State implements executor.Executor. This machine is always ready.
func (e *Engine) State() plan.EngineState { return plan.EngineState{} }

// CheckWave implements executor.Executor. Nothing refuses a wave on this machine.
func (e *Engine) CheckWave(context.Context, executor.Writer, plan.StartWave) error { return nil }

// StartWave implements executor.Executor. The blocks end with ctx.
func (e *Engine) StartWave(ctx context.Context, _ executor.Writer, start plan.StartWave) error {
	name := executor.Name(start.Wave.Run.Name, start.Wave.Wave)
	as := executor.Execution{Run: lease.Holder(start.Wave.Run), Wave: start.Wave.Wave}
	e.start(ctx, name, as, func(ctx context.Context, of *execution) error {
		err := e.Executor.Run(ctx, start.Wave, func(block record.Block) {
			if e.Done != nil {
				e.Done(block)
			}
			e.waitWhileSuspended(ctx, of)
		})
		if e.Analyze == nil || e.isTerminated(of) {
			return err
		}
		return errors.Join(err, e.Analyze(context.WithoutCancel(ctx), start.Wave.Wave))
	})
	return nil
}

// StartAnalysis implements executor.Executor.
func (e *Engine) StartAnalysis(ctx context.Context, _ executor.Writer, start plan.Analyze) error {
	if e.Analyze == nil {
		return errors.New("this engine has no analysis")
	}
	run := start.Experiment.Run
	name := executor.AnalysisName(run.Name, start.Wave, start.Try)
	as := executor.Execution{Run: lease.Holder(run), Wave: start.Wave, Analysis: true}
	e.start(ctx, name, as, func(ctx context.Context, _ *execution) error { return e.Analyze(ctx, start.Wave) })
	return nil
}

// start runs work as an execution, unless there is one of the name.
func (e *Engine) start(ctx context.Context, name string, as executor.Execution, work func(context.Context, *execution) error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.executions == nil {
		e.executions = map[string]*execution{}
	}
	if e.executions[name] != nil {
		return
	}
	as.Name, as.CreatedAt, as.Seen, as.Managed = name, time.Now(), true, true
	of := &execution{Execution: as, over: make(chan struct{}), resumed: make(chan struct{})}
	close(of.resumed)
	ctx, of.cancel = context.WithCancel(ctx)
	e.executions[name] = of
	go func() {
		err := work(ctx, of)
		e.mutex.Lock()
		defer e.mutex.Unlock()
		if of.Ended, of.err = true, err; err != nil {
			of.Message = err.Error()
		}
		of.cancel()
		close(of.over)
	}()
}

func (e *Engine) waitWhileSuspended(ctx context.Context, of *execution) {
	e.mutex.Lock()
	resumed := of.resumed
	e.mutex.Unlock()
	select {
	case <-ctx.Done():
	case <-resumed:
	}
}

func (e *Engine) isTerminated(of *execution) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return of.terminated
}

// edit changes an execution that has not ended.
func (e *Engine) edit(id executor.ID, change func(*execution)) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if of := e.executions[id.Name]; of != nil && !of.Ended {
		change(of)
	}
	return nil
}

// Suspend implements executor.Executor. The block that runs ends first.
func (e *Engine) Suspend(_ context.Context, _ executor.Writer, id executor.ID, suspend bool) error {
	return e.edit(id, func(of *execution) {
		switch {
		case suspend && !of.Suspended:
			of.resumed = make(chan struct{})
		case !suspend && of.Suspended:
			close(of.resumed)
		}
		of.Suspended = suspend
	})
}

// Stop implements executor.Executor.
func (e *Engine) Stop(_ context.Context, _ executor.Writer, id executor.ID, stop executor.Stop) error {
	return e.edit(id, func(of *execution) {
		of.Stopped, of.Again, of.terminated = true, stop.Again, !stop.Analyze
		of.cancel()
	})
}

// Delete implements executor.Executor. It returns once nothing of the execution runs.
func (e *Engine) Delete(ctx context.Context, writer executor.Writer, id executor.ID) error {
	e.mutex.Lock()
	of := e.executions[id.Name]
	e.mutex.Unlock()
	if of == nil {
		return nil
	}
	if err := e.Stop(ctx, writer, id, executor.Stop{}); err != nil {
		return err
	}
	<-of.over
	e.mutex.Lock()
	defer e.mutex.Unlock()
	delete(e.executions, id.Name)
	return nil
}

// Visit implements executor.Executor. It visits copies, by name.
func (e *Engine) Visit(_ context.Context, query executor.Query, visit func(executor.Execution)) error {
	e.mutex.Lock()
	var found []executor.Execution
	for _, name := range slices.Sorted(maps.Keys(e.executions)) {
		if of := e.executions[name]; query.Matches(of.Run) {
			found = append(found, of.Execution)
		}
	}
	e.mutex.Unlock()
	for _, of := range found {
		visit(of)
	}
	return nil
}

// Logs implements executor.Executor. The runner's output is written to Executor.Log as it is produced and is stored nowhere else, so that
// there is no log to open.
func (e *Engine) Logs(context.Context, record.Run) ([]executor.Log, error) { return nil, nil }
