package plan

import (
	"fmt"

	"assay.dev/assay/operator/internal/lease"
)

// NewQueue is the queue of the runs that wait, each with the nodes that it could use. It is the same for all of them: with a
// thousand runs it is the dearest part of a decision, and is computed once for many.
func NewQueue(o *Observed, settings Settings) *lease.Queue {
	held := map[string]int{}
	for _, l := range o.Leases {
		if l.Held() {
			held[l.Holder.Namespace]++
		}
	}
	var waiters []lease.Waiter
	// Most of those that wait ask for the same.
	known := map[string][]string{}
	for _, other := range o.Waiting {
		asks := fmt.Sprint(other.Placement.NodeSelector, other.Placement.Tolerations, other.Placement.CPUs, other.Placement.Memory.Value())
		usable, ok := known[asks]
		if !ok {
			usable, _ = usableNodes(other.Placement, settings.Overhead, settings.Policy, o.Nodes)
			known[asks] = usable
		}
		if len(usable) > 0 {
			waiters = append(waiters, lease.Waiter{Run: other.Run, Created: other.Created, Nodes: usable, Wants: max(int(other.Placement.MaxNodes), 1)})
		}
	}
	return lease.NewQueue(waiters, held)
}

// queue is the one that was observed, or else that of what was observed.
func (p *planner) queue() *lease.Queue {
	if p.Queue == nil {
		p.Queue = NewQueue(&p.Observed, p.settings)
	}
	return p.Queue
}
