package ledger

import (
	"context"
	"errors"
	"sync"

	"assay.dev/assay/operator/internal/store"
)

// smallObject is how many bytes of what others may have written are read without a thought of the memory.
const smallObject = 1 << 20

// reading is held while an object is read and used that is larger: several together would take more memory than a process has that many
// namespaces share.
var reading sync.Mutex

// useLarge gives an object of at most so many bytes to whoever uses it, and keeps nothing of it.
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
