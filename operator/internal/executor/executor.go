// Package executor defines the interface to the engine that executes waves and analyses, and the labels and names by which the operator
// finds an execution and its pods. Package argo implements it with Argo Workflows, local with this machine, fake for tests. Another engine
// is another package here and its wiring in cmd, cli/runs/logs.go and cli/platform.
//
// An executor does not write to the API server by itself: each call that changes something gets a Writer from package apply, bound to one
// run as it was observed. The Writer checks before every write that the decision still holds. Returning objects for apply to write would
// keep the interface pure, but an engine outside of the cluster has no objects to return.
package executor

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// Executor executes waves and analyses on an engine. An implementation is safe for concurrent use, and every call can be repeated.
type Executor interface {
	// State returns whether the engine can execute waves now, and otherwise the cause and the remedy in the engine's own words.
	State() plan.EngineState
	// CheckWave writes the objects of a wave to a writer that stores nothing, before the run has nodes. An error means that StartWave would
	// fail: a name belongs to another owner, or the API server refuses an object.
	CheckWave(ctx context.Context, writer Writer, wave plan.StartWave) error
	// StartWave starts the blocks of a wave and then its analysis, unless the execution exists. A wave that the engine cannot execute is
	// an error before anything is written.
	StartWave(ctx context.Context, writer Writer, wave plan.StartWave) error
	// StartAnalysis starts a further analysis of a wave, unless the execution exists.
	StartAnalysis(ctx context.Context, writer Writer, analysis plan.Analyze) error
	// Suspend suspends an execution, so that it starts no further block, or resumes it. An execution that does not exist is ignored.
	Suspend(ctx context.Context, writer Writer, execution ID, suspend bool) error
	// Stop ends the running blocks of an execution, suspended or not. An execution that does not exist is ignored.
	Stop(ctx context.Context, writer Writer, execution ID, stop Stop) error
	// Delete deletes an execution with its pods. An execution that does not exist is ignored.
	Delete(ctx context.Context, writer Writer, execution ID) error
	// Visit visits the selected executions. If the engine's API is not served, it visits nothing.
	Visit(ctx context.Context, query Query, visit func(Execution)) error
	// Logs returns the logs of a run, oldest first.
	Logs(ctx context.Context, run record.Run) ([]Log, error)
}

// Watched is an executor whose executions cause reconciles when they change.
type Watched interface {
	Executor
	// Ready is closed once executions can be watched.
	Ready() <-chan struct{}
	// Source passes changed executions to a handler, as objects with the labels of Labels. It is used after Ready is closed.
	Source(cache cache.Cache, changed handler.EventHandler) source.Source
}

// Writer writes objects for one run. Every write first checks that the decision behind it still holds, and fails with a conflict
// otherwise. An executor without objects in the API server ignores it.
type Writer interface {
	// Create creates an object that the run owns. An object of the run that exists stays as it is; that of another owner is an error.
	Create(ctx context.Context, object client.Object) error
	// Apply applies all fields of an object that the run owns, against the UID and resource version in it, if any. That of another owner
	// is an error.
	Apply(ctx context.Context, object client.Object) error
	// Delete deletes an object and its dependents if it has the UID and resource version in it, if any. A missing object is ignored.
	Delete(ctx context.Context, object client.Object) error
}

// ID identifies an execution. Without a UID it is the execution that has the name now.
type ID struct {
	Namespace, Name string
	UID             types.UID
}

// Stop is how an execution is ended.
type Stop struct {
	// Analyze makes the analysis of the wave run after its blocks have ended. Otherwise nothing more runs.
	Analyze bool
	// Again is why the missing blocks are planned again, which the execution reports from then on; empty if they are not.
	Again string
}

// Execution is one wave on the engine, or one further analysis of a wave.
type Execution struct {
	plan.Execution
	UID types.UID
	// Run is the run that it is of, according to its labels.
	Run lease.Holder
	// Wave is the number of the wave, -1 if the label has none.
	Wave int
	// Analysis means that it only analyses.
	Analysis bool
	// Managed means that the operator created it, according to its labels.
	Managed bool
	// Nodes are the nodes on which it may start blocks. It is known for executions that are read from the API server.
	Nodes []string
}

// ID returns the execution's identity.
func (e *Execution) ID() ID { return ID{Namespace: e.Run.Namespace, Name: e.Name, UID: e.UID} }

// StartsBlocks reports whether an execution may start blocks: it has not ended, is not being deleted and does not only analyse.
func (e *Execution) StartsBlocks() bool { return !e.Analysis && !e.Ended && !e.Deleting }

// Query selects executions in a namespace: those of a run's name or uid, or else all that the operator created.
type Query struct {
	Namespace string
	// Name and UID are those of the run.
	Name, UID string
	// Cached reads the cache. Otherwise the API server is asked, one page at a time.
	Cached bool
}

// Matches reports whether the executions of a run are selected.
func (q Query) Matches(run lease.Holder) bool {
	return run.Namespace == q.Namespace && (q.Name == "" || q.Name == run.Name) && (q.UID == "" || q.UID == run.UID)
}

// Log is the log of one program of an execution.
type Log struct {
	// Pod and Container locate it.
	Pod, Container string
	// Started means that the program has started, so that the log may have content.
	Started bool
	// Open opens the log at its last tail lines, or at the beginning if tail is negative. With follow it returns new lines until ctx ends.
	Open func(ctx context.Context, tail int64, follow bool) (io.ReadCloser, error)
}

// Kind is a kind of the API server that an engine uses. The operator starts on a cluster without it, and caches little of it.
type Kind struct {
	Object  client.Object
	Mapping *meta.RESTMapping
	// Slim removes the fields that the operator does not read from an object of a cache.
	Slim func(object any) (any, error)
}
