package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"assay.dev/assay/operator/internal/memory"
)

// ArchiveExtension is the file extension of an archive: a tar of the ledger's objects, compressed with zstd. tar -xf turns it into a folder
// with the same ledger.
const ArchiveExtension = ".tar.zst"

// Bounds on the objects of an archive, in bytes. Ledgers compress by a factor of 15 to 60.
const (
	// maxArchiveBytes bounds the memory that they take on any machine.
	maxArchiveBytes = 2 << 30
	// archiveShare is the part of the available memory that they may take: objects are decoded and judged beside it.
	archiveShare = 4
	// leastArchiveBytes are read from an archive of any size, and for each of its bytes mostExpansion more.
	leastArchiveBytes = 64 << 20
	mostExpansion     = 200
)

// maxWindow is the most memory that decompression itself takes, which is that of zstd --long.
const maxWindow = 128 << 20

// entryBytes is the memory counted for an entry beside its name and contents. It is at least the size of a tar header.
const entryBytes = 512

func archiveTooLarge(most int64) error {
	return fmt.Errorf("its objects are %w: at most %d bytes of them are read from an archive of this size with the memory that is available; "+
		"unpack it with tar -xf, and name the folder", ErrTooLarge, most)
}

// mostOf returns the bytes to read at most from an archive of a size, with some bytes of memory available.
func mostOf(size, available int64) int64 {
	return min(maxArchiveBytes, available/archiveShare, leastArchiveBytes+min(size, maxArchiveBytes)*mostExpansion)
}

// eachObject passes the objects of an archive to use, in their order, with their sizes. If objects and names together exceed most bytes, it
// returns ErrTooLarge.
func eachObject(from io.Reader, most int64, use func(key string, size int64, data io.Reader) error) error {
	decompressed, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer decompressed.Close()
	left, seen := most, map[string]bool{}
	for in := tar.NewReader(decompressed); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// An empty entry takes memory for its name.
		if left -= int64(len(header.Name)) + entryBytes; left < 0 {
			return archiveTooLarge(most)
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		// tar writes such names when it runs in the folder.
		key := strings.TrimPrefix(header.Name, "./")
		if err := CheckKey(key); err != nil {
			return err
		}
		if seen[key] || header.Typeflag != tar.TypeReg {
			return fmt.Errorf("invalid entry %q of type %q: allowed are folders and files, each name once", header.Name, header.Typeflag)
		}
		seen[key] = true
		if header.Size > MaxObjectBytes {
			return tooLarge(key, header.Size, MaxObjectBytes)
		}
		if left -= header.Size; left < 0 {
			return archiveTooLarge(most)
		}
		if err := use(key, header.Size, in); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
}

// readArchive returns the objects of an archive by key. It decompresses the archive twice, so that one that is too large or broken takes
// the memory of its names only.
func readArchive(from io.ReadSeeker, most int64) (map[string][]byte, error) {
	count := 0
	err := eachObject(from, most, func(_ string, size int64, data io.Reader) error {
		count++
		_, err := io.CopyN(io.Discard, data, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	objects := make(map[string][]byte, count)
	return objects, eachObject(from, most, func(key string, size int64, data io.Reader) error {
		objects[key] = make([]byte, size)
		_, err := io.ReadFull(data, objects[key])
		return err
	})
}

// archive is a read-only store in one file. The file is read on first use.
type archive struct {
	path string
	// load returns the objects by key.
	load func() (map[string][]byte, error)
}

func openArchive(path string) Store {
	path = filepath.Clean(path)
	return archive{path, sync.OnceValues(func() (map[string][]byte, error) {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("archive %s: %w: correct the path", path, ErrNoBucket)
		}
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w: %w", path, ErrUnreachable, err)
		}
		defer file.Close()
		facts, err := file.Stat()
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w: %w", path, ErrUnreachable, err)
		}
		objects, err := readArchive(file, mostOf(facts.Size(), memory.Available()))
		if err == nil && len(objects) == 0 {
			err = errors.New("it contains no object")
		}
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w", path, err)
		}
		return objects, nil
	})}
}

func (a archive) Get(ctx context.Context, key string) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	objects, err := a.load()
	if err != nil {
		return nil, err
	}
	data, ok := objects[key]
	if !ok {
		return nil, fmt.Errorf("%s in %s: %w", key, a.URL(), ErrNotFound)
	}
	if most := ReadLimit(ctx); int64(len(data)) > most {
		return nil, tooLarge(key, int64(len(data)), most)
	}
	return bytes.Clone(data), nil
}

func (a archive) readOnly(key string) error {
	return fmt.Errorf("write %s: read only: %s is an archive; unpack it with tar -xf, and name the folder", key, a.path)
}

func (a archive) Create(_ context.Context, key string, _ []byte) error  { return a.readOnly(key) }
func (a archive) Replace(_ context.Context, key string, _ []byte) error { return a.readOnly(key) }

func (a archive) Update(_ context.Context, key string, _ func([]byte) ([]byte, error)) error {
	return a.readOnly(key)
}

func (a archive) List(ctx context.Context, prefix string) ([]string, error) {
	keys, _, err := a.Page(ctx, prefix, "")
	return keys, err
}

// Page returns all keys at once, because an archive has no pages.
func (a archive) Page(_ context.Context, prefix, after string) (keys []string, more bool, err error) {
	objects, err := a.load()
	for key := range objects {
		if strings.HasPrefix(key, prefix) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, false, err
}

func (a archive) Check(context.Context) error {
	_, err := a.load()
	return err
}

func (a archive) URL() string { return FolderURL(a.path) }
