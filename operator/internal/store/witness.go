package store

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// witness remembers what a request of an operation failed with, because the client tries again until the time is over and
// then says only that. An error that trying again cannot mend ends the operation at once.
type witness struct{ http.RoundTripper }

type operation struct {
	cancel context.CancelFunc
	err    atomic.Pointer[error]
}

type operationKey struct{}

// begin starts one operation on the store.
func begin(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return context.WithValue(ctx, operationKey{}, &operation{cancel: cancel}), cancel
}

// beginListing starts a listing of any number of pages, which is given up when nothing comes for so long: who may write objects chooses how
// many there are. Each that comes is to be told.
func beginListing(ctx context.Context, patience time.Duration) (listing context.Context, came func(), end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() { cancel(context.DeadlineExceeded) })
	ctx = context.WithValue(ctx, operationKey{}, &operation{cancel: func() { cancel(nil) }})
	return ctx, func() { timer.Reset(patience) }, func() {
		timer.Stop()
		cancel(nil)
	}
}

// overdue says of a listing that was given up that it took too long.
func overdue(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// RoundTrip implements http.RoundTripper.
func (w witness) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if current, ok := request.Context().Value(operationKey{}).(*operation); ok && err != nil && request.Context().Err() == nil {
		current.err.Store(&err)
		switch unanswered(err) {
		case CauseExpired, CauseNotYetValid, CauseAuthority, CauseHostname, CauseCertificate, CauseCAFile, CauseNotTLS:
			current.cancel()
		default: // A retry may succeed.
		}
	}
	return response, err
}

// behind is what really happened when the client says that the operation was given up.
func behind(ctx context.Context, err error) error {
	if current, ok := ctx.Value(operationKey{}).(*operation); ok && ctx.Err() != nil {
		if seen := current.err.Load(); seen != nil {
			return *seen
		}
	}
	return err
}
