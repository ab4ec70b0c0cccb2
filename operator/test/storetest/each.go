package storetest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// RealStore is the environment variable that names the bucket of a real object store, with credentials in the environment. The conformance
// suite then runs on it as well: ASSAY_TEST_S3='s3://bucket?endpoint=http://127.0.0.1:9000' go test ./internal/store ./internal/ledger.
const RealStore = "ASSAY_TEST_S3"

// URL returns the ledger URL of a prefix in a bucket at an endpoint.
func URL(endpoint, bucket, prefix string) string {
	return "s3://" + bucket + "/" + prefix + "?endpoint=" + url.QueryEscape(endpoint) + "&region=eu-central-1"
}

// Each runs a test on an empty store of each kind. The test opens the store at the URL with credentials from the environment.
func Each(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) { test(t, "file://"+t.TempDir()) })
	t.Run("s3", func(t *testing.T) {
		_, endpoint := StartS3(t)
		t.Setenv("AWS_ACCESS_KEY_ID", AccessKey)
		t.Setenv("AWS_SECRET_ACCESS_KEY", SecretKey)
		test(t, URL(endpoint, Bucket, "some/prefix"))
	})
	if bucket := os.Getenv(RealStore); bucket != "" {
		t.Run("real s3", func(t *testing.T) {
			address, query, _ := strings.Cut(bucket, "?")
			test(t, fmt.Sprintf("%s/test/%d?%s", strings.TrimSuffix(address, "/"), time.Now().UnixNano(), query))
		})
	}
}

// ArchiveFile writes an archive to a file and returns its URL.
func ArchiveFile(t *testing.T, raw []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.tar.zst")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}
