package ledger

import (
	"context"
	"fmt"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// writtenOnce reads the first version of every object. Not every store can refuse overwrites, so pods that write attempts may be able to
// overwrite them. Where versions are retained, overwrites have no effect and are reported, because pods that measure cannot delete
// versions.
type writtenOnce struct {
	store.Store
	versioned store.Versioned
	firsts    map[string]string
}

// asWritten returns a store that reads the first versions of objects overwritten so far. For objects that are read later, call it again
// after reading.
func asWritten(ctx context.Context, s store.Store) (writtenOnce, error) {
	out := writtenOnce{Store: s}
	var err error
	if versioned, ok := s.(store.Versioned); ok {
		out.versioned = versioned
		out.firsts, err = versioned.Firsts(ctx, AttemptsPrefix)
	}
	return out, err
}

// over reports whether an object was overwritten.
func (w writtenOnce) over(key string) bool {
	_, over := w.firsts[key]
	return over
}

// problem returns the Problem of an overwritten object.
func (w writtenOnce) problem(key string) record.Problem {
	return record.Problem{
		// The key alone stands for the version that counts.
		Source: record.Source{Key: key + " (written over)"},
		Reason: fmt.Sprintf("a client with a key of the store overwrote it: its first version, %s, is used", w.firsts[key]),
	}
}

func (w writtenOnce) Get(ctx context.Context, key string) ([]byte, error) {
	if w.over(key) {
		return w.versioned.GetVersion(ctx, key, w.firsts[key])
	}
	return w.Store.Get(ctx, key)
}
