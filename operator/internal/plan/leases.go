package plan

import (
	"cmp"
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

// AcquireLeases acquires the leases of nodes. Whole makes them exclusive: they are tainted, and nothing else is scheduled there.
type AcquireLeases struct {
	Nodes []string
	Whole bool
	// For is the wave that is to start on them, still without tokens. A wave that cannot be started acquires no node.
	For *StartWave
}

// RetakeLeases gives the leases that the run holds new tokens, in one write each, so that no other run can acquire them in between.
type RetakeLeases struct{ Nodes []string }

// RenewLeases renews leases before they expire.
type RenewLeases struct{ Nodes []string }

// DrainLeases is the first step of releasing leases: no block may start on the nodes any more. Running blocks continue.
type DrainLeases struct{ Nodes []string }

// ReleaseLeases releases leases of drained nodes on which nothing of the run is left.
type ReleaseLeases struct{ Nodes []string }

func (a AcquireLeases) String() string { return "take the lease of " + strings.Join(a.Nodes, ", ") }

func (a RetakeLeases) String() string {
	return "take the lease of " + strings.Join(a.Nodes, ", ") + " anew"
}

func (a RenewLeases) String() string { return "renew the lease of " + strings.Join(a.Nodes, ", ") }

func (a DrainLeases) String() string { return "drain the lease of " + strings.Join(a.Nodes, ", ") }

func (a ReleaseLeases) String() string { return "release the lease of " + strings.Join(a.Nodes, ", ") }

// held are the leases that the run holds. One that has expired is its own until another run acquires it.
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

// outOfForce is why blocks may no longer run on a lane; empty when they may.
func (p *planner) outOfForce(lane design.Lane) string {
	current := p.leaseOf(lane.Node)
	switch mine := current.Holder == HolderOf(p.Run) && current.Token == lane.Token; {
	case lane.Token == 0, mine && !current.Draining:
		return ""
	case mine:
		return fmt.Sprintf("the lease of node %s with token %d is being given back", lane.Node, lane.Token)
	}
	text := fmt.Sprintf("the lease of node %s with token %d is lost", lane.Node, lane.Token)
	if current.Held() && current.Holder != HolderOf(p.Run) {
		text += fmt.Sprintf(": %s holds the node since %s", current.Holder.Run(), stamp(current.Acquired))
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// wake asks for a reconcile after some time; zero is at once.
func (p *planner) wake(after time.Duration) {
	if p.wakes == nil || after < *p.wakes {
		p.wakes = &after
	}
}

// keepLeases renews the run's leases if there is no other action or renewal is overdue, and reconciles in time for the next renewal. A run
// that may start nothing more releases its nodes during any wait, and a run that ends releases them whether or not its end can be written.
func (p *planner) keepLeases(decision Decision) Decision {
	if decision.Action == nil && (decision.Ending != nil || p.noMore()) {
		decision = *p.releaseIdle(nil, &decision)
	}
	switch decision.Action.(type) {
	case DrainLeases, ReleaseLeases:
		return decision
	default:
	}
	var due []string
	overdue := false
	if left, counts := p.budgetLeft(); counts && left > 0 && len(p.held()) > 0 {
		p.wake(left)
	}
	for _, held := range p.held() {
		if left := held.RenewIn(p.now); left > 0 {
			p.wake(left)
			continue
		}
		due = append(due, held.Node)
		overdue = overdue || held.Overdue(p.now)
		p.wake(held.Duration / 3)
	}
	switch {
	case len(due) == 0:
	case decision.Action == nil:
		decision.Action = RenewLeases{due}
	case overdue:
		// The run ends once the action that is postponed is done.
		decision.Action, decision.Ending = RenewLeases{due}, nil
	default:
		p.wake(0)
	}
	if p.wakes != nil && !decision.followedAtOnce() {
		decision.After = soonest(decision.After, *p.wakes)
	}
	return decision
}

// soonest is the earlier of two times to reconcile; the first may be 0, which is never.
func soonest(after, other time.Duration) time.Duration { return min(cmp.Or(after, other), other) }

// releaseIdle adds to a decision to wait the release of the leases that the run does not keep, as soon as nothing of it can run there.
func (p *planner) releaseIdle(keep []string, meanwhile *Decision) *Decision {
	var idle []lease.Lease
	left := false
	for _, held := range p.held() {
		switch {
		case slices.Contains(keep, held.Node):
		case p.mayRunOn(held.Node):
			left = true
		default:
			idle = append(idle, held)
		}
	}
	switch {
	case len(idle) > 0:
		meanwhile.Action, meanwhile.After = releaseStep(idle)
	case left:
		meanwhile.After = soonest(meanwhile.After, podsInterval)
	}
	return meanwhile
}

// releaseStep is the next step of releasing leases, and when to reconcile again. First their nodes are drained. Then the lease of a node is
// released on which, according to the API server, nothing of the run is left.
func releaseStep(leases []lease.Lease) (Action, time.Duration) {
	var open, free []string
	for _, l := range leases {
		switch {
		case !l.Draining:
			open = append(open, l.Node)
		case l.Busy == "":
			free = append(free, l.Node)
		}
	}
	switch {
	case len(open) > 0:
		return DrainLeases{open}, 0
	case len(free) > 0:
		return ReleaseLeases{free}, 0
	default:
		return nil, releaseSettles
	}
}

// mayRunOn reports whether a block of the run runs on a node, or may still start there.
func (p *planner) mayRunOn(node string) bool {
	return p.working() || p.Pods.Blocks[node] > 0 || p.Pods.Blocks[""] > 0
}

// working reports whether the newest wave's execution may still start something.
func (p *planner) working() bool { return p.Wave != nil && !p.Wave.Ended && !p.Wave.Deleting }

func nodesOf(lanes []design.Lane) []string {
	return experiment.NamesOf(lanes, func(lane design.Lane) string { return lane.Node })
}
