package plan

import (
	"fmt"
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// deletion deletes the executions of a run that is being deleted, waits until its pods have ended, and removes the finalizer. It does not
// need the ledger. If the finalizer was removed earlier, the run exists until other finalizers are removed, and its executions are deleted
// too.
func (p *planner) deletion() *Decision {
	if p.Run.DeletionTimestamp.IsZero() {
		return nil
	}
	if p.NamespaceEnding {
		if !slices.Contains(p.Run.Finalizers, Finalizer) {
			return &Decision{}
		}
		// Its leases end once they have expired and the namespace is gone, and with it every pod.
		return &Decision{Action: Release{}, Reason: assayv1alpha1.ReasonCancelled, Message: "the namespace of the run is being deleted"}
	}
	stopping := func(action Action) *Decision {
		return &Decision{
			Action: action, Reason: assayv1alpha1.ReasonCancelled, After: podsInterval,
			Message: fmt.Sprintf("the run is being deleted: pods still running: %d", p.Pods.Alive),
		}
	}
	var names []string
	for _, execution := range p.executions() {
		if !execution.Deleting {
			names = append(names, execution.Name)
		}
	}
	if len(names) > 0 {
		out := stopping(DeleteExecutions{names})
		out.After = WatchSettles
		return out
	}
	if p.Pods.Alive > 0 {
		out := stopping(nil)
		if i := slices.IndexFunc(p.Pods.Ending, p.overdue); i >= 0 {
			stuck := p.Pods.Ending[i]
			out.Reason = assayv1alpha1.ReasonPodNotEnding
			out.Message += fmt.Sprintf("; pod %s on node %s was to end by %s and has not: repair the node; or make sure that the machine is off, "+
				"and then kubectl delete node %[2]s, or kubectl delete pod -n %[4]s %[1]s --force --grace-period=0: "+
				"the run goes once its pods have", stuck.Name, stuck.Node, stamp(stuck.By), p.Run.Namespace)
		}
		return out
	}
	if len(p.held()) > 0 {
		return p.releaseIdle(nil, stopping(nil))
	}
	if !slices.Contains(p.Run.Finalizers, Finalizer) {
		return &Decision{}
	}
	return &Decision{Action: Release{}, Reason: assayv1alpha1.ReasonCancelled, Message: "the run is being deleted"}
}

// executions are the execution of the newest wave and those of its further analyses.
func (p *planner) executions() []Execution {
	out := slices.Clone(p.Analyses)
	if p.Wave != nil {
		out = append(out, *p.Wave)
	}
	return out
}

// ended releases the leases and then the finalizer of a run that has ended, and deletes it after its time to live. Its blocks are no longer
// needed: neither an analysis that was written before they had run nor an execution that the engine does not end may retain the node.
func (p *planner) ended() *Decision {
	if !Ended(p.Run) {
		return nil
	}
	out, expired := &Decision{}, false
	if ttl := p.Run.Spec.TTLSecondsAfterFinished; ttl != nil {
		left := p.Run.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(p.now)
		out.After, expired = max(0, left), left <= 0
	}
	// Release idle nodes first. A user who updates the run continuously delays its deletion and must not delay the release of its nodes.
	switch p.releaseIdle(nil, out); {
	case out.Action != nil:
	case expired:
		out.Action, out.After = DeleteRun{}, 0
	case p.working() && p.overBudget():
		out.Action, out.After = DeleteExecutions{[]string{p.Wave.Name}}, WatchSettles
	case p.working() && !p.Wave.Stopped && len(p.Pods.Blocks) > 0:
		out.Action, out.After = Terminate{p.Wave.Name, "the run has ended"}, podsInterval
	case !slices.Contains(p.Run.Finalizers, Finalizer):
	case len(p.held()) > 0 || p.working() || len(p.Pods.Blocks) > 0:
		out.After = soonest(out.After, waveInterval)
	default:
		out.Action = Release{} // Otherwise no run could be deleted after the operator is uninstalled.
	}
	return out
}
