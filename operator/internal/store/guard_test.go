package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"assay.dev/assay/operator/test/storetest"
)

// hangingStore does not respond until the test releases it or the caller's context ends.
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

func TestGuard_HangingStoreFailsFast(t *testing.T) {
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

	// After a timeout other operations fail at once, except for one probe at a time after an interval.
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

// A server that accepts connections and never responds is a timeout after the time of one operation, also in a listing.
func TestGuard_SilentServerIsATimeout(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	opened, err := Open(t.Context(), "s3://"+storetest.Bucket+"?endpoint=http://"+listener.Addr().String(),
		Options{AccessKey: storetest.AccessKey, SecretKey: storetest.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	store := Guard(opened, Patience{Operation: 50 * time.Millisecond, Most: 3, Turn: time.Second, Again: time.Hour,
		Clock: testingclock.NewFakePassiveClock(time.Now())})
	for range 20 {
		if _, err := store.List(t.Context(), "attempts/"); CauseOf(err) != CauseTimeout || !errors.Is(err, ErrUnreachable) {
			t.Fatalf("the store's fault is %v, want a timeout", err)
		}
	}
}

// An operation canceled by its caller does not open the circuit.
func TestGuard_CanceledCallerDoesNotOpenTheCircuit(t *testing.T) {
	hanging := &hangingStore{begun: make(chan struct{}, 100), gate: make(chan struct{})}
	store := Guard(hanging, Patience{Operation: time.Hour, Most: 3, Turn: time.Second, Again: time.Hour,
		Clock: testingclock.NewFakePassiveClock(time.Now())})
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := store.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	close(hanging.gate)
	if _, err := store.Get(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error is %v, want the store's answer", err)
	}
}

// slowStore responds in time, except for the objects of some namespaces, or never.
type slowStore struct {
	Store
	slow []string
}

func (s *slowStore) Get(ctx context.Context, key string) ([]byte, error) {
	if slices.ContainsFunc(s.slow, func(of string) bool { return strings.HasPrefix(key, "runs/"+of) }) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, ErrNotFound
}

// Users of a namespace influence how long the store takes for it, and must not block others. A store that answers no namespace fails for
// all of them, and recovers for all with the first response.
func TestGuard_SlowNamespaceBlocksNoOther(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC))
	slow := &slowStore{slow: []string{"slow"}}
	store := Guard(slow, Patience{Operation: time.Millisecond, Most: 3, Turn: time.Second, Again: 10 * time.Second, Clock: clock})
	get := func(namespace string) error {
		_, err := store.Get(t.Context(), "runs/"+namespace+"/run/uid/experiment.json")
		return err
	}
	refused := func(err error) bool { return strings.Contains(fmt.Sprint(err), "did not answer an operation within") }
	for range 3 {
		for i, namespace := range []string{"slow-1", "other-1", "slow-2", "other-2", "slow-1"} {
			err := get(namespace)
			if slows := strings.HasPrefix(namespace, "slow"); slows != errors.Is(err, context.DeadlineExceeded) || refused(err) != (i == 4) {
				t.Fatalf("number %d, of %s, gets %v", i, namespace, err)
			}
		}
		clock.SetTime(clock.Now().Add(10 * time.Second))
	}
	slow.slow = []string{""}
	for i, namespace := range []string{"one", "two", "three", "four"} {
		if err := get(namespace); !errors.Is(err, context.DeadlineExceeded) || refused(err) != (i > 1) {
			t.Fatalf("of a store that never responds %s gets %v", namespace, err)
		}
	}
	slow.slow = nil
	clock.SetTime(clock.Now().Add(10 * time.Second))
	for _, namespace := range []string{"four", "three", "two", "one"} {
		if err := get(namespace); !errors.Is(err, ErrNotFound) {
			t.Fatalf("of a recovered store %s gets %v", namespace, err)
		}
	}
}

// A caller that gets no turn has sent no request, so its timeout is no evidence about the store.
func TestGuard_TimeoutBeforeATurnDoesNotOpenTheCircuit(t *testing.T) {
	hanging := &hangingStore{begun: make(chan struct{}, 100), gate: make(chan struct{})}
	store := Guard(hanging, Patience{Operation: time.Hour, Most: 1, Turn: time.Millisecond, Again: time.Hour,
		Clock: testingclock.NewFakePassiveClock(time.Now())})
	var group sync.WaitGroup
	group.Go(func() { _, _ = store.Get(t.Context(), "a") })
	<-hanging.begun
	for range 3 {
		if _, err := store.Get(t.Context(), "a"); CauseOf(err) != CauseTimeout || !strings.Contains(err.Error(), "1 operations are in progress") {
			t.Errorf("error is %v, want a timeout for a turn", err)
		}
	}
	close(hanging.gate)
	group.Wait()
	if _, err := store.Get(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error is %v, want the store's answer", err)
	}
}
