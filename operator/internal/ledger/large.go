package ledger

import (
	"context"
	"errors"
	"sync"

	"assay.dev/assay/operator/internal/store"
)

// smallObject is the size in bytes up to which untrusted objects are read concurrently.
const smallObject = 1 << 20

// reading is held while a larger object is read and used. Several at once would exceed the memory of a process that serves many namespaces.
var reading sync.Mutex

// useLarge reads an object of at most most bytes, passes it to use and retains nothing of it.
func useLarge(ctx context.Context, s store.Store, key string, most int64, use func(raw []byte) error) error {
	raw, err := store.GetAtMost(ctx, s, key, min(most, smallObject))
	if errors.Is(err, store.ErrTooLarge) && most > smallObject {
		reading.Lock()
		defer reading.Unlock()
		raw, err = store.GetAtMost(ctx, s, key, most)
	}
	if err != nil {
		return err
	}
	return use(raw)
}
