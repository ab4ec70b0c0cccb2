package store

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// witness records the error of the last request of an operation, because the client retries until the timeout and then reports only the
// timeout. A permanent error ends the operation at once.
type witness struct{ http.RoundTripper }

type operation struct {
	cancel context.CancelFunc
	err    atomic.Pointer[error]
}

type operationKey struct{}

// begin returns the context of one operation on the store.
func begin(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return context.WithValue(ctx, operationKey{}, &operation{cancel: cancel}), cancel
}

// beginListing returns the context of a listing of any number of pages, with a timeout between two objects. Users choose the number of
// objects, so the whole listing has no timeout. The caller calls came for each object.
func beginListing(ctx context.Context, patience time.Duration) (listing context.Context, came func(), end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() { cancel(context.DeadlineExceeded) })
	ctx = context.WithValue(ctx, operationKey{}, &operation{cancel: func() { cancel(nil) }})
	return ctx, func() { timer.Reset(patience) }, func() {
		timer.Stop()
		cancel(nil)
	}
}

// overdue replaces the error of a listing that was canceled after its timeout.
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

// behind returns the recorded cause of an operation that ended with a timeout.
func behind(ctx context.Context, err error) error {
	if current, ok := ctx.Value(operationKey{}).(*operation); ok && ctx.Err() != nil {
		if seen := current.err.Load(); seen != nil {
			return *seen
		}
	}
	return err
}
