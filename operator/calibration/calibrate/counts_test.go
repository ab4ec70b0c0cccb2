package calibrate

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"assay.dev/assay/operator/internal/fixture"
)

func TestCounts_AddUpOverSeeds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "counts.json")
	quiet := fixture.Scenarios()[0]
	for seed := uint64(1); seed <= 3; seed++ {
		counts, err := ReadCounts(path, "code")
		if err != nil {
			t.Fatal(err)
		}
		if next := counts.NextSeed(); next != seed {
			t.Fatalf("the next seed is %d, want %d", next, seed)
		}
		counts.Add("machine", seed, []Tally{{Scenario: quiet, Runs: 10, FalseGo: 1}, {Scenario: quiet, Effect: 0.02, Runs: 10, Right: 9}})
		if err := counts.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := ReadCounts(path, "code")
	if err != nil {
		t.Fatal(err)
	}
	sums := counts.Tallies()
	if len(sums) != 2 || sums[0].Runs != 30 || sums[0].FalseGo != 3 || sums[1].Right != 27 || sums[1].Effect != 0.02 ||
		sums[0].Scenario.Name != quiet.Name || !reflect.DeepEqual(counts.Rows[0].Seeds, []uint64{1, 2, 3}) || len(counts.Machines) != 1 {
		t.Errorf("sums %+v of %+v", sums, counts)
	}
	if other, err := ReadCounts(path, "other code"); err != nil || len(other.Rows) != 0 {
		t.Errorf("counts of other code: %+v, %v", other, err)
	}
}

func TestCodeDigest_ChangesWithSourcesAndNotWithTestsOrComments(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, folder := range judgingCode {
		if err := os.MkdirAll(filepath.Join(root, "operator", folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(name, source string) string {
		if err := os.WriteFile(filepath.Join(root, "operator/internal/analysis", name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := CodeDigest(root)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := digest("a.go", "package a")
	if got := digest("a_test.go", "package a"); got != first {
		t.Error("a test changes the digest")
	}
	if got := digest("a.go", "// Package a is commented.\n\n\npackage a // Here too."); got != first {
		t.Error("a comment changes the digest")
	}
	if got := digest("a.go", "package b"); got == first {
		t.Error("a source does not change the digest")
	}
}
