package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"assay.dev/assay/operator/internal/record"
)

// maxTries is the number of tries of one operation in the client. It covers a restart of the store without a long delay of errors.
const maxTries = 3

// s3 is a store in a bucket.
type s3 struct {
	core     minio.Core
	bucket   string
	prefix   string // Empty, or ends in a slash.
	query    string // The URL parameters that locate the bucket.
	endpoint string
	region   string
	timeout  time.Duration
	// anonymous means that there are no credentials.
	anonymous bool
	secret    string // namespace/name of the Secret with the credentials, for errors; may be empty.
	transport http.RoundTripper
	// unproven means that the store must be verified to refuse overwrites before objects are created.
	unproven atomic.Bool
}

func openS3(rawURL string, parsed *url.URL, options Options) (*s3, error) {
	if parsed.Host == "" {
		return nil, fmt.Errorf("%w %q: the bucket is missing: write s3://bucket/prefix?endpoint=http://host:port", ErrBadURL, rawURL)
	}
	if err := s3utils.CheckValidBucketNameStrict(parsed.Host); err != nil {
		return nil, fmt.Errorf("%w %q: bucket %q: %w", ErrBadURL, rawURL, parsed.Host, err)
	}
	values := parsed.Query()
	for name := range values {
		if name != "endpoint" && name != "region" && name != "pathStyle" {
			return nil, fmt.Errorf("%w %q: unknown parameter %q: allowed are endpoint, region and pathStyle", ErrBadURL, rawURL, name)
		}
	}
	region := cmp.Or(values.Get("region"), "us-east-1")
	address := cmp.Or(values.Get("endpoint"), "https://s3."+region+".amazonaws.com")
	endpoint, err := url.Parse(address)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" || strings.Trim(endpoint.Path, "/") != "" {
		return nil, fmt.Errorf("%w %q: invalid endpoint %q: write http://host:port or https://host:port", ErrBadURL, rawURL, address)
	}

	lookup, err := lookupOf(values)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrBadURL, rawURL, err)
	}
	creds, anonymous := findCredentials(options)
	transport, err := NewRoundTripper(endpoint.Scheme == "https", options)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: creds, Secure: endpoint.Scheme == "https", Transport: transport,
		Region: region, BucketLookup: lookup, MaxRetries: maxTries,
	})
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrBadURL, rawURL, err)
	}
	store := &s3{
		core: minio.Core{Client: client}, bucket: parsed.Host, query: parsed.RawQuery,
		endpoint: address, region: region, timeout: options.Timeout, anonymous: anonymous, secret: options.Secret, transport: transport,
	}
	store.unproven.Store(options.Prove)
	if prefix := strings.Trim(parsed.Path, "/"); prefix != "" {
		store.prefix = prefix + "/"
	}
	return store, nil
}

// lookupOf reports whether the bucket's name goes into the path or the host name.
func lookupOf(values url.Values) (minio.BucketLookupType, error) {
	switch style := values.Get("pathStyle"); {
	case style == "true", style == "" && values.Has("endpoint"):
		// Self-hosted stores have no DNS name per bucket.
		return minio.BucketLookupPath, nil
	case style == "false":
		return minio.BucketLookupDNS, nil
	case style == "":
		return minio.BucketLookupAuto, nil
	default:
		return 0, fmt.Errorf("invalid pathStyle %q: allowed are true and false", style)
	}
}

func (s *s3) Get(ctx context.Context, key string) ([]byte, error) { return s.GetVersion(ctx, key, "") }

// GetVersion implements Versioned; an empty version is the newest.
func (s *s3) GetVersion(ctx context.Context, key, version string) ([]byte, error) {
	data, _, err := s.read(ctx, key, version)
	return data, err
}

// read returns an object and its ETag.
func (s *s3) read(ctx context.Context, key, version string) (data []byte, tag string, err error) {
	if err := CheckKey(key); err != nil {
		return nil, "", err
	}
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	body, info, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+key, minio.GetObjectOptions{VersionID: version})
	if err != nil {
		return nil, "", s.explain(ctx, "read", key, err)
	}
	defer body.Close()
	most := ReadLimit(ctx)
	if info.Size > most {
		return nil, "", tooLarge(key, info.Size, most)
	}
	if data, err = readAtMost(key, body, info.Size, most); errors.Is(err, ErrTooLarge) {
		return nil, "", err
	} else if err != nil {
		return nil, "", s.explain(ctx, "read", key, err)
	}
	return data, info.ETag, nil
}

// Create has the store refuse an existing key, so that of two writers at most one succeeds.
func (s *s3) Create(ctx context.Context, key string, data []byte) error {
	if err := s.prove(ctx); err != nil {
		return err
	}
	options := minio.PutObjectOptions{}
	options.SetMatchETagExcept("*")
	return s.put(ctx, key, data, options)
}

func (s *s3) Replace(ctx context.Context, key string, data []byte) error {
	return s.put(ctx, key, data, minio.PutObjectOptions{})
}

// mostUpdates is the number of tries of an update with concurrent writers. It suffices for that many writers at once.
const mostUpdates = 50

// Update has the store refuse to overwrite a version that was not read (RFC 9110, section 13.1.1).
func (s *s3) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	if err := s.prove(ctx); err != nil {
		return err
	}
	for range mostUpdates {
		old, tag, err := s.read(ctx, key, "")
		absent := errors.Is(err, ErrNotFound)
		if err != nil && !absent {
			return err
		}
		data, err := change(old)
		if err != nil || !absent && bytes.Equal(data, old) {
			return err
		}
		options := minio.PutObjectOptions{}
		if absent {
			options.SetMatchETagExcept("*")
		} else {
			options.SetMatchETag(tag)
		}
		// The object may have been deleted since the read; then no version matches.
		if err := s.put(ctx, key, data, options); !errors.Is(err, ErrExists) && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return fmt.Errorf("update %s in bucket %s at %s: %w: others wrote it %d times meanwhile; try again", s.prefix+key, s.bucket, s.endpoint,
		ErrUnreachable, mostUpdates)
}

