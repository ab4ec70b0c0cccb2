package metrics

import (
	"cmp"
	"context"
	"errors"
	"time"

	"assay.dev/assay/operator/internal/store"
)

// Store wraps a store to time and count its operations.
func (m *Metrics) Store(store store.Store) store.Store { return timedStore{store, m} }

type timedStore struct {
	store.Store
	metrics *Metrics
}

func (s timedStore) Get(ctx context.Context, key string) (data []byte, err error) {
	defer s.metrics.operation("get", &err)()
	return s.Store.Get(ctx, key)
}

func (s timedStore) Create(ctx context.Context, key string, data []byte) (err error) {
	defer s.metrics.operation("create", &err)()
	return s.Store.Create(ctx, key, data)
}

func (s timedStore) Replace(ctx context.Context, key string, data []byte) (err error) {
	defer s.metrics.operation("replace", &err)()
	return s.Store.Replace(ctx, key, data)
}

// Update is timed as the replacement at its end.
func (s timedStore) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) (err error) {
	defer s.metrics.operation("replace", &err)()
	return s.Store.Update(ctx, key, change)
}

func (s timedStore) List(ctx context.Context, prefix string) (keys []string, err error) {
	defer s.metrics.operation("list", &err)()
	return s.Store.List(ctx, prefix)
}

func (s timedStore) Page(ctx context.Context, prefix, after string) (keys []string, more bool, err error) {
	defer s.metrics.operation("list", &err)()
	return s.Store.Page(ctx, prefix, after)
}

// operation starts timing, and returns a function that ends it after the error is known.
func (m *Metrics) operation(name string, failure *error) (end func()) {
	began := time.Now()
	return func() {
		m.ledgerSeconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
		switch err := *failure; {
		// Absent, existing and oversized objects are normal results, and a cancelled caller received none.
		case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrTooLarge),
			errors.Is(err, context.Canceled):
		default:
			// Some errors have no known cause, such as an unreadable folder.
			m.ledgerErrors.WithLabelValues(name, cmp.Or(string(store.CauseOf(err)), other)).Inc()
		}
	}
}
