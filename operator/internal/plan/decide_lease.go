package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/period"
	"assay.dev/assay/operator/internal/record"
)

const (
	// queueInterval is how often a run that waits reads the queue: no event reports that a run ahead of it left.
	queueInterval = 10 * time.Second
	// releaseSettles is when to check again whether something still runs on a node that is drained.
	releaseSettles = time.Second
	// suspendSettles is how long the engine may take to suspend an execution. A run that is resumed within it keeps its nodes.
	suspendSettles = 10 * time.Second
)

// againMessage is appended to the reason why a wave was stopped that lost its nodes.
const againMessage = ": the attempts so far will be analysed, and the missing blocks are planned again"

// takeLanes finds nodes for a wave and acquires their leases. It returns the lanes once the run may start on them, or the decision that
// comes before. A run starts on the nodes that it gets, and waits only while it has none, so that runs never wait for each other (no
// deadlock).
func (p *planner) takeLanes(blocks int, avoid []string) ([]design.Lane, *Decision) {
	placement := p.Ledger.Experiment.Plan.Placement
	usable, problem := usableNodes(placement, p.settings.Engine.Overhead, p.settings.Policy, p.Nodes)
	if problem != "" {
		return nil, p.releaseIdle(nil, waiting(assayv1alpha1.ReasonNoNodeMatches, problem, 0))
	}
	if usable, problem = p.idle(usable); problem != "" {
		return nil, p.releaseIdle(nil, waiting(assayv1alpha1.ReasonWaitingForNode, problem, podsInterval))
	}
	if others := except(usable, avoid); len(others) > 0 {
		usable = others
	}
	wants := min(int(placement.MaxNodes), blocks)
	if !Leased(placement) {
		return p.sharedLanes(usable, wants)
	}
	var keep []string
	for _, held := range p.held() {
		if slices.Contains(usable, held.Node) && len(keep) < wants {
			keep = append(keep, held.Node)
		}
	}
	me := lease.Waiter{
		Run: HolderOf(p.Run), Created: p.Run.CreationTimestamp.Time, Nodes: except(usable, keep), Wants: wants - len(keep),
	}
	if len(keep) == 0 {
		p.place = &Place{Ahead: p.queue().Ahead(me)}
	}
	giving := p.releaseIdle(keep, waiting(assayv1alpha1.ReasonReleasingLease, "giving back nodes that the next blocks do not need",
		podsInterval))
	drained := slices.ContainsFunc(p.held(), func(l lease.Lease) bool { return l.Draining && !slices.Contains(keep, l.Node) })
	if giving.Action != nil || drained || p.working() && len(p.held()) > len(keep) {
		return nil, giving
	}
	if granted := p.queue().Grant(p.takeable(me.Nodes), me); len(granted) > 0 {
		return nil, &Decision{
			Action: AcquireLeases{Nodes: granted, Whole: placement.Exclusive == experiment.ExclusiveNode},
			Reason: assayv1alpha1.ReasonTakingLease, Message: "taking " + strings.Join(granted, ", "),
		}
	}
	if len(keep) == 0 {
		return nil, p.waitForLease(me)
	}
	if used := p.usedTokens(keep); len(used) > 0 {
		return nil, &Decision{
			Action: RetakeLeases{used},
			Reason: assayv1alpha1.ReasonTakingLease, Message: "taking " + strings.Join(used, ", ") + " anew",
		}
	}
	return p.leasedLanes(keep, placement)
}

// idle removes the nodes that still have a pod of an earlier wave, in any state of its execution: a machine that was unreachable may become
// ready again with its pods. If no node is left, problem is the cause of the wait.
func (p *planner) idle(nodes []string) (idle []string, problem string) {
	if waiting := p.Pods.Blocks[""]; waiting > 0 {
		return nil, fmt.Sprintf("waiting for pods of an earlier wave that have no node yet: %d", waiting)
	}
	idle = slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return p.Pods.Blocks[node] > 0 })
	if len(idle) == 0 {
		return nil, fmt.Sprintf("waiting for pods of an earlier wave on %s: they have not ended", strings.Join(nodes, ", "))
	}
	return idle, ""
}

// usedTokens are the nodes whose lease has a token of an earlier wave, or is draining. Every wave has other tokens, so that attempts of an
// earlier wave that arrive late are distinguished from those of this wave (fencing).
func (p *planner) usedTokens(nodes []string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(node string) bool {
		held := p.leaseOf(node)
		current := record.Lease{Node: node, Token: held.Token}
		return !held.Draining && !slices.ContainsFunc(p.Ledger.Waves, func(wave record.Wave) bool {
			return slices.ContainsFunc(wave.Blocks, func(block record.Block) bool { return block.Lease != nil && *block.Lease == current })
		})
	})
}

// leasedLanes are the lanes on nodes that the run holds, once those have its taint.
func (p *planner) leasedLanes(nodes []string, placement experiment.Placement) ([]design.Lane, *Decision) {
	var lanes []design.Lane
	for _, name := range nodes {
		node := p.node(name)
		if placement.Exclusive == experiment.ExclusiveNode && !lease.Tainted(node.Taints, string(p.Run.UID)) {
			return nil, waiting(assayv1alpha1.ReasonTakingLease, fmt.Sprintf("node %s is the run's and is being tainted", name), podsInterval)
		}
		lanes = append(lanes, design.Lane{Node: name, Token: p.leaseOf(name).Token})
	}
	return lanes, nil
}

