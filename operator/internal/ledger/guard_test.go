package ledger

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// hangingStore answers nothing until it is let go, or the caller gives up.
type hangingStore struct {
	Store
	begun chan struct{}
	gate  chan struct{}
}

func (s *hangingStore) Get(ctx context.Context, _ string) ([]byte, error) {
	s.begun <- struct{}{}
	select {
	case <-s.gate:
		return nil, ErrNotFound
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestAStoreThatHangsHoldsFewCallersAndNotForLong(t *testing.T) {
	hanging := &hangingStore{begun: make(chan struct{}, 100), gate: make(chan struct{})}
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC))
	patience := Patience{Operation: time.Hour, Most: 3, Turn: time.Millisecond, Again: 10 * time.Second, Clock: clock}
	store := Guard(hanging, patience)
	begun := func() int { return len(hanging.begun) }
	ctx, giveUp := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { _, _ = store.Get(ctx, "a") })
		<-hanging.begun
	}
	if _, err := store.Get(t.Context(), "a"); CauseOf(err) != CauseTimeout || !errors.Is(err, ErrUnreachable) || begun() != 0 {
		t.Errorf("a fourth caller gets %v, and %d more operations began; want a timeout at once", err, begun())
	}
	giveUp()
	group.Wait()

	// An operation that is overdue keeps others from beginning, but for one at a time after a while.
	patience.Operation = time.Millisecond
	store = Guard(hanging, patience)
	if _, err := store.Get(t.Context(), "a"); !errors.Is(err, context.DeadlineExceeded) || begun() != 1 {
		t.Fatalf("the first caller gets %v, %d operations began", err, begun())
	}
	<-hanging.begun
	for range 100 {
		if _, err := store.Get(t.Context(), "a"); CauseOf(err) != CauseTimeout || begun() != 0 {
			t.Fatalf("while the store hangs a caller gets %v, and %d operations began", err, begun())
		}
	}
	clock.SetTime(clock.Now().Add(10 * time.Second))
	close(hanging.gate)
	for range 2 {
		if _, err := store.Get(t.Context(), "a"); !errors.Is(err, ErrNotFound) || begun() != 1 {
			t.Errorf("after ten seconds a caller gets %v, and %d operations began; want the store's answer", err, begun())
		}
		<-hanging.begun
	}
}

// A server that takes connections and never answers is found out within the time of one operation, also by a listing.
func TestAServerThatNeverAnswersIsGivenUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	opened, err := Open(t.Context(), "s3://"+fakeBucket+"?endpoint=http://"+listener.Addr().String(),
		Options{AccessKey: fakeAccess, SecretKey: fakeSecret})
	if err != nil {
		t.Fatal(err)
	}
	store := Guard(opened, Patience{Operation: 50 * time.Millisecond, Most: 3, Turn: time.Second, Again: time.Hour,
		Clock: testingclock.NewFakePassiveClock(time.Now())})
	for range 20 {
		if _, err := store.List(t.Context(), AttemptsPrefix); CauseOf(err) != CauseTimeout || !errors.Is(err, ErrUnreachable) {
			t.Fatalf("the store's fault is %v, want a timeout", err)
		}
	}
}

// What a caller gives up by itself says nothing about the store.
func TestACallerThatGoesIsNoFaultOfTheStore(t *testing.T) {
	hanging := &hangingStore{begun: make(chan struct{}, 100), gate: make(chan struct{})}
	store := Guard(hanging, Patience{Operation: time.Hour, Most: 3, Turn: time.Second, Again: time.Hour,
		Clock: testingclock.NewFakePassiveClock(time.Now())})
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := store.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that the caller went", err)
	}
	close(hanging.gate)
	if _, err := store.Get(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error is %v, want the store's answer", err)
	}
}
