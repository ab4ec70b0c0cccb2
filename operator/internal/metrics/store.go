package metrics

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/store"
)

// operations are the labels of the operations of a store, by their verb. An update is timed as the replacement at its end.
var operations = map[string]string{"read": "get", "create": "create", "replace": "replace", "update": "replace", "list": "list"}

// Store wraps a store to time and count its operations.
func (m *Metrics) Store(s store.Store) store.Store {
	return store.Around(s, func(ctx context.Context, what string, operation func(context.Context) error) error {
		verb, _, _ := strings.Cut(what, " ")
		name, began := operations[verb], time.Now()
		err := operation(ctx)
		m.ledgerSeconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
		switch {
		// Absent, existing and oversized objects are normal results, and a cancelled caller received none.
		case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrTooLarge),
			errors.Is(err, context.Canceled):
		default:
			// Some errors have no known cause, such as an unreadable folder.
			m.ledgerErrors.WithLabelValues(name, cmp.Or(string(store.CauseOf(err)), other)).Inc()
		}
		return err
	})
}
