package lease

import (
	"cmp"
	"slices"
	"time"
)

// Waiter is a run that waits for a node and could start at once on any of some.
type Waiter struct {
	Run     Holder
	Created time.Time
	// Nodes that it could use, and how many of them at most.
	Nodes []string
	Wants int
}

// before is the queue's order: who came first is served first; of two in the same second, the smaller uid.
func (w Waiter) before(other Waiter) int {
	return cmp.Or(w.Created.Compare(other.Created), cmp.Compare(w.Run.UID, other.Run.UID))
}

// Grant hands out the nodes that can be taken in the order of the queue, and returns those that fall to one of the waiters.
// A run that waits for other nodes takes none of these, so it holds up nobody.
func Grant(takeable []string, queue []Waiter, me Waiter) []string {
	queue = append(slices.Clone(queue), me)
	slices.SortStableFunc(queue, Waiter.before)
	left := slices.Sorted(slices.Values(takeable))
	for _, waiter := range queue {
		var granted []string
		left = slices.DeleteFunc(left, func(node string) bool {
			if len(granted) >= waiter.Wants || !slices.Contains(waiter.Nodes, node) {
				return false
			}
			granted = append(granted, node)
			return true
		})
		if waiter.Run == me.Run {
			return granted
		}
	}
	return nil
}

// Ahead counts the runs that come before one of the waiters and could use one of its nodes.
func Ahead(queue []Waiter, me Waiter) int {
	count := 0
	for _, waiter := range queue {
		shares := slices.ContainsFunc(waiter.Nodes, func(node string) bool { return slices.Contains(me.Nodes, node) })
		if waiter.Run != me.Run && shares && waiter.before(me) < 0 {
			count++
		}
	}
	return count
}
