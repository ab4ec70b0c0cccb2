package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"assay.dev/assay/operator/test/storetest"
)

// ownTime replaces the clock of a Retrier by a simulated one that each wait advances.
func ownTime(again *Retrier) *Retrier {
	var mutex sync.Mutex
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	again.Now = func() time.Time {
		mutex.Lock()
		defer mutex.Unlock()
		return now
	}
	again.Wait = func(ctx context.Context, pause time.Duration) error {
		mutex.Lock()
		defer mutex.Unlock()
		now = now.Add(pause)
		return ctx.Err()
	}
	if again.Pause == nil {
		again.Pause = backoff
	}
	again.Log = func(string) {}
	return again
}

func TestClassify_ErrorsByCause(t *testing.T) {
	cases := map[string]struct {
		err  error
		want Retryability
	}{
		"no error":                                   {nil, Final},
		"a missing object":                           {fmt.Errorf("read x: %w", ErrNotFound), Final},
		"an existing object":                         {ErrExists, Final},
		"an oversized object":                        {tooLarge("x", 2, 1), Final},
		"a read-only archive":                        {archive{}.readOnly("x"), Final},
		"a file without read permission":             {fs.ErrPermission, Final},
		"a canceled caller":                          {diagnose("read", context.Canceled, false), Final},
		"a missing bucket":                           {ErrNoBucket, Permanent},
		"an unreachable store without a known cause": {ErrUnreachable, Transient},
	}
	for _, cause := range []Cause{CauseName, CauseRefused, CauseTimeout, CauseFull, CauseServer, CauseOther} {
		cases[string(cause)] = struct {
			err  error
			want Retryability
		}{fmt.Errorf("wrapped: %w", &Fault{Cause: cause}), Transient}
	}
	for cause := range remedies {
		if _, there := cases[string(cause)]; !there {
			cases[string(cause)] = struct {
				err  error
				want Retryability
			}{fmt.Errorf("wrapped: %w", &Fault{Cause: cause}), Permanent}
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Classify(tc.err); got != tc.want {
				t.Errorf("%v is %d, want %d", tc.err, got, tc.want)
			}
		})
	}
}

func TestRetrier_BudgetDependsOnTheError(t *testing.T) {
	away, wrong := &Fault{Cause: CauseServer}, &Fault{Cause: CauseSecretKey}
	cases := map[string]struct {
		// errs are the results of the successive tries; the last one repeats.
		errs []error
		away time.Duration
		ends error
		// least and most bound the simulated time of the operation.
		least, most time.Duration
	}{
		"the first try succeeds":                            {[]error{nil}, 0, nil, 0, 0},
		"a final error is not retried":                      {[]error{ErrNotFound}, 0, ErrNotFound, 0, 0},
		"the third try succeeds":                            {[]error{away, away, nil}, 0, nil, time.Second, 2 * time.Second},
		"a transient error exhausts the budget":             {[]error{away}, 10 * time.Minute, away, 9 * time.Minute, 10 * time.Minute},
		"a permanent error exhausts the budget for Secrets": {[]error{wrong}, 0, wrong, 2 * time.Minute, 3 * time.Minute},
		"the smaller budget ends a permanent error":         {[]error{wrong}, 10 * time.Minute, wrong, 2 * time.Minute, 3 * time.Minute},
		"a permanent error that is repaired in time":        {[]error{wrong, wrong, away, nil}, 0, nil, time.Second, 5 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			again := ownTime(&Retrier{Budget: tc.away})
			began, tries := again.Now(), 0
			err := again.Do(t.Context(), "write x", func() error {
				tries++
				return tc.errs[min(tries, len(tc.errs))-1]
			})
			if took := again.Now().Sub(began); !errors.Is(err, tc.ends) || took < tc.least || took > tc.most {
				t.Errorf("%v after %s and %d tries, want %v after %s to %s", err, took, tries, tc.ends, tc.least, tc.most)
			}
		})
	}
}

// Concurrent readers share the budget for permanent errors, so that wrong credentials fail all of them at the same time.
func TestRetrier_PermanentErrorsShareOneBudget(t *testing.T) {
	again := ownTime(&Retrier{})
	refuse := func() error { return &Fault{Cause: CauseDenied} }
	_ = again.Do(t.Context(), "write x", refuse)
	began := again.Now()
	if err := again.Do(t.Context(), "write y", refuse); CauseOf(err) != CauseDenied || again.Now().Sub(began) > backoff(100) {
		t.Errorf("%v after %s", err, again.Now().Sub(began))
	}
	if err := again.Do(t.Context(), "write y", func() error { return nil }); err != nil {
		t.Error(err)
	}
	began = again.Now()
	if _ = again.Do(t.Context(), "write z", refuse); again.Now().Sub(began) < time.Minute {
		t.Error("a success in between does not start a new budget")
	}
}

