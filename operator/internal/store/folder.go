package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// temporaryPrefix marks files that are being written; they are no objects.
const temporaryPrefix = ".assay-tmp-"

// ErrNoLocks means that this system has no file locks.
var ErrNoLocks = errors.New("file locks are not supported")

// folder is a store in a directory, with keys as paths below it. The folder may have been written by others, so links must not lead out of
// it.
type folder struct{ root string }

func openFolder(rawURL string, parsed *url.URL) (Store, error) {
	if parsed.Host != "" && parsed.Host != "localhost" || !filepath.IsAbs(parsed.Path) {
		return nil, fmt.Errorf("%w %q: write the folder as file:///absolute/path, with three slashes", ErrBadURL, rawURL)
	}
	if strings.HasSuffix(parsed.Path, ArchiveExtension) {
		return openArchive(parsed.Path), nil
	}
	return folder{filepath.Clean(parsed.Path)}, nil
}

func (f folder) Get(ctx context.Context, key string) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(f.root)
	var file *os.File
	if err == nil {
		defer root.Close()
		// Opening a pipe must not block until it has a writer.
		file, err = root.OpenFile(key, os.O_RDONLY|nonBlocking, 0)
	}
	var info fs.FileInfo
	if err == nil {
		defer file.Close()
		info, err = file.Stat()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s in %s: %w", key, f.URL(), ErrNotFound)
	case err != nil && leads(root, key):
		return nil, fmt.Errorf("%s in %s is a link out of it: %w", key, f.URL(), ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w: %w", key, ErrUnreachable, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s in %s is not a file: %w", key, f.URL(), ErrNotFound)
	case info.Size() > ReadLimit(ctx):
		return nil, tooLarge(key, info.Size(), ReadLimit(ctx))
	}
	data, err := readAtMost(key, file, info.Size(), ReadLimit(ctx))
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return nil, fmt.Errorf("read %s: %w: %w", key, ErrUnreachable, err)
	}
	return data, err
}

// leads reports whether the key is a symbolic link.
func leads(root *os.Root, key string) bool {
	if root == nil {
		return false
	}
	info, err := root.Lstat(key)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// Create links a complete temporary file under the key. A link never replaces a file, and a reader never sees a partial one. Immutable
// objects are write-protected.
func (f folder) Create(_ context.Context, key string, data []byte) error {
	return f.write(key, data, 0o444, func(root *os.Root, temporary string) error {
		if err := root.Link(temporary, key); err != nil {
			return err
		}
		return root.Remove(temporary)
	})
}

func (f folder) Replace(_ context.Context, key string, data []byte) error {
	return f.write(key, data, 0o644, func(root *os.Root, temporary string) error { return root.Rename(temporary, key) })
}

// Update locks the folder of the object. The lock ends with the process.
func (f folder) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	root, err := f.above(key)
	if err != nil {
		return err
	}
	defer root.Close()
	directory, err := root.Open(path.Dir(key))
	if err == nil {
		defer directory.Close()
		err = lockFolder(directory)
	}
	if err != nil {
		return fmt.Errorf("lock the folder of %s: %w: %w", key, ErrUnreachable, err)
	}
	old, err := f.Get(ctx, key)
	absent := errors.Is(err, ErrNotFound)
	if err != nil && !absent {
		return err
	}
	data, err := change(old)
	if err != nil || !absent && bytes.Equal(data, old) {
		return err
	}
	return f.Replace(ctx, key, data)
}

// above opens the root of the store and creates the folder of the key.
func (f folder) above(key string) (*os.Root, error) {
	err := os.MkdirAll(f.root, 0o755)
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(f.root)
	}
	if err == nil {
		if err = root.MkdirAll(path.Dir(key), 0o755); err != nil {
			err = errors.Join(err, root.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", key, err)
	}
	return root, nil
}

func (f folder) write(key string, data []byte, mode fs.FileMode, publish func(root *os.Root, temporary string) error) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	root, err := f.above(key)
	if err != nil {
		return err
	}
	defer root.Close()
	name := path.Join(path.Dir(key), temporaryPrefix+rand.Text())
	if err = temporary(root, name, data, mode); err == nil {
		if err = publish(root, name); err != nil {
			err = errors.Join(err, root.Remove(name))
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write %s: %w", key, ErrExists)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// temporary writes the data to a new file in the same folder, so that publishing it is atomic.
func temporary(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, root.Remove(name))
	}
	return err
}

func (f folder) List(ctx context.Context, prefix string) ([]string, error) {
	keys, _, err := f.Page(ctx, prefix, "")
	return keys, err
}

// Page returns all keys at once, because a folder has no pages.
func (f folder) Page(_ context.Context, prefix, after string) (keys []string, more bool, err error) {
	// The walk starts at the deepest folder that the prefix names.
	start := "."
	if slash := strings.LastIndexByte(prefix, '/'); slash >= 0 {
		start = path.Clean(prefix[:slash])
	}
	root, err := os.OpenRoot(f.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("list %s: %w: %w", prefix, ErrUnreachable, err)
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), start, func(key string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Deleted during the walk.
		}
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			// 0 is the character after the slash, so all keys below a folder sort before its name with a 0.
			below := strings.HasPrefix(key+"/", prefix) || strings.HasPrefix(prefix, key+"/")
			if key != "." && (!below || key+"0" <= after) {
				return fs.SkipDir
			}
		case !strings.HasPrefix(entry.Name(), temporaryPrefix) && strings.HasPrefix(key, prefix) && key > after:
			keys = append(keys, key)
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("list %s: %w: %w", prefix, ErrUnreachable, err)
	}
	slices.Sort(keys)
	return keys, false, nil
}

func (f folder) Check(context.Context) error {
	info, err := os.Stat(f.root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("folder %s: %w: create it, or correct the path", f.root, ErrNoBucket)
	case err != nil:
		return fmt.Errorf("folder %s: %w: %w", f.root, ErrUnreachable, err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: %w", f.root, ErrUnreachable)
	}
	return nil
}

func (f folder) URL() string { return FolderURL(f.root) }
