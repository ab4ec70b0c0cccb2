package ledger

import (
	"context"
	"os"
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
	SizesAfter(ctx context.Context, prefix, after string) (sizes Sizes, last string, more bool, err error)
}

func (s *s3) SizesAfter(ctx context.Context, prefix, after string) (sizes Sizes, last string, more bool, err error) {
	more, err = s.page(ctx, prefix, after, func(key string, size int64) {
		sizes.Objects, sizes.Bytes, last = sizes.Objects+1, sizes.Bytes+size, key
	})
	if err != nil {
		return Sizes{}, "", false, err
	}
	return sizes, last, more, nil
}

func (f folder) SizesAfter(ctx context.Context, prefix, after string) (sizes Sizes, last string, more bool, err error) {
	keys, more, err := f.Page(ctx, prefix, after)
	for _, key := range keys {
		info, err := os.Stat(f.path(key))
		if err != nil {
			return Sizes{}, "", false, err
		}
		sizes.Objects, sizes.Bytes, last = sizes.Objects+1, sizes.Bytes+info.Size(), key
	}
	return sizes, last, more, err
}
