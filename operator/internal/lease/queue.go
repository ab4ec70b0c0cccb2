package lease

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Waiter is a run that waits for a lease and could start at once on any of its nodes.
type Waiter struct {
	Run     Holder
	Created time.Time
	// Nodes that it could use, and how many of them at most.
	Nodes []string
	Wants int
}

// before is the order within a namespace: by creation, and in the same second by uid.
func (w Waiter) before(other Waiter) int {
	return cmp.Or(w.Created.Compare(other.Created), cmp.Compare(w.Run.UID, other.Run.UID))
}

// Queue is the order in which runs that wait are served. Namespaces take turns (round robin): the first run of each comes before the second
// of any, and a node that a namespace holds counts as a turn. So no namespace waits until another one's queue is empty. The order does not
// depend on which run asks, and is computed once for all.
type Queue struct {
	waiters []turn
	held    map[string]int
	// classes are the distinct lists of nodes that waiters could use.
	classes [][]string
}

type turn struct {
	Waiter
	number, class int
}

func (t turn) before(other turn) int {
	return cmp.Or(cmp.Compare(t.number, other.number), t.Waiter.before(other.Waiter))
}

// NewQueue orders waiters. Held counts the nodes that each namespace holds.
func NewQueue(waiters []Waiter, held map[string]int) *Queue {
	sorted := slices.SortedFunc(slices.Values(waiters), Waiter.before)
	out := &Queue{waiters: make([]turn, 0, len(sorted)), held: held}
	next, classes := map[string]int{}, map[string]int{}
	maps.Copy(next, held)
	for _, waiter := range sorted {
		key := strings.Join(waiter.Nodes, "/") // No name of a node has one.
		class, ok := classes[key]
		if !ok {
			class = len(out.classes)
			classes[key] = class
			out.classes = append(out.classes, waiter.Nodes)
		}
		out.waiters = append(out.waiters, turn{Waiter: waiter, number: next[waiter.Run.Namespace], class: class})
		next[waiter.Run.Namespace]++
	}
	slices.SortStableFunc(out.waiters, turn.before)
	return out
}

// earlier are the waiters that are served before another one, which need not be in the queue.
func (q *Queue) earlier(me Waiter) []turn {
	mine := turn{Waiter: me, number: q.held[me.Run.Namespace]}
	for i := range q.waiters {
		if other := &q.waiters[i]; other.Run.Namespace == me.Run.Namespace && other.Waiter.before(me) < 0 {
			mine.number++
		}
	}
	count, _ := slices.BinarySearchFunc(q.waiters, mine, turn.before)
	return q.waiters[:count]
}

// Grant assigns the takeable nodes in the order of the queue, and returns those of one waiter. A run that waits for other nodes gets none
// of them, and so delays no other run.
func (q *Queue) Grant(takeable []string, me Waiter) []string {
	left := slices.Sorted(slices.Values(takeable))
	take := func(waiter Waiter) []string {
		var granted []string
		left = slices.DeleteFunc(left, func(node string) bool {
			if len(granted) >= waiter.Wants || !slices.Contains(waiter.Nodes, node) {
				return false
			}
			granted = append(granted, node)
			return true
		})
		return granted
	}
	for _, other := range q.earlier(me) {
		take(other.Waiter)
	}
	return take(me)
}

// Ahead counts the runs that are served before a waiter and could use one of its nodes.
func (q *Queue) Ahead(me Waiter) int {
	shares := make([]bool, len(q.classes))
	mine := map[string]bool{}
	for _, node := range me.Nodes {
		mine[node] = true
	}
	for i, nodes := range q.classes {
		shares[i] = slices.ContainsFunc(nodes, func(node string) bool { return mine[node] })
	}
	count := 0
	for _, other := range q.earlier(me) {
		if shares[other.class] {
			count++
		}
	}
	return count
}
