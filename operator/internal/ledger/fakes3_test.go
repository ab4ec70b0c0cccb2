package ledger

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

const (
	fakeBucket = "ledger"
	fakeAccess = "tester"
	fakeSecret = "not-a-real-secret"
)

// fakeS3 is as much of an object store as the ledger uses: path-style GET, also by a signed link, PUT with conditions and a
// checksum, and ListObjectsV2 with small pages. It checks who asks, not the signature.
type fakeS3 struct {
	mutex   sync.Mutex
	buckets map[string]bool
	objects map[string][]byte
	delay   time.Duration
	// refuse answers every request with an error, given as its status and code.
	refuse func(*http.Request) (status int, code string)
	// ignores are headers of a request that it does not look at, and forgets means that its listings are empty.
	ignores []string
	forgets bool
	// streams means that it does not say how large an object is.
	streams bool
	// requests counts those that came.
	requests int
}

func newFakeS3() *fakeS3 {
	return &fakeS3{buckets: map[string]bool{fakeBucket: true}, objects: map[string][]byte{}}
}

func startFakeS3(t *testing.T) (*fakeS3, string) {
	t.Helper()
	fake := newFakeS3()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	return fake, server.URL
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	time.Sleep(f.delay)
	f.requests++
	for _, header := range f.ignores {
		r.Header.Del(header)
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if f.refuse != nil {
		if status, code := f.refuse(r); status != 0 {
			fail(w, status, code)
			return
		}
	}
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+fakeAccess+"/") &&
		!strings.HasPrefix(r.URL.Query().Get("X-Amz-Credential"), fakeAccess+"/"):
		fail(w, http.StatusForbidden, "InvalidAccessKeyId")
	case r.Method == http.MethodPut && key == "" && !f.buckets[bucket]:
		f.buckets[bucket] = true
	case !f.buckets[bucket]:
		fail(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodHead && key == "":
	case r.Method == http.MethodGet && key == "":
		f.list(w, r)
	case r.Method == http.MethodGet:
		f.get(w, key)
	case r.Method == http.MethodPut:
		f.put(w, r, key)
	default:
		fail(w, http.StatusNotImplemented, "NotImplemented")
	}
}

func (f *fakeS3) get(w http.ResponseWriter, key string) {
	data, ok := f.objects[key]
	if !ok {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("Last-Modified", time.Unix(0, 0).UTC().Format(http.TimeFormat))
	w.Header().Set("ETag", tagOf(data))
	if !f.streams {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	} else if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	_, _ = w.Write(data)
}

func (f *fakeS3) put(w http.ResponseWriter, r *http.Request, key string) {
	data, err := io.ReadAll(r.Body)
	if err != nil || strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING") {
		fail(w, http.StatusBadRequest, "BadDigest")
		return
	}
	if _, exists := f.objects[key]; !exists && r.Header.Get("If-Match") != "" {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	if _, exists := f.objects[key]; exists && r.Header.Get("If-None-Match") == "*" {
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	if before, exists := f.objects[key]; exists && r.Header.Get("If-Match") != "" && strings.Trim(r.Header.Get("If-Match"), `"`) !=
		strings.Trim(tagOf(before), `"`) {
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	sum := sha256.Sum256(data)
	if said := r.Header.Get("X-Amz-Checksum-Sha256"); said != "" && said != base64.StdEncoding.EncodeToString(sum[:]) {
		fail(w, http.StatusBadRequest, "BadDigest")
		return
	}
	f.objects[key] = data
	w.Header().Set("ETag", tagOf(data))
}

func tagOf(data []byte) string { return fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(data))) }

func (f *fakeS3) list(w http.ResponseWriter, r *http.Request) {
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
	for key := range f.objects {
		if !f.forgets && strings.HasPrefix(key, query.Get("prefix")) && key > max(query.Get("continuation-token"), query.Get("start-after")) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	out := result{Name: fakeBucket}
	if len(keys) > page {
		keys = keys[:page]
		out.IsTruncated, out.NextContinuationToken = true, keys[page-1]
	}
	for _, key := range keys {
		out.Contents = append(out.Contents, content{key, "2026-01-01T00:00:00.000Z", len(f.objects[key])})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}
