package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Patience is how long callers wait for a store that they share, so that one that hangs does not hold all of them. It is the circuit
// breaker and the bulkhead of M. Nygard, Release It! (2nd ed. 2018, ch. 5): after an operation was overdue, others fail at once, and
// one at a time asks again.
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

// Guard is a store whose callers never wait longer than that.
func Guard(store Store, patience Patience) Store {
	out := &guarded{patience: patience, turns: make(chan struct{}, patience.Most)}
	out.around = around{store, out.within}
	return out
}

type guarded struct {
	around
	patience Patience
	turns    chan struct{}

	mutex sync.Mutex
	// overdue is when an operation was given up, and zero once one was answered; asking means that one looks whether the store is back.
	overdue time.Time
	asking  bool
}

// within runs an operation, or says why it does not begin.
func (g *guarded) within(ctx context.Context, what string, operation func(context.Context) error) error {
	probes, err := g.admit(what)
	if err != nil {
		return err
	}
	err = g.inTurn(ctx, what, operation)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if probes {
		g.asking = false
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) || CauseOf(err) == CauseTimeout:
		g.overdue = g.patience.Clock.Now()
	case ctx.Err() == nil:
		g.overdue = time.Time{}
	}
	return err
}

// admit refuses at once while the store is known to hang, but for one at a time that asks again.
func (g *guarded) admit(what string) (probes bool, err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.overdue.IsZero() {
		return false, nil
	}
	again := g.overdue.Add(g.patience.Again)
	if g.asking || g.patience.Clock.Now().Before(again) {
		return false, newFault(what, CauseTimeout,
			fmt.Sprintf("the store did not answer an operation within %s; the next try is every %s", g.patience.Operation, g.patience.Again),
			context.DeadlineExceeded)
	}
	g.asking = true
	return true, nil
}

func (g *guarded) inTurn(ctx context.Context, what string, operation func(context.Context) error) error {
	waiting, stop := context.WithTimeout(ctx, g.patience.Turn)
	defer stop()
	select {
	case g.turns <- struct{}{}:
		defer func() { <-g.turns }()
	case <-waiting.Done():
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return newFault(what, CauseTimeout, fmt.Sprintf("%d operations are under way and none ended within %s", g.patience.Most, g.patience.Turn),
			context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(ctx, g.patience.Operation)
	defer cancel()
	return operation(ctx)
}

func (g *guarded) Check(ctx context.Context) error {
	return g.within(ctx, "list", g.Store.Check)
}
