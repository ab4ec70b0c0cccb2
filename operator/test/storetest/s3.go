// Package storetest has shared fixtures for tests of stores and of their users: an object store in the process, and every kind of store
// that the conformance suite runs on.
package storetest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The bucket of the fake store, and the credentials that it accepts.
const (
	Bucket    = "ledger"
	AccessKey = "tester"
	SecretKey = "not-a-real-secret"
)

// S3 is a fake object store: path-style GET, also with a presigned URL, conditional PUT with a checksum, and ListObjectsV2 with small
// pages. It checks the access key and not the signature. Change its fields before the first request.
type S3 struct {
	Mutex   sync.Mutex
	Buckets map[string]bool
	Objects map[string][]byte
	Delay   time.Duration
	// Refuse returns the HTTP status and the S3 code with which a request fails; status 0 lets the request pass.
	Refuse func(*http.Request) (status int, code string)
	// Ignores names the request headers that are dropped. Forgets makes listings empty.
	Ignores []string
	Forgets bool
	// Streams omits Content-Length.
	Streams bool
	// Requests counts the requests received.
	Requests int
}

// NewS3 returns a fake store with the bucket Bucket.
func NewS3() *S3 {
	return &S3{Buckets: map[string]bool{Bucket: true}, Objects: map[string][]byte{}}
}

// StartS3 serves a fake store over HTTP until the test ends and returns its endpoint.
func StartS3(t *testing.T) (*S3, string) {
	t.Helper()
	fake := NewS3()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	return fake, server.URL
}

// ServeHTTP implements http.Handler.
func (f *S3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Mutex.Lock()
	defer f.Mutex.Unlock()
	time.Sleep(f.Delay)
	f.Requests++
	for _, header := range f.Ignores {
		r.Header.Del(header)
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if f.Refuse != nil {
		if status, code := f.Refuse(r); status != 0 {
			Fail(w, status, code)
			return
		}
	}
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+AccessKey+"/") &&
		!strings.HasPrefix(r.URL.Query().Get("X-Amz-Credential"), AccessKey+"/"):
		Fail(w, http.StatusForbidden, "InvalidAccessKeyId")
	case r.Method == http.MethodPut && key == "" && !f.Buckets[bucket]:
		f.Buckets[bucket] = true
	case !f.Buckets[bucket]:
		Fail(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodHead && key == "":
	case r.Method == http.MethodGet && key == "":
		f.list(w, r)
	case r.Method == http.MethodGet:
		f.get(w, key)
	case r.Method == http.MethodPut:
		f.put(w, r, key)
	default:
		Fail(w, http.StatusNotImplemented, "NotImplemented")
	}
}

func (f *S3) get(w http.ResponseWriter, key string) {
	data, ok := f.Objects[key]
	if !ok {
		Fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("Last-Modified", time.Unix(0, 0).UTC().Format(http.TimeFormat))
	w.Header().Set("ETag", tagOf(data))
	if !f.Streams {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	} else if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	_, _ = w.Write(data)
}

func (f *S3) put(w http.ResponseWriter, r *http.Request, key string) {
	data, err := io.ReadAll(io.LimitReader(r.Body, 65<<20))
	if err != nil || strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING") {
		Fail(w, http.StatusBadRequest, "BadDigest")
		return
	}
	if _, exists := f.Objects[key]; !exists && r.Header.Get("If-Match") != "" {
		Fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	if _, exists := f.Objects[key]; exists && r.Header.Get("If-None-Match") == "*" {
		Fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	if before, exists := f.Objects[key]; exists && r.Header.Get("If-Match") != "" && strings.Trim(r.Header.Get("If-Match"), `"`) !=
		strings.Trim(tagOf(before), `"`) {
		Fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	sum := sha256.Sum256(data)
	if said := r.Header.Get("X-Amz-Checksum-Sha256"); said != "" && said != base64.StdEncoding.EncodeToString(sum[:]) {
		Fail(w, http.StatusBadRequest, "BadDigest")
		return
	}
	f.Objects[key] = data
	w.Header().Set("ETag", tagOf(data))
}

func tagOf(data []byte) string { return fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(data))) }

func (f *S3) list(w http.ResponseWriter, r *http.Request) {
	const page = 3 // Small, so that every test pages.
	type content struct {
		Key          string
		LastModified string
		Size         int
	}
	type result struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name                  string
		IsTruncated           bool
		NextContinuationToken string
		Contents              []content
	}
	query := r.URL.Query()
	var keys []string
	for key := range f.Objects {
		if !f.Forgets && strings.HasPrefix(key, query.Get("prefix")) && key > max(query.Get("continuation-token"), query.Get("start-after")) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	out := result{Name: Bucket}
	if len(keys) > page {
		keys = keys[:page]
		out.IsTruncated, out.NextContinuationToken = true, keys[page-1]
	}
	for _, key := range keys {
		out.Contents = append(out.Contents, content{key, "2026-01-01T00:00:00.000Z", len(f.Objects[key])})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}

// Fail writes an S3 error response.
func Fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}
