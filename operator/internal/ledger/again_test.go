package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"
)

// ownTime is a clock that waiting sets forward.
func ownTime(again *Again) *Again {
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	again.Now = func() time.Time { return now }
	again.Wait = func(ctx context.Context, pause time.Duration) error { now = now.Add(pause); return ctx.Err() }
	if again.Pause == nil {
		again.Pause = patiently
	}
	return again
}

func TestAnErrorOfTheStoreEitherPassesOrSomebodyHasToMendIt(t *testing.T) {
	cases := map[string]struct {
		err  error
		want Outlook
	}{
		"nothing is wrong":                        {nil, Final},
		"there is no such object":                 {fmt.Errorf("read x: %w", ErrNotFound), Final},
		"there is an object":                      {ErrExists, Final},
		"an object is too large":                  {tooLarge("x", 2, 1), Final},
		"an archive is read only":                 {ErrReadOnly, Final},
		"a file may not be read":                  {fs.ErrPermission, Final},
		"whoever asked has left":                  {diagnose("read", context.Canceled, false), Final},
		"the bucket is gone":                      {ErrNoBucket, Lasting},
		"the store is away, and nobody knows why": {ErrUnreachable, Passing},
	}
	for _, cause := range []Cause{CauseName, CauseRefused, CauseTimeout, CauseFull, CauseServer, CauseOther} {
		cases[string(cause)] = struct {
			err  error
			want Outlook
		}{fmt.Errorf("wrapped: %w", &Fault{Cause: cause}), Passing}
	}
	for cause := range remedies {
		if _, there := cases[string(cause)]; !there {
			cases[string(cause)] = struct {
				err  error
				want Outlook
			}{fmt.Errorf("wrapped: %w", &Fault{Cause: cause}), Lasting}
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := OutlookOf(tc.err); got != tc.want {
				t.Errorf("%v is %d, want %d", tc.err, got, tc.want)
			}
		})
	}
}

func TestAnOperationIsTriedForAsLongAsThereIsHope(t *testing.T) {
	away, wrong := &Fault{Cause: CauseServer}, &Fault{Cause: CauseSecretKey}
	cases := map[string]struct {
		// errs are what the operation fails with, one after the other; the last one stays.
		errs []error
		away time.Duration
		ends error
		// least and most are the time that it takes.
		least, most time.Duration
	}{
		"it works at once":                              {[]error{nil}, 0, nil, 0, 0},
		"an answer is not asked for again":              {[]error{ErrNotFound}, 0, ErrNotFound, 0, 0},
		"it works at the third try":                     {[]error{away, away, nil}, 0, nil, time.Second, 2 * time.Second},
		"a store that stays away is given up":           {[]error{away}, 10 * time.Minute, away, 9 * time.Minute, 10 * time.Minute},
		"a wrong key is given up":                       {[]error{wrong}, 0, wrong, 2 * time.Minute, 3 * time.Minute},
		"a wrong key is given up sooner than the store": {[]error{wrong}, 10 * time.Minute, wrong, 2 * time.Minute, 3 * time.Minute},
		"a key that comes right":                        {[]error{wrong, wrong, away, nil}, 0, nil, time.Second, 5 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			again := ownTime(&Again{Away: tc.away, Refused: SecretArrives})
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

// Readers are many at once: a key that is wrong for all of them is not waited for by one after the other.
func TestAStoreThatRefusesIsGivenUpOnce(t *testing.T) {
	again := ownTime(&Again{Refused: SecretArrives})
	refuse := func() error { return &Fault{Cause: CauseDenied} }
	_ = again.Do(t.Context(), "write x", refuse)
	began := again.Now()
	if err := again.Do(t.Context(), "write y", refuse); CauseOf(err) != CauseDenied || again.Now().Sub(began) > patiently(100) {
		t.Errorf("%v after %s", err, again.Now().Sub(began))
	}
	if err := again.Do(t.Context(), "write y", func() error { return nil }); err != nil {
		t.Error(err)
	}
	began = again.Now()
	if _ = again.Do(t.Context(), "write z", refuse); again.Now().Sub(began) < time.Minute {
		t.Error("a store that served meanwhile gets no new time")
	}
}

func TestPausesGrow(t *testing.T) {
	if first, last := patiently(1), patiently(1000); first != 500*time.Millisecond || last != 15*time.Second {
		t.Errorf("pauses from %s to %s", first, last)
	}
}

func TestWhoLeavesDoesNotWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	again := NewAgain(0, nil)
	again.Log = func(string) { cancel() }
	if err := again.Do(ctx, "write x", func() error { return ErrUnreachable }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
