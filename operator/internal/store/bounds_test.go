package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/storetest"
)

// An object larger than its reader expects is an error in every kind of store. A truncated read would be taken for the whole object.
func TestGetAtMost_OversizedObjectIsNamed(t *testing.T) {
	const key, size = "runs/lab/scan/1/confirm.json", 4096
	large := bytes.Repeat([]byte("x"), size)
	of := func(url string) Store {
		t.Helper()
		store, err := Open(t.Context(), url, fakeOptions)
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	folder := of(FolderURL(t.TempDir()))
	fake, endpoint := storetest.StartS3(t)
	streams, streamed := storetest.StartS3(t)
	streams.Streams = true
	for _, err := range []error{
		folder.Create(t.Context(), key, large), of(storetest.URL(endpoint, storetest.Bucket, "")).Create(t.Context(), key, large),
		of(storetest.URL(streamed, storetest.Bucket, "")).Create(t.Context(), key, large),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if fake.Objects[key] == nil {
		t.Fatal("the fake does not contain it")
	}
	for name, store := range map[string]Store{
		"in a folder":                        folder,
		"in an archive":                      of(storetest.ArchiveFile(t, tarred(t, file(key, string(large))))),
		"in a bucket":                        of(storetest.URL(endpoint, storetest.Bucket, "")),
		"in a bucket without Content-Length": of(storetest.URL(streamed, storetest.Bucket, "")),
	} {
		t.Run(name, func(t *testing.T) {
			if raw, err := GetAtMost(t.Context(), store, key, size); err != nil || len(raw) != size {
				t.Errorf("reading %d bytes at the limit: %v", len(raw), err)
			}
			raw, err := GetAtMost(t.Context(), store, key, size-1)
			if !errors.Is(err, ErrTooLarge) {
				t.Fatalf("%d bytes are read, %v", len(raw), err)
			}
			for _, part := range []string{key, "at most 4095 are read", "remove it"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
		})
	}
}

// endless is a store with an infinite listing.
type endless struct{ Store }

func (endless) Page(_ context.Context, prefix, after string) (keys []string, more bool, err error) {
	from := 0
	_, _ = fmt.Sscanf(strings.TrimPrefix(after, prefix), "%d", &from)
	for i := range maxPage {
		keys = append(keys, fmt.Sprintf("%s%09d", prefix, from+i+1))
	}
	return keys, true, nil
}

func (endless) URL() string { return "s3://assay" }

// Anyone with write access to a ledger may write more names than fit into memory.
func TestListAfter_TooManyNamesAreAnError(t *testing.T) {
	keys, err := ListAfter(t.Context(), endless{}, "problems/", "")
	if !errors.Is(err, ErrTooLarge) || len(keys) > 0 {
		t.Fatalf("%d names, %v", len(keys), err)
	}
	for _, part := range []string{"problems/", "s3://assay", fmt.Sprint(maxKeys), "remove"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}