func (s *s3) put(ctx context.Context, key string, data []byte, options minio.PutObjectOptions) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	options.ContentType = contentType(key)
	// The object is in memory anyway, so it is signed as one piece.
	options.DisableContentSha256 = true
	_, err := s.core.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(data), int64(len(data)), "", record.SHA256(data), options)
	return s.explain(ctx, "write", key, err)
}

var contentTypes = map[string]string{
	".json": "application/json", ".md": "text/markdown; charset=utf-8", ".html": "text/html; charset=utf-8",
	".csv": "text/csv; charset=utf-8",
}

func contentType(key string) string {
	return cmp.Or(contentTypes[path.Ext(key)], "application/octet-stream")
}

// maxPage is the largest number of keys in one response.
const maxPage = 1000

func (s *s3) List(ctx context.Context, prefix string) ([]string, error) {
	return ListAfter(ctx, s, prefix, "")
}

func (s *s3) Page(ctx context.Context, prefix, after string) (keys []string, more bool, err error) {
	// Canceling the context ends the listing after its first page.
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	options := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}
	if after != "" {
		options.StartAfter = s.prefix + after
	}
	for object := range s.core.Client.ListObjects(ctx, s.bucket, options) {
		if object.Err != nil {
			return nil, false, s.explain(ctx, "list", prefix, object.Err)
		}
		if keys = append(keys, strings.TrimPrefix(object.Key, s.prefix)); len(keys) == maxPage {
			return keys, true, nil
		}
	}
	return keys, false, s.explain(ctx, "list", prefix, ctx.Err())
}

// Check lists one key, which tests endpoint, credentials and bucket at little cost.
func (s *s3) Check(ctx context.Context) error {
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	// Canceling the context ends the listing after its first page.
	object, ok := <-s.core.Client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix, MaxKeys: 1})
	err := object.Err
	if !ok {
		err = ctx.Err()
	}
	return s.explain(ctx, "list", "", err)
}

func (s *s3) URL() string {
	address := url.URL{Scheme: "s3", Host: s.bucket, Path: "/" + strings.TrimSuffix(s.prefix, "/"), RawQuery: s.query}
	return address.String()
}

// CreateBucket creates the bucket of an s3:// URL if it is missing, and reports whether it was. For a file:// URL it creates the folder.
func CreateBucket(ctx context.Context, rawURL string, options Options) (bool, error) {
	store, err := Open(ctx, rawURL, options)
	if err != nil {
		return false, err
	}
	switch store := store.(type) {
	case *s3:
		return store.createBucket(ctx)
	case folder:
		err := store.Check(ctx)
		if !errors.Is(err, ErrNoBucket) {
			return false, err
		}
		return true, os.MkdirAll(store.root, 0o755)
	default:
		return false, fmt.Errorf("%w %q: the bucket is missing", ErrBadURL, rawURL)
	}
}

// KeepVersions enables versioning of the bucket of an s3:// URL. For a folder it is an error.
func KeepVersions(ctx context.Context, rawURL string, options Options) error {
	store, err := Open(ctx, rawURL, options)
	if err != nil {
		return err
	}
	bucket, ok := store.(*s3)
	if !ok {
		return fmt.Errorf("%w %q: the bucket is missing", ErrBadURL, rawURL)
	}
	ctx, cancel := begin(ctx, bucket.timeout)
	defer cancel()
	return bucket.explain(ctx, "enable versioning of", "", bucket.core.EnableVersioning(ctx, bucket.bucket))
}

func (s *s3) createBucket(ctx context.Context) (bool, error) {
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	exists, err := s.core.BucketExists(ctx, s.bucket)
	if err != nil || exists {
		return false, s.explain(ctx, "look for", "", err)
	}
	err = s.core.MakeBucket(ctx, s.bucket, minio.MakeBucketOptions{Region: s.region})
	switch code := minio.ToErrorResponse(err).Code; {
	case err == nil:
		return true, nil
	case code == "BucketAlreadyOwnedByYou" || code == "BucketAlreadyExists":
		return false, nil // Another client created it first.
	default:
		return false, s.explain(ctx, "create", "", err)
	}
}

// explain wraps an error with the operation and the remedy; nil for nil.
func (s *s3) explain(ctx context.Context, verb, key string, err error) error {
	if err == nil {
		return nil
	}
	err = behind(ctx, err)
	what := fmt.Sprintf("%s bucket %s at %s", verb, s.bucket, s.endpoint)
	if name := s.prefix + key; name != "" {
		what = fmt.Sprintf("%s %s in bucket %s at %s", verb, name, s.bucket, s.endpoint)
	}
	response := minio.ToErrorResponse(err)
	switch {
	case response.Code == minio.NoSuchKey || response.Code == "NoSuchKey":
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	case response.Code == "PreconditionFailed" || response.StatusCode == http.StatusPreconditionFailed ||
		response.Code == "ConditionalRequestConflict":
		return fmt.Errorf("%s: %w", what, ErrExists)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", what, err)
	default:
		fault := diagnose(what, err, s.anonymous)
		fault.name(s.secret)
		return fault
	}
}
