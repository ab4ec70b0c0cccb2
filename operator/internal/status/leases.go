package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// maxLeases is the API's limit of the list.
const maxLeases = 100

// setLeases lists the leases that the run holds, also after it ended.
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

// LeaseEvents are the events of the leases that a run acquired, released or lost. After a run has ended none is lost: other runs may
// have acquired its nodes since they were released.
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
			out = append(out, event(corev1.EventTypeWarning, "LeaseLost",
				"lost the lease of node %s, token %d: blocks that run there no longer count", l.Node, l.Token))
		}
	}
	return out
}

// endedWith is why the lease ended, if its object still has that.
func endedWith(leases []lease.Lease, gone assayv1alpha1.LeaseStatus) string {
	for _, l := range leases {
		if l.Node == gone.Node && l.Last != nil && l.Last.Token == gone.Token {
			return l.Last.Why
		}
	}
	return ""
}
