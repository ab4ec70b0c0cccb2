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
)

// WaitingRun is another run that waits for the lease of a node.
type WaitingRun struct {
	Run       lease.Holder
	Created   time.Time
	Placement experiment.Placement
}

// HolderOf is the run as the holder of a lease.
func HolderOf(run *assayv1alpha1.BenchmarkRun) lease.Holder {
	return lease.Holder{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)}
}

// Leased reports whether blocks of the placement run only on nodes that the run holds.
func Leased(placement experiment.Placement) bool {
	return placement.Exclusive != experiment.ExclusiveNone
}

// AcquireLeases takes nodes for the run. Whole takes them for itself: nothing else is scheduled there.
type AcquireLeases struct {
	Nodes []string
	Whole bool
}

// RetakeLeases ends the run's time under its nodes' tokens and begins one under new ones, without giving the nodes to anybody.
type RetakeLeases struct{ Nodes []string }

// RenewLeases keeps nodes.
type RenewLeases struct{ Nodes []string }

// ReleaseLeases gives nodes back. Besides is a workflow of the run that runs on other nodes, if there is one.
type ReleaseLeases struct {
	Nodes   []string
	Besides string
}

func (a AcquireLeases) String() string { return "take the lease of " + strings.Join(a.Nodes, ", ") }

func (a RetakeLeases) String() string {
	return "take the lease of " + strings.Join(a.Nodes, ", ") + " anew"
}

func (a RenewLeases) String() string { return "renew the lease of " + strings.Join(a.Nodes, ", ") }

func (a ReleaseLeases) String() string { return "release the lease of " + strings.Join(a.Nodes, ", ") }

// held are the leases that name this run, also those that have expired: they are its own until somebody takes them.
func (p *planner) held() []lease.Lease {
	var out []lease.Lease
	for _, l := range p.Leases {
		if l.Holder == HolderOf(p.Run) {
			out = append(out, l)
		}
	}
	lease.Sort(out)
	return out
}

func (p *planner) leaseOf(node string) lease.Lease {
	for _, l := range p.Leases {
		if l.Node == node {
			return l
		}
	}
	return lease.Lease{Node: node}
}

// outOfForce says why blocks may no longer run on a lane, or nothing.
func (p *planner) outOfForce(lane design.Lane) string {
	found := p.leaseOf(lane.Node)
	if lane.Token == 0 || found.Holder == HolderOf(p.Run) && found.Token == lane.Token {
		return ""
	}
	text := fmt.Sprintf("the lease of node %s with token %d is lost", lane.Node, lane.Token)
	if found.Held() && found.Holder != HolderOf(p.Run) {
		text += fmt.Sprintf(": %s holds the node since %s", found.Holder.Run(), stamp(found.Acquired))
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// wake asks for another look at a time.
func (p *planner) wake(at time.Time) {
	if p.wakeAt.IsZero() || at.Before(p.wakeAt) {
		p.wakeAt = at
	}
}

// keepLeases renews what the run holds when nothing else is to be done, and looks again in time for the next renewal.
func (p *planner) keepLeases(decision Decision) Decision {
	if _, releasing := decision.Action.(ReleaseLeases); releasing {
		return decision
	}
	var due []string
	overdue := false
	for _, held := range p.held() {
		if p.now.Before(held.RenewAt()) {
			p.wake(held.RenewAt())
			continue
		}
		due = append(due, held.Node)
		overdue = overdue || held.Overdue(p.now)
		p.wake(p.now.Add(held.Duration / 3))
	}
	if len(due) > 0 {
		if decision.Action == nil || overdue {
			if decision.Action != nil {
				decision.Ending, decision.Continues = nil, false // An ending waits for its own action.
			}
			decision.Action = RenewLeases{due}
		} else {
			p.wake(p.now)
		}
	}
	if !p.wakeAt.IsZero() {
		left := max(p.wakeAt.Sub(p.now), AtOnce)
		if decision.After == 0 || left < decision.After {
			decision.After = left
		}
	}
	return decision
}

// letGo gives back the leases that the run does not keep, as soon as nothing of it can run there, whatever it waits for.
func (p *planner) letGo(keep []string, meanwhile *Decision) *Decision {
	var nodes []string
	left := false
	for _, held := range p.held() {
		switch {
		case slices.Contains(keep, held.Node):
		case p.mayRunOn(held.Node):
			left = true
		default:
			nodes = append(nodes, held.Node)
		}
	}
	switch {
	case len(nodes) > 0:
		meanwhile.Action, meanwhile.After = ReleaseLeases{Nodes: nodes}, releaseSettles
	case left && (meanwhile.After == 0 || meanwhile.After > lookAtPods):
		meanwhile.After = lookAtPods
	}
	return meanwhile
}

// mayRunOn reports whether a block of the run is on a node, or may still get there.
func (p *planner) mayRunOn(node string) bool {
	return p.working() || p.Pods.Blocks[node] > 0 || p.Pods.Blocks[""] > 0
}

// working reports whether the newest wave's workflow may still start something.
func (p *planner) working() bool { return p.Wave != nil && !p.Wave.Ended && !p.Wave.Deleting }

func nodesOf(lanes []design.Lane) []string {
	var out []string
	for _, lane := range lanes {
		out = append(out, lane.Node)
	}
	return out
}
