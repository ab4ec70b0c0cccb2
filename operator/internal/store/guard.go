package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Patience is how long callers wait for a store that they share, so that one that hangs does not hold all of them. It is the circuit
// breaker and the bulkhead of M. Nygard, Release It! (2nd ed. 2018, ch. 5): after an operation was overdue, others of its namespace fail at
// once, and one at a time asks again.
type Patience struct {
	// Operation bounds every single operation; a listing is one for each of its pages.
	Operation time.Duration
	// Most operations are under way at once, and another waits at most Turn for one of them to end.
	Most int
	Turn time.Duration
	// Again is how long after an operation was overdue the store is asked again.
	Again time.Duration
	Clock clock.PassiveClock
}

// Guard is a store whose callers never wait longer than that. What is overdue in one namespace keeps no other from the store: who may write
// there chooses how long its objects take. Where it is in two of them, and nothing was answered in between, the store hangs.
func Guard(store Store, patience Patience) Store {
	out := &guarded{patience: patience, turns: make(chan struct{}, patience.Most), hung: map[string]*stall{}}
	out.around = around{store, out.within}
	return out
}

type guarded struct {
	around
	patience Patience
	turns    chan struct{}

	mutex sync.Mutex
	// hung are the namespaces in which an operation was given up and none was answered since; an empty one is the store as a whole.
	hung map[string]*stall
	// last is where the last operation was given up; nil once any was answered.
	last *string
}

// stall is when an operation was given up; asking means that one looks whether the next is answered.
type stall struct {
	since  time.Time
	asking bool
}

// namespaceOf is the namespace of the objects that an operation is on; empty for those of none.
func namespaceOf(what string) string {
	_, key, _ := strings.Cut(what, " ")
	if parts := strings.SplitN(key, "/", 3); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// within runs an operation, or says why it does not begin.
func (g *guarded) within(ctx context.Context, what string, operation func(context.Context) error) error {
	namespace := namespaceOf(what)
	probes, err := g.admit(what, namespace)
	if err != nil {
		return err
	}
	began, err := g.inTurn(ctx, what, operation)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for _, probe := range probes {
		probe.asking = false
	}
	switch {
	case !began: // What others wait for says nothing of the store.
	case errors.Is(err, context.DeadlineExceeded) || CauseOf(err) == CauseTimeout:
		now := g.patience.Clock.Now()
		if g.hung[""] != nil || g.last != nil && *g.last != namespace {
			g.hung[""] = &stall{since: now}
		}
		g.hung[namespace], g.last = &stall{since: now}, &namespace
	case ctx.Err() == nil:
		delete(g.hung, "")
		delete(g.hung, namespace)
		g.last = nil
	}
	return err
}

// admit refuses at once while the store is known to hang, or to hang in a namespace, but for one at a time that asks again.
func (g *guarded) admit(what, namespace string) (probes []*stall, err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for _, of := range []string{"", namespace} {
		hung := g.hung[of]
		if hung == nil || slices.Contains(probes, hung) {
			continue
		}
		if hung.asking || g.patience.Clock.Now().Before(hung.since.Add(g.patience.Again)) {
			return nil, newFault(what, CauseTimeout,
				fmt.Sprintf("the store did not answer an operation within %s; the next try is every %s", g.patience.Operation, g.patience.Again),
				context.DeadlineExceeded)
		}
		probes = append(probes, hung)
	}
	for _, probe := range probes {
		probe.asking = true
	}
	return probes, nil
}

// inTurn runs an operation once it is its turn; began is false where that was not soon enough.
func (g *guarded) inTurn(ctx context.Context, what string, operation func(context.Context) error) (began bool, err error) {
	waiting, stop := context.WithTimeout(ctx, g.patience.Turn)
	defer stop()
	select {
	case g.turns <- struct{}{}:
		defer func() { <-g.turns }()
	case <-waiting.Done():
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, newFault(what, CauseTimeout,
			fmt.Sprintf("%d operations are under way and none ended within %s", g.patience.Most, g.patience.Turn), context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(ctx, g.patience.Operation)
	defer cancel()
	return true, operation(ctx)
}

func (g *guarded) Check(ctx context.Context) error {
	return g.within(ctx, "list", g.Store.Check)
}
