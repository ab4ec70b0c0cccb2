package quota

import (
	"context"
	"errors"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"assay.dev/assay/operator/internal/store"
)

// counting is a store with objects of ten bytes that counts its listings.
type counting struct {
	store.Store
	objects map[string]int
	asked   int
	fails   bool
}

func (c *counting) Sizes(_ context.Context, prefix string) (store.Sizes, error) {
	c.asked++
	if c.fails {
		return store.Sizes{}, errors.New("away")
	}
	return store.Sizes{Objects: c.objects[prefix], Bytes: int64(10 * c.objects[prefix])}, nil
}

func TestMeter_QueriesUseTheLastMeasurement(t *testing.T) {
	now := testingclock.NewFakeClock(time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC))
	s := &counting{objects: map[string]int{"runs/a/": 5, "argo/a/": 1, "runs/b/": 0}}
	meter := New(s, now)
	refresh := func() time.Duration { return meter.begin(t.Context(), func(sum func()) { sum() }) }
	of := func(when, namespace string, want store.Sizes, known bool, asked int) {
		t.Helper()
		if got, ok := meter.Size(namespace); got != want || ok != known || s.asked != asked {
			t.Errorf("%s: %+v, known %v, after %d listings; want %+v, %v, %d", when, got, ok, s.asked, want, known, asked)
		}
	}
	of("before the first measurement", "a", store.Sizes{}, false, 0)
	refresh()
	of("measured with the artifacts of its other workflows", "a", store.Sizes{Objects: 6, Bytes: 60}, true, 2)
	of("a second namespace", "b", store.Sizes{}, false, 2)
	now.Step(time.Minute)
	if next := refresh(); next != Every-time.Minute {
		t.Errorf("the next one is due in %s", next)
	}
	of("only the new namespace is listed", "b", store.Sizes{}, true, 4)
	s.objects["runs/a/"] = 6
	now.Step(Every)
	s.fails = true
	refresh()
	of("an unreachable store leaves the last measurement", "a", store.Sizes{Objects: 6, Bytes: 60}, true, 6)
	s.fails = false
	refresh()
	of("it is not retried at once", "a", store.Sizes{Objects: 6, Bytes: 60}, true, 6)
	now.Step(Every)
	refresh()
	of("it is retried after the interval", "a", store.Sizes{Objects: 7, Bytes: 70}, true, 10)
	if all := meter.All(); len(all) != 2 || all["a"].Bytes != 70 {
		t.Errorf("All returns %v", all)
	}
}

// Runs wait for the first measurement, so a store that is unreachable at that moment must not delay them for long.
func TestMeter_FailedFirstMeasurementIsRepeatedSoon(t *testing.T) {
	now := testingclock.NewFakeClock(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
	s := &counting{fails: true}
	m := New(s, now)
	refresh := func() time.Duration { return m.begin(t.Context(), func(sum func()) { sum() }) }
	if _, known := m.Size("lab"); known {
		t.Fatal("a size is known before the first measurement")
	}
	refresh()
	if len(m.asked) != 1 {
		t.Error("nothing wakes the meter after the first attempt failed")
	}
	if next := refresh(); next != firstRetry {
		t.Errorf("the next attempt is in %s, want %s", next, firstRetry)
	}
	now.Step(firstRetry)
	s.fails = false
	refresh()
	if _, known := m.Size("lab"); !known {
		t.Error("the second attempt is not made")
	}
	if next := refresh(); next != Every {
		t.Errorf("after a measurement the next one is in %s, want %s", next, Every)
	}
}

// endless is a store in which the listing of one namespace does not end.
type endless struct {
	store.Store
	begun chan string
}

func (e endless) Sizes(ctx context.Context, prefix string) (store.Sizes, error) {
	e.begun <- prefix
	if prefix == "runs/crowd/" {
		<-ctx.Done()
		return store.Sizes{}, ctx.Err()
	}
	return store.Sizes{Objects: 1}, nil
}

// Anyone with the key of a namespace may write any number of objects there. This must not delay the runs of other namespaces.
func TestMeter_SlowNamespaceDelaysNoOther(t *testing.T) {
	now := testingclock.NewFakeClock(time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC))
	store := endless{begun: make(chan string, 99)}
	meter := New(store, now)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- meter.Start(ctx) }()
	meter.Size("crowd")
	if begun := <-store.begun; begun != "runs/crowd/" {
		t.Fatalf("%s is listed first", begun)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, known := meter.Size("lab"); known {
			break
		}
		if time.Now().After(end) {
			t.Fatal("another namespace is not measured")
		}
	}
	// Both are due again, and one measurement is still in progress. The other namespace has two listings each time.
	for listed := 0; listed < 12; {
		select {
		case prefix := <-store.begun:
			if listed++; prefix == "runs/crowd/" {
				t.Error("a measurement in progress is started again")
			}
		case <-time.After(time.Millisecond):
			now.Step(Every)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestFolder_ReportsSizes(t *testing.T) {
	s, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"runs/a/x/1", "runs/a/y/2", "runs/ab/x/1", "argo/a/x"} {
		if err := s.Create(t.Context(), key, []byte("12345")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Sum(t.Context(), s, "runs/a/", "argo/a/"); err != nil || got != (store.Sizes{Objects: 3, Bytes: 15}) {
		t.Errorf("%+v, %v", got, err)
	}
}
