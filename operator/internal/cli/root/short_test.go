package root

import (
	"slices"
	"testing"
)

// longForm skips a test, or a case of a table, in short form. The skipped cases start hundreds of processes of the simulated runner.
// A table retains the named cases in short form.
func longForm(t *testing.T, name string, short ...string) {
	t.Helper()
	if testing.Short() && !slices.Contains(short, name) {
		t.Skip("starts many simulated runs: make nightly runs it")
	}
}
