package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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

// asWritten is a store as it was first written below a prefix, and what of some keys was written over since.
func asWritten(ctx context.Context, store Store, prefix string, keys []string) (Store, []record.Problem, error) {
	versioned, ok := store.(Versioned)
	if !ok {
		return store, nil, nil
	}
	firsts, err := versioned.Firsts(ctx, prefix)
	if err != nil || len(firsts) == 0 {
		return store, nil, err
	}
	var over []record.Problem
	for _, key := range keys {
		if firsts[key] == "" {
			continue
		}
		over = append(over, record.Problem{
			// The key alone is of what counts.
			Source: record.Source{Key: key + " (written over)"},
			Reason: fmt.Sprintf("somebody with a key of the store wrote over it: its first version, %s, is used", firsts[key]),
		})
	}
	return writtenOnce{store, versioned, firsts}, over, nil
}

func (w writtenOnce) Get(ctx context.Context, key string) ([]byte, error) {
	if version, over := w.firsts[key]; over {
		return w.versioned.GetVersion(ctx, key, version)
	}
	return w.Store.Get(ctx, key)
}

// listings is how many times as long as one operation a listing may take in which nothing comes: a store may look through much for a page.
const listings = 20

// hasNoVersions reports whether a store has no versions, does not show them to this reader or answers something else, and is not just
// unreachable.
func hasNoVersions(err error) bool {
	if _, away := errors.AsType[*url.Error](err); away || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	status := minio.ToErrorResponse(err).StatusCode
	return status < http.StatusInternalServerError || status == http.StatusNotImplemented
}

// Firsts implements Versioned. Versions of a key are listed one after the other, the newest first.
func (s *s3) Firsts(ctx context.Context, prefix string) (map[string]string, error) {
	ctx, came, end := beginListing(ctx, listings*s.timeout)
	defer end()
	var out map[string]string
	last := ""
	options := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, WithVersions: true}
	for object := range s.core.Client.ListObjects(ctx, s.bucket, options) {
		if object.Err != nil {
			if hasNoVersions(object.Err) {
				return nil, nil
			}
			return nil, s.explain(ctx, "list versions of", prefix, overdue(ctx, object.Err))
		}
		came()
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
