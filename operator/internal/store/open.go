package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// Options of a store. The zero value takes credentials from the environment and has default limits.
type Options struct {
	// AccessKey and SecretKey of the object store; empty takes AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
	AccessKey string
	SecretKey string
	// CredentialsDir is a folder with the files accessKey and secretKey, as a mounted Secret has them. They replace the environment, and
	// are read again when they change.
	CredentialsDir string
	// Secret is the namespace/name of the Secret with the credentials, for error messages; empty if unknown.
	Secret string
	// CA is the PEM certificate bundle of the store's authority, and CAFile a file with one, read again when it changes. With neither,
	// AWS_CA_BUNDLE names the file; without that the system's authorities are trusted.
	CA     []byte
	CAFile string
	// ServerName is the expected name in the store's certificate; empty means the host of the URL.
	ServerName string
	// Prove refuses to create objects until the store has been verified once to refuse overwrites. It needs the right to write
	// runs/assay-write-probe.
	Prove bool
	// Timeout of every single operation; 0 means 30 s.
	Timeout time.Duration
}

const (
	defaultTimeout = 30 * time.Second
	// MaxObjectBytes bounds the memory for one object. It is far above any attempt and far below the memory of a small machine.
	MaxObjectBytes = 64 << 20
	// maxKeys bounds a listing in memory: ten times the objects of the largest run.
	maxKeys = 1 << 20
)

// ErrTooLarge means that an object is larger than any that a run writes.
var ErrTooLarge = errors.New("too large")

func tooLarge(key string, bytes, most int64) error {
	return fmt.Errorf("%s is %w: it has %d bytes and at most %d are read; no run writes as much, so find out who did and remove it", key,
		ErrTooLarge, bytes, most)
}

// readAtMost reads a body of about size bytes to its end, or returns ErrTooLarge. A truncated read would be taken for the whole object.
func readAtMost(key string, body io.Reader, size, most int64) ([]byte, error) {
	buffer := bytes.NewBuffer(make([]byte, 0, max(0, min(size, most))+bytes.MinRead))
	_, err := buffer.ReadFrom(io.LimitReader(body, most+1))
	data := buffer.Bytes()
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("%s is %w: it has more bytes, and at most %d are read; no run writes as much, so find out who did and "+
			"remove it", key, ErrTooLarge, most)
	}
	return data, err
}

type mostBytesKey struct{}

// GetAtMost is Get with a size limit in bytes, for processes shared by many users that read untrusted objects. A larger object is
// ErrTooLarge.
func GetAtMost(ctx context.Context, store Store, key string, most int64) ([]byte, error) {
	return store.Get(AtMost(ctx, most), key)
}

// AtMost returns a context in which Get and Update return ErrTooLarge for objects of more bytes.
func AtMost(ctx context.Context, most int64) context.Context {
	return context.WithValue(ctx, mostBytesKey{}, most)
}

// ReadLimit returns the largest size in bytes that a Store may return from Get with this context.
func ReadLimit(ctx context.Context) int64 {
	if most, ok := ctx.Value(mostBytesKey{}).(int64); ok {
		return min(most, MaxObjectBytes)
	}
	return MaxObjectBytes
}

// ErrBadURL means that a ledger's URL is invalid.
var ErrBadURL = errors.New("invalid ledger URL")

// Open returns the store at a URL: file:///absolute/folder, file:///absolute/name.tar.zst (read only), or
// s3://bucket/prefix?endpoint=http://host:port&region=…&pathStyle=…. It sends no request; Check does.
func Open(_ context.Context, rawURL string, options Options) (Store, error) {
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrBadURL, rawURL, err)
	}
	switch parsed.Scheme {
	case "file":
		return openFolder(rawURL, parsed)
	case "s3":
		return openS3(rawURL, parsed, options)
	default:
		return nil, fmt.Errorf("%w %q: unknown scheme %q: write file:///absolute/folder or s3://bucket/prefix?endpoint=http://host:port",
			ErrBadURL, rawURL, parsed.Scheme)
	}
}

// FolderURL returns the URL of a folder, with special characters escaped.
func FolderURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// OpenFolder returns the store in a folder, or in an archive.
func OpenFolder(ctx context.Context, path string) (Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return Open(ctx, FolderURL(path), Options{})
}

