package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// temporaryPrefix marks files that are being written; they are no objects.
const temporaryPrefix = ".assay-tmp-"

// errNoLocks means that this system has no locks of folders.
var errNoLocks = errors.New("locks of folders are not known")

// folder is a store in a directory: keys are paths below it.
type folder struct{ root string }

func openFolder(rawURL string, parsed *url.URL) (Store, error) {
	if parsed.Host != "" && parsed.Host != "localhost" || !filepath.IsAbs(parsed.Path) {
		return nil, fmt.Errorf("%w %q: a folder is written file:///absolute/path, with three slashes", ErrBadURL, rawURL)
	}
	if strings.HasSuffix(parsed.Path, ArchiveExtension) {
		return openArchive(parsed.Path), nil
	}
	return folder{filepath.Clean(parsed.Path)}, nil
}

func (f folder) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

func (f folder) Get(ctx context.Context, key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	info, err := os.Stat(f.path(key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s in %s: %w", key, f.URL(), ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w: %w", key, ErrUnreachable, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s in %s is not a file: %w", key, f.URL(), ErrNotFound)
	case info.Size() > mostBytes(ctx):
		return nil, tooLarge(key, info.Size(), mostBytes(ctx))
	}
	file, err := os.Open(f.path(key))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", key, ErrUnreachable, err)
	}
	defer file.Close()
	data, err := readAtMost(key, file, mostBytes(ctx))
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return nil, fmt.Errorf("read %s: %w: %w", key, ErrUnreachable, err)
	}
	return data, err
}

// Create links a complete temporary file under the key: a link never replaces a file, and a reader never sees half of one. What
// never changes is write-protected.
func (f folder) Create(_ context.Context, key string, data []byte) error {
	return f.write(key, data, 0o444, func(temporary, target string) error {
		if err := os.Link(temporary, target); err != nil {
			return err
		}
		return os.Remove(temporary)
	})
}

func (f folder) Replace(_ context.Context, key string, data []byte) error {
	return f.write(key, data, 0o644, os.Rename)
}

// Update holds a lock on the folder that the object is in, which ends with the process that has it.
func (f folder) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	if err := checkKey(key); err != nil {
		return err
	}
	target := f.path(key)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	unlock, err := lockFolder(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("lock the folder of %s: %w: %w", key, ErrUnreachable, err)
	}
	defer unlock()
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

func (f folder) write(key string, data []byte, mode fs.FileMode, publish func(temporary, target string) error) error {
	if err := checkKey(key); err != nil {
		return err
	}
	target := f.path(key)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	temporary, err := f.temporary(filepath.Dir(target), data, mode)
	if err == nil {
		if err = publish(temporary, target); err != nil {
			err = errors.Join(err, os.Remove(temporary))
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

// temporary writes the data to a new file beside its final place, so that publishing it is one step on one file system.
func (f folder) temporary(directory string, data []byte, mode fs.FileMode) (string, error) {
	file, err := os.CreateTemp(directory, temporaryPrefix)
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

func (f folder) List(ctx context.Context, prefix string) ([]string, error) {
	keys, _, err := f.Page(ctx, prefix, "")
	return keys, err
}

// Page returns all keys at once: a folder has no pages.
func (f folder) Page(_ context.Context, prefix, after string) (keys []string, more bool, err error) {
	// Walk only the deepest folder that the prefix names.
	start := f.root
	if slash := strings.LastIndexByte(prefix, '/'); slash >= 0 {
		start = f.path(prefix[:slash])
	}
	err = filepath.WalkDir(start, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // What went away meanwhile is not there, and what comes after it is.
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(f.root, path)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(relative)
		switch {
		case entry.IsDir():
			// 0 is the character after the slash, so that all that is below a folder comes before it.
			below := strings.HasPrefix(key+"/", prefix) || strings.HasPrefix(prefix, key+"/")
			if relative != "." && (!below || key+"0" <= after) {
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