// sharedLanes are the lanes of a run without leases: on any usable node that no run has exclusively.
func (p *planner) sharedLanes(usable []string, wants int) ([]design.Lane, *Decision) {
	var lanes []design.Lane
	taken := ""
	for _, name := range usable {
		current := p.leaseOf(name)
		if current.Whole || slices.ContainsFunc(p.node(name).Taints, isLeaseTaint) {
			taken = fmt.Sprintf("a run that has node %s for itself", name)
			if current.Held() {
				taken = fmt.Sprintf("run %s, which has node %s for itself since %s", current.Holder.Run(), name, stamp(current.Acquired))
			}
			continue
		}
		lanes = append(lanes, design.Lane{Node: name})
	}
	if len(lanes) == 0 {
		return nil, waiting(assayv1alpha1.ReasonWaitingForNode, "waiting for "+taken, queueInterval)
	}
	return lanes[:min(len(lanes), wants)], nil
}

// takeable are those of nodes that the run does not hold and whose lease it may acquire now.
func (p *planner) takeable(nodes []string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return !p.leaseOf(node).Takeable(p.now) })
}

// waitForLease waits, and reports who holds the nodes, since when, and how many runs are ahead.
func (p *planner) waitForLease(me lease.Waiter) *Decision {
	after := queueInterval
	var parts []string
	for _, name := range me.Nodes {
		current := p.leaseOf(name)
		if left := current.Left(p.now); current.Held() && left > 0 {
			after = min(after, left)
		}
		parts = append(parts, describeLease(name, current, p.now))
	}
	const shown = 5
	if len(parts) > shown {
		parts = append(parts[:shown], fmt.Sprintf("%d more nodes", len(parts)-shown))
	}
	message := "waiting for a node: " + strings.Join(parts, "; ")
	switch ahead := p.place.Ahead; ahead {
	case 0:
		message += "; this run is next"
	case 1:
		message += "; one run that came earlier is ahead"
	default:
		message += fmt.Sprintf("; %d runs that came earlier are ahead", ahead)
	}
	return waiting(assayv1alpha1.ReasonWaitingForLease, message, after)
}

func describeLease(name string, current lease.Lease, now time.Time) string {
	switch {
	case !current.Held():
		return name + " is free"
	case !current.Expired(now):
		return fmt.Sprintf("%s is leased by %s since %s", name, current.Holder.Run(), stamp(current.Acquired))
	case current.Busy == "":
		return fmt.Sprintf("%s was leased by %s until %s", name, current.Holder.Run(), stamp(current.ExpiresAt()))
	default:
		return fmt.Sprintf("%s was leased by %s until %s, and is taken over once %s has ended", name, current.Holder.Run(),
			stamp(current.ExpiresAt()), current.Busy)
	}
}

// stranded reports whether the newest wave can never continue: it has no execution, and its nodes or leases are lost.
func (p *planner) stranded() bool {
	if p.Wave != nil || p.Ledger.Newest == nil || p.Ledger.Analysed {
		return false
	}
	return slices.ContainsFunc(design.LanesOf(p.Ledger.Newest), func(lane design.Lane) bool {
		why, _ := p.lost(lane.Node)
		return why != "" || p.outOfForce(lane) != ""
	})
}

// cannotGoOn stops a wave whose blocks lost their node, so that the next wave replaces them.
func (p *planner) cannotGoOn() *Decision {
	if p.Ledger.Newest == nil {
		return nil
	}
	open := map[string]int{}
	for _, block := range p.Ledger.Newest.Blocks {
		if block.Lease == nil || !slices.Contains(p.Ledger.Open, block.ID) {
			continue
		}
		open[block.Lease.Node]++
		if why := p.outOfForce(design.Lane(*block.Lease)); why != "" {
			return p.stopAndPlanAgain(why)
		}
	}
	return first(func() *Decision { return p.nodesLost(open) }, p.suspendedForLong, p.surplus)
}

// surplus releases, while a wave runs, nodes that only an earlier wave used, once the last pod there is gone.
func (p *planner) surplus() *Decision {
	if p.Pods.Blocks[""] > 0 {
		return nil
	}
	lanes := design.LanesOf(p.Ledger.Newest)
	idle := slices.DeleteFunc(p.held(), func(held lease.Lease) bool {
		return p.Pods.Blocks[held.Node] > 0 || slices.ContainsFunc(lanes, func(lane design.Lane) bool { return lane.Node == held.Node })
	})
	if len(idle) == 0 {
		return nil
	}
	out := waveRuns(p.waveMessage(), 0)
	out.Action, out.After = releaseStep(idle)
	return out
}

// suspendedForLong stops the wave of a suspended run once no block runs, so that its nodes are released.
func (p *planner) suspendedForLong() *Decision {
	since := p.Run.Status.SuspendedSince
	if !Suspended(p.Run) || since == nil || len(p.held()) == 0 || len(p.Pods.Blocks) > 0 {
		return nil
	}
	if left := period.Left(since.Time, suspendSettles, p.now); left > 0 {
		p.wake(left)
		return nil
	}
	return p.stopAndPlanAgain("spec.suspend is true and no block runs, so others may have the nodes")
}

func (p *planner) stopAndPlanAgain(why string) *Decision {
	return &Decision{
		Action: Stop{Execution: p.Wave.Name, Why: why, Again: true}, After: podsInterval,
		Reason: assayv1alpha1.ReasonWaitingForNode, Message: why + againMessage,
	}
}

func except(names, without []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(without, name) })
}
