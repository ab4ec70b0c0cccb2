package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/quantity"
)

// Outlook is what trying again makes of an error.
type Outlook int

// Outlooks.
const (
	// Final is an answer: whoever asks again hears the same.
	Final Outlook = iota
	// Passing is of a store that is away: it may come back by itself.
	Passing
	// Lasting is of a store that refuses until somebody changes a key, a right, a name or a certificate.
	Lasting
)

// passing are the causes that may pass without anybody's doing. A full store is among them: others may delete, and what was measured waits.
var passing = map[Cause]bool{
	CauseName: true, CauseRefused: true, CauseTimeout: true, CauseFull: true, CauseServer: true, CauseOther: true,
}

// OutlookOf tells errors of a store apart, for all who try again.
func OutlookOf(err error) Outlook {
	cause := CauseOf(err)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrNotFound), errors.Is(err, ErrExists):
		return Final
	case cause != "" && !passing[cause], errors.Is(err, ErrNoBucket):
		return Lasting
	case cause != "", errors.Is(err, ErrUnreachable):
		return Passing
	default:
		return Final
	}
}

// Again is how operations on a store are tried again. It is safe for concurrent use.
type Again struct {
	// Pause is how long to wait before the next try, by how many failed.
	Pause func(failures int) time.Duration
	// Away bounds for how long an operation is tried while its errors are passing; 0 means without bound.
	Away time.Duration
	// Now and Wait are the clock.
	Now  func() time.Time
	Wait func(ctx context.Context, pause time.Duration) error
	// Log is told what goes on.
	Log func(text string)

	mutex sync.Mutex
	// refused is when the store began to refuse; zero while it does not.
	refused time.Time
}

// secretArrives bounds for how long operations are tried since the store began to refuse them. A key that is being replaced reaches the
// store first and the pods later: kubelets bring a changed Secret there within about a minute and a half.
const secretArrives = 3 * time.Minute

// patiently waits longer after each failure: half a second at first, a quarter of a minute at most.
func patiently(failures int) time.Duration {
	return min(500*time.Millisecond<<min(failures-1, 10), 15*time.Second)
}

// wait waits for some time, or until the context ends.
func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// NewAgain tries again in real time, while a store is away for as long as given; 0 is without bound.
func NewAgain(away time.Duration, log func(text string)) *Again {
	return &Again{Pause: patiently, Away: away, Now: time.Now, Wait: wait, Log: log}
}

// Do does something with a store until it works, cannot ever, or was tried for long enough.
func (a *Again) Do(ctx context.Context, what string, operation func() error) error {
	began := a.Now()
	for failures := 1; ; failures++ {
		err := operation()
		left := a.left(began, OutlookOf(err))
		if OutlookOf(err) == Final {
			if failures > 1 {
				a.Log("the object store answers again: " + what)
			}
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		pause := a.Pause(failures)
		if pause >= left {
			return fmt.Errorf("%w; tried %d times in %s", err, failures, quantity.Seconds(a.Now().Sub(began)))
		}
		a.Log(fmt.Sprintf("%s waits for the object store: %v; trying again in %s", what, err, pause))
		if waitErr := a.Wait(ctx, pause); waitErr != nil {
			return errors.Join(err, waitErr)
		}
	}
}

// left is for how much longer an operation with such an error is tried.
func (a *Again) left(began time.Time, outlook Outlook) time.Duration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := a.Now()
	if outlook != Lasting {
		a.refused = time.Time{}
		if a.Away == 0 {
			return 1<<63 - 1
		}
		return began.Add(a.Away).Sub(now)
	}
	if a.refused.IsZero() {
		a.refused = now
	}
	return a.refused.Add(secretArrives).Sub(now)
}