// WithPrefix returns the part of a store under a prefix, e.g. the ledger of one run inside a bucket. It shares the store's connections.
func WithPrefix(store Store, prefix string) Store {
	prefix = strings.Trim(path.Clean("/"+prefix), "/")
	if prefix == "" {
		return store
	}
	if s, ok := store.(subStore); ok {
		return subStore{s.Store, path.Join(s.prefix, prefix)}
	}
	return subStore{store, prefix}
}

// subStore adds a prefix to all keys of another store.
type subStore struct {
	Store
	prefix string
}

func (s subStore) Get(ctx context.Context, key string) ([]byte, error) {
	return s.Store.Get(ctx, s.prefix+"/"+key)
}

func (s subStore) Create(ctx context.Context, key string, data []byte) error {
	return s.Store.Create(ctx, s.prefix+"/"+key, data)
}

func (s subStore) Replace(ctx context.Context, key string, data []byte) error {
	return s.Store.Replace(ctx, s.prefix+"/"+key, data)
}

func (s subStore) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	return s.Store.Update(ctx, s.prefix+"/"+key, change)
}

func (s subStore) List(ctx context.Context, prefix string) ([]string, error) {
	keys, err := s.Store.List(ctx, s.prefix+"/"+prefix)
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], s.prefix+"/")
	}
	return keys, err
}

func (s subStore) Page(ctx context.Context, prefix, after string) ([]string, bool, error) {
	if after != "" {
		after = s.prefix + "/" + after
	}
	keys, more, err := s.Store.Page(ctx, s.prefix+"/"+prefix, after)
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], s.prefix+"/")
	}
	return keys, more, err
}

func (s subStore) URL() string {
	address, query, ok := strings.Cut(s.Store.URL(), "?")
	address = strings.TrimSuffix(address, "/") + "/" + (&url.URL{Path: s.prefix}).EscapedPath()
	if ok {
		address += "?" + query
	}
	return address
}

// ListAfter returns all keys that start with the prefix and sort after another one. More than maxKeys are ErrTooLarge.
func ListAfter(ctx context.Context, store Store, prefix, after string) ([]string, error) {
	var out []string
	err := EachPage(ctx, store, prefix, after, func(keys []string) error {
		if len(out)+len(keys) > maxKeys {
			return fmt.Errorf("the list of %s in %s is %w: it has more than %d objects, ten times those of the largest run; find out "+
				"who wrote them and remove them", prefix, store.URL(), ErrTooLarge, maxKeys)
		}
		out = append(out, keys...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// EachKey visits all keys that start with the prefix, sorted. It holds one page in memory.
func EachKey(ctx context.Context, store Store, prefix string, visit func(key string)) error {
	return EachPage(ctx, store, prefix, "", func(keys []string) error {
		for _, key := range keys {
			visit(key)
		}
		return nil
	})
}

// EachPage visits all keys that start with the prefix and sort after another one, page by page. It holds one page in memory. Visit returns
// fs.SkipAll to stop.
func EachPage(ctx context.Context, store Store, prefix, after string, visit func(keys []string) error) error {
	for {
		keys, more, err := store.Page(ctx, prefix, after)
		if err == nil {
			err = visit(keys)
		}
		if errors.Is(err, fs.SkipAll) {
			return nil
		}
		if err != nil || !more || len(keys) == 0 {
			return err
		}
		after = keys[len(keys)-1]
	}
}

// EnsureCreated creates an immutable object, and succeeds if it exists already with the same content, so that a writer that was killed
// after the write can repeat it.
func EnsureCreated(ctx context.Context, store Store, key string, data []byte) error {
	err := store.Create(ctx, key, data)
	if !errors.Is(err, ErrExists) {
		return err
	}
	existing, getErr := store.Get(ctx, key)
	if getErr != nil {
		return getErr
	}
	if !bytes.Equal(existing, data) {
		return fmt.Errorf("%w, with other content", err)
	}
	return nil
}

// CheckKey refuses keys with different meanings in folders and object stores, and keys with line breaks, because a list of sums has one key
// per line.
func CheckKey(key string) error {
	if key == "" || key != strings.TrimPrefix(path.Clean("/"+key), "/") || strings.ContainsFunc(key, unicode.IsControl) {
		return fmt.Errorf("key %q is not a clean relative path", key)
	}
	return nil
}
