package plan

import (
	"fmt"

	"assay.dev/assay/operator/internal/lease"
)

// NewQueue is the queue of the runs that wait, each with the nodes that it could use. It does not depend on which run asks. With a thousand
// runs it is the most expensive part of a decision, and is computed once for many.
func NewQueue(o *Observed, settings Settings) *lease.Queue {
	held := map[string]int{}
	for _, l := range o.Leases {
		if l.Held() {
			held[l.Holder.Namespace]++
		}
	}
	var waiters []lease.Waiter
	// Most runs that wait ask for the same placement.
	known := map[string][]string{}
	for _, other := range o.Waiting {
		asks := fmt.Sprint(other.Placement.NodeSelector, other.Placement.Tolerations, other.Placement.CPUs, other.Placement.Memory.Value())
		usable, ok := known[asks]
		if !ok {
			usable, _ = usableNodes(other.Placement, settings.Engine.Overhead, settings.Policy, o.Nodes)
			known[asks] = usable
		}
		if len(usable) > 0 {
			waiters = append(waiters, lease.Waiter{Run: other.Run, Created: other.Created, Nodes: usable,
				Wants: max(int(other.Placement.MaxNodes), 1)})
		}
	}
	return lease.NewQueue(waiters, held)
}

// queue is the observed queue, computed if it was not observed.
func (p *planner) queue() *lease.Queue {
	if p.Queue == nil {
		p.Queue = NewQueue(&p.Observed, p.settings)
	}
	return p.Queue
}
