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

// Decision is what happens next, and how the run stands meanwhile.
type Decision struct {
	// Action is what to write; nil is nothing.
	Action Action
	// Progressing, Reason and Message are the run's Progressing condition.
	Progressing bool
	Reason      string
	Message     string
	// Queue is the run's place among those that wait for a node; nil when it has one or needs none.
	Queue *Place
	// Grace is what is given time; empty is nothing.
	Grace assayv1alpha1.GraceFor
	// Ending is set when the run is over.
	Ending *Ending
	// After is when to look again even if nothing changed. 0 is at once after an action or an ending, and not at all without.
	After time.Duration
}

// LookAgain is when to look again even if nothing changed, if at all.
func (d Decision) LookAgain() (after time.Duration, again bool) {
	return d.After, d.After > 0 || d.followedAtOnce()
}

func (d Decision) followedAtOnce() bool { return d.After == 0 && (d.Action != nil || d.Ending != nil) }

// Place is one in the queue for nodes.
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

// Begins reports whether a run that had not begun does so with an action.
func Begins(action Action) bool {
	switch action.(type) {
	case AcquireLeases, PlanWave:
		return true
	}
	return false
}

// Action is one thing to write. Its text is what a person reads in logs and stories.
type Action interface{ fmt.Stringer }

// Accept writes the frozen experiment to the ledger and keeps the run from vanishing unseen.
type Accept struct{ Experiment *experiment.Experiment }

// PlanWave writes a wave to the ledger. A wave that is not there does not exist.
type PlanWave struct {
	Wave  *record.Wave
	Lanes []design.Lane
}

// StartWave starts the workflow of a wave that the ledger has.
type StartWave struct {
	Experiment *experiment.Experiment
	Wave       *record.Wave
	Lanes      []design.Lane
}

// Suspend keeps a workflow from starting further blocks.
type Suspend struct{ Workflow string }

// Resume lets it go on.
type Resume struct{ Workflow string }

// Stop ends a workflow; its analysis still runs. Again marks it, so that the blocks that are missing then are planned
// again, in place of the run ending with what there is.
type Stop struct {
	Workflow, Why string
	Again         bool
}

// Terminate ends a workflow without an analysis.
type Terminate struct{ Workflow, Why string }

// Analyze starts a workflow that analyses a wave again.
type Analyze struct {
	Experiment *experiment.Experiment
	Wave, Try  int
}

// DeleteRun deletes the run.
type DeleteRun struct{}

// DeleteWorkflows deletes workflows of the run and, through ownership, their pods.
type DeleteWorkflows struct{ Names []string }

// Release takes the finalizer off a run that is being deleted.
type Release struct{}

func (a Accept) String() string { return "accept the experiment" }

func (a PlanWave) String() string { return "plan " + describeWave(a.Wave, a.Lanes) }

func (a StartWave) String() string { return "start " + describeWave(a.Wave, a.Lanes) }

func describeWave(wave *record.Wave, lanes []design.Lane) string {
	var nodes []string
	for _, lane := range lanes {
		nodes = append(nodes, lane.Node)
	}
	return fmt.Sprintf("wave %d: %d blocks on %s", wave.Wave, len(wave.Blocks), strings.Join(nodes, ", "))
}

func (a Suspend) String() string { return "suspend " + a.Workflow }

func (a Resume) String() string { return "resume " + a.Workflow }

func (a Stop) String() string { return fmt.Sprintf("stop %s: %s", a.Workflow, a.Why) }

func (a Terminate) String() string { return fmt.Sprintf("terminate %s: %s", a.Workflow, a.Why) }

func (a Analyze) String() string {
	return fmt.Sprintf("analyse wave %d again, try %d", a.Wave, a.Try)
}

func (a DeleteRun) String() string { return "delete the run" }

func (a DeleteWorkflows) String() string { return "delete " + strings.Join(a.Names, ", ") }

func (a Release) String() string { return "release the run" }
