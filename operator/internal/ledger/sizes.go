package ledger

import (
	"context"
	"os"

	"github.com/minio/minio-go/v7"
)

// Sizes are how many objects there are under some keys, and their bytes together.
type Sizes struct {
	Objects int
	Bytes   int64
}

// Sizer is a store that reports the sizes of its objects.
type Sizer interface {
	// SizesAfter sums up objects whose keys start with the prefix and come after another one, as many as one operation of the store
	// tells of. Last is the key of the last of them, and more reports whether there may be others after it.
	SizesAfter(ctx context.Context, prefix, after string) (found Sizes, last string, more bool, err error)
}

func (s *s3) SizesAfter(ctx context.Context, prefix, after string) (found Sizes, last string, more bool, err error) {
	// Leaving the function ends the listing after its first page.
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	options := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}
	if after != "" {
		options.StartAfter = s.prefix + after
	}
	for object := range s.core.Client.ListObjects(ctx, s.bucket, options) {
		if object.Err != nil {
			return Sizes{}, "", false, s.explain(ctx, "list", prefix, object.Err)
		}
		found.Objects, found.Bytes = found.Objects+1, found.Bytes+object.Size
		last = object.Key[len(s.prefix):]
		if found.Objects == maxPage {
			return found, last, true, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return Sizes{}, "", false, s.explain(ctx, "list", prefix, err)
	}
	return found, last, false, nil
}

func (f folder) SizesAfter(ctx context.Context, prefix, after string) (found Sizes, last string, more bool, err error) {
	keys, more, err := f.Page(ctx, prefix, after)
	for _, key := range keys {
		info, err := os.Stat(f.path(key))
		if err != nil {
			return Sizes{}, "", false, err
		}
		found.Objects, found.Bytes, last = found.Objects+1, found.Bytes+info.Size(), key
	}
	return found, last, more, err
}
