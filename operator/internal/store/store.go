// Package store holds objects under keys: in an S3 bucket, in a folder, or read-only in an archive. It has the Store interface, its
// implementations, retries, a circuit breaker and the classification of errors. What the objects of a run mean is in package ledger.
package store

import (
	"context"
	"errors"
)

// Errors a store reports, to be tested with errors.Is.
var (
	// ErrNotFound means that no object has the key.
	ErrNotFound = errors.New("object not found")
	// ErrExists means that an immutable object would have been overwritten.
	ErrExists = errors.New("object exists already")
	// ErrNoBucket means that the object store answers and has no such bucket.
	ErrNoBucket = errors.New("bucket does not exist")
	// ErrUnreachable means that the object store did not answer, or refused the credentials.
	ErrUnreachable = errors.New("object store unreachable")
)

// Store holds objects under keys relative to one prefix. Implementations are safe for concurrent use.
type Store interface {
	// Get returns the object, or ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
	// Create writes an object that must not exist yet, or returns ErrExists.
	Create(ctx context.Context, key string, data []byte) error
	// Replace writes an object that is derived from others and may be written again.
	Replace(ctx context.Context, key string, data []byte) error
	// Update writes an object that several writers change, such as a history: no change of another writer is lost. Change makes the new
	// object of the one that is there, nil where there is none, and is asked again when somebody else wrote in between. Where it gives back
	// what is there, nothing is written.
	Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error
	// List returns the keys that start with the prefix, sorted.
	List(ctx context.Context, prefix string) ([]string, error)
	// Page returns keys that start with the prefix and come after another one, sorted, and whether there may be more after these. It
	// is one operation on the store, where List is as many as it takes.
	Page(ctx context.Context, prefix, after string) (keys []string, more bool, err error)
	// Check answers whether objects can be listed: nil, ErrNoBucket or ErrUnreachable.
	Check(ctx context.Context) error
	// URL is the address a person can use: file:///… or s3://bucket/prefix.
	URL() string
}
