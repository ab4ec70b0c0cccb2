package plan

import (
	"fmt"
	"strings"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/period"
)

// An admission webhook may add a container to every pod. The pod of a block then runs until that container ends, which a proxy never does,
// and with it the wave, which holds its nodes.

// keptGrace is how long containers of other programs may run once those of the pod itself have ended. Argo signals them within 10 seconds,
// and notes the exit code of the block.
const keptGrace = 20 * time.Second

// notInjectedPage documents how to exclude the pods of runs from webhooks.
const notInjectedPage = "docs/tasks/run-beside-a-service-mesh.md"

// EndPods deletes pods whose own containers have ended.
type EndPods struct{ Pods []KeptPod }

func (EndPods) begins() bool { return false }

func (a EndPods) String() string {
	return "end " + strings.Join(experiment.NamesOf(a.Pods, func(pod KeptPod) string { return "pod " + pod.Name }), ", ")
}

// endKept ends the pods that containers of other programs keep, if there is no other action, also those of a run that has ended.
func (p *planner) endKept(decision Decision) Decision {
	var due, late []KeptPod
	for _, pod := range p.Pods.Kept {
		switch left := period.Left(pod.Since, keptGrace, p.now); {
		case left > 0 && !decision.followedAtOnce():
			decision.After = soonest(decision.After, left)
		case left > 0:
		case pod.Deleting:
			late = append(late, pod)
		default:
			due = append(due, pod)
		}
	}
	if decision.Action != nil || decision.Ending != nil || len(due)+len(late) == 0 {
		return decision
	}
	if len(due) > 0 {
		decision.Action, decision.After = EndPods{due}, WatchSettles
	}
	// A run that has ended keeps the reason of its ending.
	if decision.Reason != "" {
		named := append(due, late...)[0]
		decision.Reason = assayv1alpha1.ReasonPodKept
		decision.Message = fmt.Sprintf("container %s, which another program added, still runs in pod %s, whose own containers ended at %s: "+
			"the pod is ended, and the run continues; %s says how to exclude the pods of runs from admission webhooks",
			named.Containers, named.Name, stamp(named.Since), notInjectedPage)
	}
	return decision
}

// Demoted warns of blocks that ask for exclusive CPUs and have none because of containers of other programs; empty otherwise.
func (o *Observed) Demoted() string {
	if o.Pods.Demoted == "" || !Leased(experiment.PlacementOf(o.Run.Spec.Placement)) {
		return ""
	}
	return fmt.Sprintf("container %s, which another program added, takes the class Guaranteed from the pods of blocks, so that their CPUs "+
		"are not exclusive: give it CPU and memory limits that equal its requests, or exclude the pods of runs from admission webhooks (%s)",
		o.Pods.Demoted, notInjectedPage)
}
