package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// maxLeases is what the list in the status may have.
const maxLeases = 100

// setLeases lists what the run holds, also after it ended: until the list is empty, nobody else has the nodes.
func setLeases(out *assayv1alpha1.BenchmarkRunStatus, world *observe.World) {
	me := plan.HolderOf(world.Run)
	out.Leases = nil
	leases := slices.Clone(world.Leases)
	lease.Sort(leases)
	for _, l := range leases {
		if l.Holder == me && len(out.Leases) < maxLeases {
			out.Leases = append(out.Leases, assayv1alpha1.LeaseStatus{Node: l.Node, Token: l.Token})
		}
	}
}

// LeaseEvents say which nodes a run has got, given back or lost. A run that ended has nothing to lose: by the time it looks,
// others may have had its node.
func LeaseEvents(world *observe.World, after *assayv1alpha1.BenchmarkRunStatus) []Event {
	before, over := &world.Run.Status, plan.Ended(world.Run)
	var out []Event
	for _, l := range after.Leases {
		if !slices.Contains(before.Leases, l) {
			out = append(out, event(corev1.EventTypeNormal, "LeaseAcquired", "acquired the lease of node %s, token %d", l.Node, l.Token))
		}
	}
	for _, l := range before.Leases {
		switch {
		case slices.Contains(after.Leases, l):
		case over, endedWith(world.Leases, l) == lease.Released:
			out = append(out, event(corev1.EventTypeNormal, "LeaseReleased", "released the lease of node %s, token %d", l.Node, l.Token))
		default:
			out = append(out, event(corev1.EventTypeWarning, "LeaseLost", "lost the lease of node %s, token %d: blocks that run there no longer count", l.Node, l.Token))
		}
	}
	return out
}

// endedWith is why the lease ended, if its object still tells.
func endedWith(leases []lease.Lease, gone assayv1alpha1.LeaseStatus) string {
	for _, l := range leases {
		if l.Node == gone.Node && l.Last != nil && l.Last.Token == gone.Token {
			return l.Last.Why
		}
	}
	return ""
}
