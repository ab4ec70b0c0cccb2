package ledger

import (
	"context"
	"fmt"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// writtenOnce reads of every object what was written first. Who writes attempts may be able to write over them, because not every store
// can be asked to refuse that; where versions are kept, and nobody who measures can remove any, that changes nothing and is found out.
type writtenOnce struct {
	store.Store
	versioned store.Versioned
	firsts    map[string]string
}

// asWritten is a store whose attempts are as they were first written. It knows what was written over until now: of what is read later it is
// asked again after that.
func asWritten(ctx context.Context, s store.Store) (writtenOnce, error) {
	out := writtenOnce{Store: s}
	var err error
	if versioned, ok := s.(store.Versioned); ok {
		out.versioned = versioned
		out.firsts, err = versioned.Firsts(ctx, AttemptsPrefix)
	}
	return out, err
}

// over reports whether an object was written over.
func (w writtenOnce) over(key string) bool {
	_, over := w.firsts[key]
	return over
}

// problem is what is to be said of one that was.
func (w writtenOnce) problem(key string) record.Problem {
	return record.Problem{
		// The key alone is of what counts.
		Source: record.Source{Key: key + " (written over)"},
		Reason: fmt.Sprintf("somebody with a key of the store wrote over it: its first version, %s, is used", w.firsts[key]),
	}
}

func (w writtenOnce) Get(ctx context.Context, key string) ([]byte, error) {
	if w.over(key) {
		return w.versioned.GetVersion(ctx, key, w.firsts[key])
	}
	return w.Store.Get(ctx, key)
}
