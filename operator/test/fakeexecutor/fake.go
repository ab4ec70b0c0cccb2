// Package fakeexecutor is an executor for tests. Nothing runs: executions are recorded, and the test takes the place of the runner, the
// analysis and the engine.
package fakeexecutor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// Engine describes the fake to the planner.
var Engine = plan.Engine{Name: "the fake engine", Noun: "execution", NotStarted: "call Set"}

// Executor records executions. New makes one.
type Executor struct {
	changed chan event.GenericEvent
	ready   chan struct{}

	mutex      sync.Mutex
	state      plan.EngineState
	created    int
	executions map[types.NamespacedName]*executor.Execution
}

var _ executor.Watched = (*Executor)(nil)

// New returns an executor without executions that is ready.
func New() *Executor {
	out := &Executor{
		changed: make(chan event.GenericEvent, 1024), ready: make(chan struct{}),
		executions: map[types.NamespacedName]*executor.Execution{},
	}
	close(out.ready)
	return out
}

// SetState replaces the state of the engine.
func (e *Executor) SetState(state plan.EngineState) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.state = state
}

// Set changes an execution and reports the change to the controller. It returns whether the execution exists.
func (e *Executor) Set(namespace, name string, change func(*executor.Execution)) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	found, ok := e.executions[types.NamespacedName{Namespace: namespace, Name: name}]
	if ok {
		change(found)
		e.report(found)
	}
	return ok
}

// report passes an execution on to the controller. It needs the mutex.
func (e *Executor) report(of *executor.Execution) {
	e.changed <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: of.Run.Namespace, Name: of.Name, Labels: executor.Labels(record.Run(of.Run), of.Wave),
	}}}
}

// State implements executor.Executor.
func (e *Executor) State() plan.EngineState {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.state
}

// CheckWave implements executor.Executor.
func (e *Executor) CheckWave(ctx context.Context, writer executor.Writer, wave plan.StartWave) error {
	object, err := executor.PlanConfigMap(wave.Wave)
	if err != nil {
		return err
	}
	return writer.Apply(ctx, object)
}

// StartWave implements executor.Executor. The plan is in the ConfigMap that pods of an engine mount.
func (e *Executor) StartWave(ctx context.Context, writer executor.Writer, wave plan.StartWave) error {
	object, err := executor.PlanConfigMap(wave.Wave)
	if err != nil {
		return err
	}
	if err := writer.Apply(ctx, object); err != nil {
		return err
	}
	out := executor.Execution{Run: lease.Holder(wave.Wave.Run), Wave: wave.Wave.Wave}
	out.Name = executor.Name(out.Run.Name, out.Wave)
	for _, lane := range wave.Lanes {
		out.Nodes = append(out.Nodes, lane.Node)
	}
	e.create(out)
	return nil
}

// StartAnalysis implements executor.Executor.
func (e *Executor) StartAnalysis(_ context.Context, _ executor.Writer, analysis plan.Analyze) error {
	run := analysis.Experiment.Run
	out := executor.Execution{Run: lease.Holder(run), Wave: analysis.Wave, Analysis: true}
	out.Name = executor.AnalysisName(run.Name, analysis.Wave, analysis.Try)
	e.create(out)
	return nil
}

func (e *Executor) create(out executor.Execution) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	key := types.NamespacedName{Namespace: out.Run.Namespace, Name: out.Name}
	if e.executions[key] != nil {
		return
	}
	e.created++
	out.UID, out.Managed, out.CreatedAt = types.UID(fmt.Sprint("fake-", e.created)), true, metav1.Now().Time
	e.executions[key] = &out
	e.report(&out)
}

// Suspend implements executor.Executor.
func (e *Executor) Suspend(_ context.Context, _ executor.Writer, id executor.ID, suspend bool) error {
	e.Set(id.Namespace, id.Name, func(of *executor.Execution) { of.Suspended = suspend })
	return nil
}

// Stop implements executor.Executor. The test ends the execution.
func (e *Executor) Stop(_ context.Context, _ executor.Writer, id executor.ID, stop executor.Stop) error {
	e.Set(id.Namespace, id.Name, func(of *executor.Execution) {
		of.Stopped, of.Suspended, of.Again = true, false, stop.Again
		of.Ended = of.Ended || !stop.Analyze
	})
	return nil
}

// Delete implements executor.Executor.
func (e *Executor) Delete(_ context.Context, _ executor.Writer, id executor.ID) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	key := types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
	if of := e.executions[key]; of != nil && (id.UID == "" || id.UID == of.UID) {
		delete(e.executions, key)
		e.report(of)
	}
	return nil
}

// Visit implements executor.Executor. It visits copies.
func (e *Executor) Visit(_ context.Context, query executor.Query, visit func(executor.Execution)) error {
	e.mutex.Lock()
	var found []executor.Execution
	for _, of := range slices.Collect(maps.Values(e.executions)) {
		if query.Matches(of.Run) {
			found = append(found, *of)
		}
	}
	e.mutex.Unlock()
	for _, of := range found {
		visit(of)
	}
	return nil
}

// Logs implements executor.Executor. Nothing runs, so that it returns no logs.
func (e *Executor) Logs(context.Context, record.Run) ([]executor.Log, error) { return nil, nil }

// Ready implements executor.Watched.
func (e *Executor) Ready() <-chan struct{} { return e.ready }

// Source implements executor.Watched.
func (e *Executor) Source(_ cache.Cache, changed handler.EventHandler) source.Source {
	return source.Channel(e.changed, changed)
}
