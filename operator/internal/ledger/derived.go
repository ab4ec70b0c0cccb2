package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// ErrOvertaken means that somebody else wrote a derived object since the ledger was read.
var ErrOvertaken = errors.New("somebody else wrote it meanwhile")

// Derived writes objects that are made of a ledger and may be made again, such as an analysis. It looks at them before the ledger is read,
// and refuses to write over what came later: who wrote that may have read more. So the one that stays is of the newest reading, whoever
// was slow.
type Derived struct {
	store store.Store
	// sums are of what is there, by key; empty for what is too large to be compared, which is written over.
	sums map[string]string
}

// ReadDerived looks at the derived objects below a prefix. The ledger is to be read after it.
func ReadDerived(ctx context.Context, s store.Store, prefix string) (*Derived, error) {
	keys, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out := &Derived{s, map[string]string{}}
	for _, key := range keys {
		// Such as the folder that some tools leave in a bucket. No analysis writes there, and no store would be asked for it.
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
			return old, nil // Also where the answer to this very write was lost.
		case old == nil && !there, old != nil && there && record.SHA256(old) == before:
			return data, nil
		default:
			return nil, ErrOvertaken
		}
	})
	if errors.Is(err, store.ErrNoLocks) {
		// A folder on such a machine is one person's.
		return d.store.Replace(ctx, key, data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}
