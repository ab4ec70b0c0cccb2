package ledger

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"assay.dev/assay/operator/internal/store"
)

// archived reports whether an object belongs in an archive. Reports and tables do not, because they can be generated from the analyses
// again. Invalid keys do not either, such as the folder markers that some tools leave in a bucket.
func archived(key string) bool {
	derived := strings.HasPrefix(key, "analysis/") && !strings.HasSuffix(key, "/analysis.json") && !sealKey.MatchString(key)
	return !derived && store.CheckKey(key) == nil
}

// WriteArchive writes a ledger as an archive: all evidence of the verdicts, and the analyses. Equal objects give equal bytes.
func WriteArchive(ctx context.Context, s store.Store, to io.Writer) error {
	keys, err := s.List(ctx, "")
	if err != nil {
		return err
	}
	// One encoder only, because with several the cuts between compressed blocks depend on timing.
	compressed, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	out := tar.NewWriter(compressed)
	for _, key := range keys {
		if !archived(key) {
			continue
		}
		data, err := s.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) && analysisKey.MatchString(key) {
			continue // The operator has not accepted it.
		}
		if err != nil {
			return err
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: key, Size: int64(len(data)), Mode: 0o444, ModTime: time.Unix(0, 0)}
		if err := out.WriteHeader(&header); err != nil {
			return fmt.Errorf("archive %s: %w", key, err)
		}
		if _, err := out.Write(data); err != nil {
			return fmt.Errorf("archive %s: %w", key, err)
		}
	}
	// The list of overwritten objects is read last, so that it covers all overwrites before the objects were read.
	written, err := asWritten(ctx, s)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(keys, written.over); at >= 0 {
		over := written.problem(keys[at])
		return fmt.Errorf("%s: %s; an archive has one version of each object, and would hide it", over.Key, over.Reason)
	}
	return errors.Join(out.Close(), compressed.Close())
}
