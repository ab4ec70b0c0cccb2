package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/quantity"
)

// Retryability states whether repeating an operation can help after an error.
type Retryability int

// Classes of errors.
const (
	// Final errors are answers of the store. A retry returns the same.
	Final Retryability = iota
	// Transient errors are outages that may end without any change.
	Transient
	// Permanent errors last until credentials or configuration change.
	Permanent
)

// transient lists the causes of transient errors. A full store is one of them because another client may delete objects.
var transient = map[Cause]bool{
	CauseName: true, CauseRefused: true, CauseTimeout: true, CauseFull: true, CauseServer: true, CauseOther: true,
}

// Classify reports whether a store error is worth retrying.
func Classify(err error) Retryability {
	cause := CauseOf(err)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrNotFound), errors.Is(err, ErrExists):
		return Final
	case cause != "" && !transient[cause], errors.Is(err, ErrNoBucket):
		return Permanent
	case cause != "", errors.Is(err, ErrUnreachable):
		return Transient
	default:
		return Final
	}
}

// Retrier repeats operations on a store. It is safe for concurrent use.
type Retrier struct {
	// Pause returns the backoff after a number of failures.
	Pause func(failures int) time.Duration
	// Budget is the retry budget of an operation with transient errors; 0 is unlimited.
	Budget time.Duration
	// Now and Wait are the clock, which tests replace.
	Now  func() time.Time
	Wait func(ctx context.Context, pause time.Duration) error
	// Log receives a line for each retry and for the recovery.
	Log func(text string)

	mutex sync.Mutex
	// refused is the time of the first permanent error in a row; zero without one. It is shared by all operations, so that the budget for
	// permanent errors is spent once and not by each operation.
	refused time.Time
}

// secretPropagation is the retry budget of permanent errors. After a key rotation the store has the new key before the pods do, because a
// kubelet updates a mounted Secret within about 90 seconds.
const secretPropagation = 3 * time.Minute

// backoff doubles the pause after each failure, from 0.5 s to 15 s.
func backoff(failures int) time.Duration {
	return min(500*time.Millisecond<<min(failures-1, 10), 15*time.Second)
}

// wait blocks for a pause or until the context ends.
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

// NewRetrier returns a Retrier on the real clock with a retry budget for transient errors; 0 is unlimited.
func NewRetrier(budget time.Duration, log func(text string)) *Retrier {
	return &Retrier{Pause: backoff, Budget: budget, Now: time.Now, Wait: wait, Log: log}
}

// Do runs an operation until it succeeds, returns a final error or exhausts its retry budget.
func (a *Retrier) Do(ctx context.Context, what string, operation func() error) error {
	began := a.Now()
	for failures := 1; ; failures++ {
		err := operation()
		left := a.left(began, Classify(err))
		if Classify(err) == Final {
			if failures > 1 {
				a.Log("the object store recovered: " + what)
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
		a.Log(fmt.Sprintf("%s failed: %v; retry in %s", what, err, pause))
		if waitErr := a.Wait(ctx, pause); waitErr != nil {
			return errors.Join(err, waitErr)
		}
	}
}

// left returns the remaining retry budget of an operation that failed with this class of error.
func (a *Retrier) left(began time.Time, class Retryability) time.Duration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := a.Now()
	if class != Permanent {
		a.refused = time.Time{}
		if a.Budget == 0 {
			return 1<<63 - 1
		}
		return began.Add(a.Budget).Sub(now)
	}
	if a.refused.IsZero() {
		a.refused = now
	}
	return a.refused.Add(secretPropagation).Sub(now)
}
