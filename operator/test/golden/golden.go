// Package golden compares the output of a test with a golden file, which reviewers read when it changes.
package golden

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update rewrites the golden files.
var Update = flag.Bool("update", false, "write the golden files anew")

// Check compares an output with a golden file, relative to the test's package.
func Check(t *testing.T, path, got string) {
	t.Helper()
	if *Update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run this package's tests with -update and read the diff (-want +got):\n%s", path, diff)
	}
}
