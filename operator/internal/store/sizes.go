package store

import (
	"context"
	"os"
	"path/filepath"

	"github.com/minio/minio-go/v7"
)

// Sizes are the number of objects under some keys and their total bytes. Overwritten versions and delete markers count, because the store
// retains them.
type Sizes struct {
	Objects int
	Bytes   int64
}

// Sizer is a store that reports the sizes of its objects.
type Sizer interface {
	// Sizes adds up the objects whose keys start with a prefix.
	Sizes(ctx context.Context, prefix string) (Sizes, error)
}

// Sizes implements Sizer. It includes versions if the store has them and this client may list them.
func (s *s3) Sizes(ctx context.Context, prefix string) (Sizes, error) {
	ctx, came, end := beginListing(ctx, listings*s.timeout)
	defer end()
	sizes, err := s.sizes(ctx, prefix, true, came)
	if err != nil && hasNoVersions(err) {
		sizes, err = s.sizes(ctx, prefix, false, came)
	}
	return sizes, s.explain(ctx, "list", prefix, overdue(ctx, err))
}

func (s *s3) sizes(ctx context.Context, prefix string, versions bool, came func()) (Sizes, error) {
	var out Sizes
	options := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, WithVersions: versions}
	for object := range s.core.Client.ListObjects(ctx, s.bucket, options) {
		if object.Err != nil {
			return Sizes{}, object.Err
		}
		came()
		out.Objects, out.Bytes = out.Objects+1, out.Bytes+object.Size
	}
	return out, ctx.Err()
}

// Sizes implements Sizer.
func (f folder) Sizes(ctx context.Context, prefix string) (Sizes, error) {
	var out Sizes
	keys, err := f.List(ctx, prefix)
	if err != nil {
		return Sizes{}, err
	}
	for _, key := range keys {
		info, err := os.Stat(filepath.Join(f.root, filepath.FromSlash(key)))
		if err != nil {
			return Sizes{}, err
		}
		out.Objects, out.Bytes = out.Objects+1, out.Bytes+info.Size()
	}
	return out, nil
}
