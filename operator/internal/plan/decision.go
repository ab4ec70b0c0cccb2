package plan

import (
	"fmt"
	"strings"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Decision is the next action, and the status to report until it is done.
type Decision struct {
	// Action is what to write; nil is nothing.
	Action Action
	// Progressing, Reason and Message are the run's Progressing condition.
	Progressing bool
	Reason      string
	Message     string
	// Queue is the run's place among those that wait for a node; nil when it has one or needs none.
	Queue *Place
	// Grace is the current grace period of the run; empty without one.
	Grace assayv1alpha1.GraceFor
	// Ending is set when the run is over.
	Ending *Ending
	// After is when to reconcile again even if nothing changed. 0 means at once after an action or an ending, and not at all otherwise.
	After time.Duration
}

// RequeueAfter returns when to reconcile again even if nothing changed, and whether to.
func (d Decision) RequeueAfter() (after time.Duration, again bool) {
	return d.After, d.After > 0 || d.followedAtOnce()
}

func (d Decision) followedAtOnce() bool { return d.After == 0 && (d.Action != nil || d.Ending != nil) }

// Place is a run's place in the queue for nodes.
type Place struct {
	// Ahead counts the runs that come first and could use the same nodes.
	Ahead int
}

// Ending is how a run ended.
type Ending struct {
	// Analysed means that it ended with an analysis.
	Analysed        bool
	Reason, Message string
}

// Begins reports whether a run that has not started starts with an action.
func Begins(action Action) bool {
	return action != nil && action.begins()
}

// Action is one write. Its text is used in logs and in the stories of tests.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	// begins: see Begins. It also seals the interface, so that the linter knows all actions and requires each in a switch.
	begins() bool
}

// Accept writes the frozen experiment to the ledger and adds the finalizer.
type Accept struct{ Experiment *experiment.Experiment }

// PlanWave writes a wave to the ledger. Only waves that are there exist.
type PlanWave struct {
	Wave  *record.Wave
	Lanes []design.Lane
}

// StartWave starts the execution of a wave that the ledger has.
type StartWave struct {
	Experiment *experiment.Experiment
	Wave       *record.Wave
	Lanes      []design.Lane
	// Longest is the deadline of a block, including the pull of its images. Its kubelet enforces it without the operator or the engine.
	Longest time.Duration
}

// Suspend suspends an execution, so that it starts no further block.
type Suspend struct{ Execution string }

// Resume continues a suspended execution.
type Resume struct{ Execution string }

// Stop ends an execution; its analysis still runs. With Again the missing blocks are planned again; otherwise the run ends with the
// attempts so far.
type Stop struct {
	Execution, Why string
	Again          bool
}

// Terminate ends an execution without an analysis.
type Terminate struct{ Execution, Why string }

// Analyze starts a further analysis of a wave.
type Analyze struct {
	Experiment *experiment.Experiment
	Wave, Try  int
}

// DeleteRun deletes the run.
type DeleteRun struct{}

// DeleteExecutions deletes executions of the run, with their pods.
type DeleteExecutions struct{ Names []string }

// Release removes the finalizer of a run that holds nothing any more.
type Release struct{}

func (Accept) begins() bool           { return false }
func (PlanWave) begins() bool         { return true }
func (StartWave) begins() bool        { return false }
func (Suspend) begins() bool          { return false }
func (Resume) begins() bool           { return false }
func (Stop) begins() bool             { return false }
func (Terminate) begins() bool        { return false }
func (Analyze) begins() bool          { return false }
func (DeleteRun) begins() bool        { return false }
func (DeleteExecutions) begins() bool { return false }
func (Release) begins() bool          { return false }
func (AcquireLeases) begins() bool    { return true }
func (RetakeLeases) begins() bool     { return false }
func (RenewLeases) begins() bool      { return false }
func (DrainLeases) begins() bool      { return false }
func (ReleaseLeases) begins() bool    { return false }

func (a Accept) String() string { return "accept the experiment" }

func (a PlanWave) String() string { return "plan " + describeWave(a.Wave, a.Lanes) }

func (a StartWave) String() string { return "start " + describeWave(a.Wave, a.Lanes) }

func describeWave(wave *record.Wave, lanes []design.Lane) string {
	return fmt.Sprintf("wave %d: %d blocks on %s", wave.Wave, len(wave.Blocks), strings.Join(nodesOf(lanes), ", "))
}

func (a Suspend) String() string { return "suspend " + a.Execution }

func (a Resume) String() string { return "resume " + a.Execution }

func (a Stop) String() string { return fmt.Sprintf("stop %s: %s", a.Execution, a.Why) }

func (a Terminate) String() string { return fmt.Sprintf("terminate %s: %s", a.Execution, a.Why) }

func (a Analyze) String() string {
	return fmt.Sprintf("analyse wave %d again, try %d", a.Wave, a.Try)
}

func (a DeleteRun) String() string { return "delete the run" }

func (a DeleteExecutions) String() string { return "delete " + strings.Join(a.Names, ", ") }

func (a Release) String() string { return "release the run" }
