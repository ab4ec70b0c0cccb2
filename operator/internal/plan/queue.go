package plan

import (
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/lease"
)

// NewQueue is the queue of the runs that wait, each with the nodes that it could use. It is the same for all of them: with a
// thousand runs it is the dearest part of a decision, and is computed once for many.
func NewQueue(o *Observed, overhead corev1.ResourceList) *lease.Queue {
	held := map[string]int{}
	for _, l := range o.Leases {
		if l.Held() {
			held[l.Holder.Namespace]++
		}
	}
	var waiters []lease.Waiter
	for _, other := range o.Waiting {
		if usable, _ := usableNodes(other.Placement, overhead, o.Nodes); len(usable) > 0 {
			waiters = append(waiters, lease.Waiter{Run: other.Run, Created: other.Created, Nodes: usable, Wants: max(int(other.Placement.MaxNodes), 1)})
		}
	}
	return lease.NewQueue(waiters, held)
}

// queue is the one that was observed, or else that of what was observed.
func (p *planner) queue() *lease.Queue {
	if p.Queue == nil {
		p.Queue = NewQueue(&p.Observed, p.settings.Overhead)
	}
	return p.Queue
}
