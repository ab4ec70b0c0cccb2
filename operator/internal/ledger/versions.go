package ledger

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"assay.dev/assay/operator/internal/record"
)

// Versioned is a store that keeps what is written over.
type Versioned interface {
	// Firsts are the first versions of the objects below a prefix that were written over, by key; nil where the store keeps no versions
	// or does not let this reader see them.
	Firsts(ctx context.Context, prefix string) (map[string]string, error)
	// GetVersion returns one version of an object, or ErrNotFound.
	GetVersion(ctx context.Context, key, version string) ([]byte, error)
}

// writtenOnce reads of every object what was written first. Who writes attempts may be able to write over them, because not every store
// can be asked to refuse that; where versions are kept, and nobody who measures can remove any, that changes nothing and is found out.
type writtenOnce struct {
	Store
	versioned Versioned
	firsts    map[string]string
}

// asWritten is a store whose attempts are as they were first written. It knows what was written over until now: of what is read later it is
// asked again after that.
func asWritten(ctx context.Context, store Store) (writtenOnce, error) {
	out := writtenOnce{Store: store}
	var err error
	if versioned, ok := store.(Versioned); ok {
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

// listings is how many times as long as one operation a listing may take in which nothing comes: a store may look through much for a page.
const listings = 20

// hasNoVersions reports whether a store has no versions, does not show them to this reader or answers something else, and did not just fail
// to answer: what it would have said of versions is not known then.
func hasNoVersions(err error) bool {
	if _, away := errors.AsType[net.Error](err); away || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok && syntax.Msg == "unexpected EOF" {
		return false
	}
	switch status := minio.ToErrorResponse(err).StatusCode; status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return false
	default:
		return status < http.StatusInternalServerError || status == http.StatusNotImplemented
	}
}

// Firsts implements Versioned. Versions of a key are listed one after the other, the newest first.
func (s *s3) Firsts(ctx context.Context, prefix string) (map[string]string, error) {
	ctx, came, end := beginListing(ctx, listings*s.timeout)
	defer end()
	var out map[string]string
	last, some := "", false
	options := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, WithVersions: true}
	for object := range s.core.Client.ListObjects(ctx, s.bucket, options) {
		if object.Err != nil {
			if !some && hasNoVersions(object.Err) {
				return nil, nil
			}
			return nil, s.explain(ctx, "list versions of", prefix, overdue(ctx, object.Err))
		}
		came()
		some = true
		if object.IsDeleteMarker {
			continue
		}
		key := strings.TrimPrefix(object.Key, s.prefix)
		if key == last {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = object.VersionID
		}
		last = key
	}
	return out, s.explain(ctx, "list versions of", prefix, overdue(ctx, ctx.Err()))
}
