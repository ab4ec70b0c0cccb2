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

// Patience bounds how long callers wait for a shared store. It combines a bulkhead and a circuit breaker (M. Nygard, Release It!, 2nd ed.
// 2018, ch. 5): after a timeout further operations of the same namespace fail at once, except for one probe at a time.
type Patience struct {
	// Operation is the timeout of a single operation; each page of a listing is one.
	Operation time.Duration
	// Most is the number of concurrent operations, and Turn the timeout for becoming one of them.
	Most int
	Turn time.Duration
	// Again is the interval between a timeout and the next probe.
	Again time.Duration
	Clock clock.PassiveClock
}

// Guard wraps a store with the bounds of Patience. A timeout in one namespace does not block others, because its users influence how long
// their objects take. Timeouts in two namespaces without a response in between mean that the whole store hangs.
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
	// hung has the namespaces with a timeout and no response since then; the empty name is the whole store.
	hung map[string]*stall
	// last is the namespace of the last timeout; nil after any response.
	last *string
}

// stall is the time of a timeout; asking means that a probe is in progress.
type stall struct {
	since  time.Time
	asking bool
}

// namespaceOf returns the namespace of the objects of an operation; empty if it concerns no namespace.
func namespaceOf(what string) string {
	_, key, _ := strings.Cut(what, " ")
	if parts := strings.SplitN(key, "/", 3); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// within runs an operation, or returns an error if the circuit is open.
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
	case !began: // Waiting for a turn is no evidence about the store.
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

// admit returns an error while the circuit of the store or of the namespace is open, except for one probe at a time.
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

// inTurn waits for a free slot and runs an operation; began is false if no slot was free in time.
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
			fmt.Sprintf("%d operations are in progress and none ended within %s", g.patience.Most, g.patience.Turn), context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(ctx, g.patience.Operation)
	defer cancel()
	return true, operation(ctx)
}

func (g *guarded) Check(ctx context.Context) error {
	return g.within(ctx, "list", g.Store.Check)
}