func TestBackoff_PausesGrow(t *testing.T) {
	if first, last := backoff(1), backoff(1000); first != 500*time.Millisecond || last != 15*time.Second {
		t.Errorf("pauses from %s to %s", first, last)
	}
}

func TestRetrier_CanceledContextEndsTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	again := NewRetrier(0, nil)
	again.Log = func(string) { cancel() }
	if err := again.Do(ctx, "write x", func() error { return ErrUnreachable }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A store with repeated outages of minutes delays readers and writers, and causes no error.
func TestPatient_OutagesDelayReadsAndWrites(t *testing.T) {
	t.Parallel() // It waits for timeouts.
	fake, endpoint := storetest.StartS3(t)
	store, err := Open(t.Context(), storetest.URL(endpoint, storetest.Bucket, "runs/x"), fakeOptions)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i := range 20 {
		key := fmt.Sprintf("attempts/%02d.json", i)
		want[key] = strings.Repeat("x", i)
		if err := store.Create(t.Context(), key, []byte(want[key])); err != nil {
			t.Fatal(err)
		}
	}
	// Each pause advances the clock.
	again := ownTime(&Retrier{Budget: 24 * time.Hour, Pause: func(int) time.Duration { return 3 * time.Minute }})
	requests, until := 0, again.Now()
	fake.Mutex.Lock()
	fake.Refuse = func(*http.Request) (int, string) {
		if again.Now().Before(until) {
			return http.StatusServiceUnavailable, "ServiceUnavailable"
		}
		if requests++; requests%12 == 1 {
			until = again.Now().Add(4 * time.Minute)
		}
		return 0, ""
	}
	fake.Mutex.Unlock()

	patient := Patient(store, again)
	got := map[string]string{}
	keys, err := patient.List(t.Context(), "attempts/")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		data, err := patient.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got[key] = string(data)
	}
	if !maps.Equal(want, got) {
		t.Error("the read objects differ")
	}
	data := []byte("judged")
	if err := patient.Replace(t.Context(), "analysis/000/analysis.json", data); err != nil {
		t.Fatal(err)
	}
	if err := patient.Update(t.Context(), "analysis/001/analysis.json", func([]byte) ([]byte, error) { return data, nil }); err != nil {
		t.Fatal(err)
	}
	if err := patient.Create(t.Context(), "started/x", data); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"analysis/000/analysis.json", "analysis/001/analysis.json", "started/x"} {
		if got, err := patient.Get(t.Context(), key); err != nil || string(got) != string(data) {
			t.Errorf("%s holds %q, %v", key, got, err)
		}
	}
}

// If the store stays unreachable, the error states the number of tries and their duration.
func TestPatient_ExhaustedBudgetIsAnError(t *testing.T) {
	t.Parallel() // It waits for timeouts.
	fake, endpoint := storetest.StartS3(t)
	fake.Refuse = func(*http.Request) (int, string) { return http.StatusServiceUnavailable, "ServiceUnavailable" }
	store, err := Open(t.Context(), storetest.URL(endpoint, storetest.Bucket, "runs/x"), fakeOptions)
	if err != nil {
		t.Fatal(err)
	}
	again := ownTime(&Retrier{Budget: 10 * time.Minute, Pause: func(int) time.Duration { return 4 * time.Minute }})
	_, err = Patient(store, again).List(t.Context(), "attempts/")
	if CauseOf(err) != CauseServer || !strings.Contains(err.Error(), "tried 3 times in 8m0s") {
		t.Errorf("got %v", err)
	}
}

// losesAnswers writes the object and returns an error once, as after a lost response.
type losesAnswers struct {
	Store
	lost bool
}

func (l *losesAnswers) Create(ctx context.Context, key string, data []byte) error {
	err := l.Store.Create(ctx, key, data)
	if !l.lost {
		l.lost = true
		return ErrUnreachable
	}
	return err
}

func TestPatient_CreateWithLostResponseSucceeds(t *testing.T) {
	folder, err := OpenFolder(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	patient := Patient(&losesAnswers{Store: folder}, ownTime(&Retrier{Budget: time.Minute}))
	if err := patient.Create(t.Context(), "x", []byte("one")); err != nil {
		t.Errorf("retrying its own write fails: %v", err)
	}
	if err := patient.Create(t.Context(), "x", []byte("one")); !errors.Is(err, ErrExists) {
		t.Errorf("creating an existing object succeeds: %v", err)
	}
}
