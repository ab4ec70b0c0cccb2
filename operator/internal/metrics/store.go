package metrics

import (
	"context"
	"errors"
	"time"

	"assay.dev/assay/operator/internal/ledger"
)

// Store is a store whose operations are timed and counted.
func (m *Metrics) Store(store ledger.Store) ledger.Store { return timedStore{store, m} }

type timedStore struct {
	ledger.Store
	metrics *Metrics
}

func (s timedStore) Get(ctx context.Context, key string) ([]byte, error) {
	began := time.Now()
	data, err := s.Store.Get(ctx, key)
	s.metrics.operated("get", began, err)
	return data, err
}

func (s timedStore) Create(ctx context.Context, key string, data []byte) error {
	began := time.Now()
	err := s.Store.Create(ctx, key, data)
	s.metrics.operated("create", began, err)
	return err
}

func (s timedStore) Replace(ctx context.Context, key string, data []byte) error {
	began := time.Now()
	err := s.Store.Replace(ctx, key, data)
	s.metrics.operated("replace", began, err)
	return err
}

// Update is timed as the replacement that it ends in.
func (s timedStore) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	began := time.Now()
	err := s.Store.Update(ctx, key, change)
	s.metrics.operated("replace", began, err)
	return err
}

func (s timedStore) List(ctx context.Context, prefix string) ([]string, error) {
	began := time.Now()
	keys, err := s.Store.List(ctx, prefix)
	s.metrics.operated("list", began, err)
	return keys, err
}

func (s timedStore) Page(ctx context.Context, prefix, after string) ([]string, bool, error) {
	began := time.Now()
	keys, more, err := s.Store.Page(ctx, prefix, after)
	s.metrics.operated("list", began, err)
	return keys, more, err
}

// otherCause is that of an error which names none, such as a folder that cannot be read.
const otherCause = "Other"

func (m *Metrics) operated(operation string, began time.Time, err error) {
	m.ledgerSeconds.WithLabelValues(operation).Observe(time.Since(began).Seconds())
	switch {
	// That an object is absent, there already or larger than what is read is an answer, and who gave up waiting got no answer.
	case err == nil, errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrExists), errors.Is(err, ledger.ErrTooLarge),
		errors.Is(err, context.Canceled):
		return
	}
	cause := string(ledger.CauseOf(err))
	if cause == "" {
		cause = otherCause
	}
	m.ledgerErrors.WithLabelValues(operation, cause).Inc()
}
