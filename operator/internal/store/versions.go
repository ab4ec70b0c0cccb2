package store

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Versioned is a store that retains overwritten objects.
type Versioned interface {
	// Firsts returns the first versions of overwritten objects below a prefix, by key; nil if the store has no versions or does not let
	// this client list them.
	Firsts(ctx context.Context, prefix string) (map[string]string, error)
	// GetVersion returns one version of an object, or ErrNotFound.
	GetVersion(ctx context.Context, key, version string) ([]byte, error)
}

// listings is the timeout between two objects of a listing, in operation timeouts. A store may scan many objects for one page.
const listings = 20

// hasNoVersions reports whether a store has no versions, hides them from this client or answers with something else. It is false for an
// outage, after which the existence of versions is unknown.
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

// Firsts implements Versioned. Versions of a key are listed in sequence, the newest first.
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
