// Package store reads and writes objects under keys: in an S3 bucket, in a folder, or read-only in an archive. It has the Store interface,
// its implementations, retries, a circuit breaker and the classification of errors. The meaning of a run's objects is defined in package
// ledger.
package store

import (
	"context"
	"errors"
)

// Errors of a store, for errors.Is.
var (
	// ErrNotFound means that no object has the key.
	ErrNotFound = errors.New("object not found")
	// ErrExists means that a write would have overwritten an immutable object.
	ErrExists = errors.New("object exists already")
	// ErrNoBucket means that the object store responds and has no such bucket.
	ErrNoBucket = errors.New("bucket does not exist")
	// ErrUnreachable means that the object store did not respond, or refused the credentials.
	ErrUnreachable = errors.New("object store unreachable")
)

// Store reads and writes objects under keys relative to one prefix. Implementations are safe for concurrent use.
type Store interface {
	// Get returns the object, or ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
	// Create writes a new object, or returns ErrExists.
	Create(ctx context.Context, key string, data []byte) error
	// Replace writes a derived object, which may exist.
	Replace(ctx context.Context, key string, data []byte) error
	// Update changes an object with several writers, such as a history, without losing updates. Change maps the current object, or nil, to
	// the new one, and is called again after a concurrent write. If it returns the current object, no write happens.
	Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error
	// List returns the keys that start with the prefix, sorted.
	List(ctx context.Context, prefix string) ([]string, error)
	// Page returns sorted keys that start with the prefix and sort after another one, and whether more may follow. It is one operation on
	// the store, while List needs one per page.
	Page(ctx context.Context, prefix, after string) (keys []string, more bool, err error)
	// Check tests whether objects can be listed: nil, ErrNoBucket or ErrUnreachable.
	Check(ctx context.Context) error
	// URL returns the address for users: file:///… or s3://bucket/prefix.
	URL() string
}
