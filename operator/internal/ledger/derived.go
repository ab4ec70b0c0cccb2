package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// ErrOvertaken means that another writer changed a derived object after the ledger was read.
var ErrOvertaken = errors.New("another writer changed it meanwhile")

// Derived writes objects that are generated from a ledger, such as an analysis, with optimistic locking. It reads their sums before the
// ledger is read, and refuses to overwrite a later version, which may be based on a newer reading. So a slow writer never replaces a newer
// result.
type Derived struct {
	store store.Store
	// sums are the sha256 sums of the present objects by key; empty for an object that is too large to compare and may be overwritten.
	sums map[string]string
}

// ReadDerived reads the derived objects below a prefix. Call it before reading the ledger.
func ReadDerived(ctx context.Context, s store.Store, prefix string) (*Derived, error) {
	keys, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out := &Derived{s, map[string]string{}}
	for _, key := range keys {
		// For example the folder markers that some tools leave in a bucket. No analysis writes there, and stores reject such keys.
		if store.CheckKey(key) != nil {
			continue
		}
		raw, err := s.Get(ctx, key)
		switch {
		case errors.Is(err, store.ErrTooLarge):
			out.sums[key] = ""
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			out.sums[key] = record.SHA256(raw)
		}
	}
	return out, nil
}

// Replace writes an object, or returns ErrOvertaken.
func (d *Derived) Replace(ctx context.Context, key string, data []byte) error {
	before, there := d.sums[key]
	if there && before == "" {
		return d.store.Replace(ctx, key, data)
	}
	err := d.store.Update(ctx, key, func(old []byte) ([]byte, error) {
		switch {
		case old != nil && bytes.Equal(old, data):
			return old, nil // Also after the response to this write was lost.
		case old == nil && !there, old != nil && there && record.SHA256(old) == before:
			return data, nil
		default:
			return nil, ErrOvertaken
		}
	})
	if errors.Is(err, store.ErrNoLocks) {
		// Without locks the folder has a single user.
		return d.store.Replace(ctx, key, data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}
