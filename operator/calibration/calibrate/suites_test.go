package calibrate

import (
	"path/filepath"
	"testing"
)

func TestSuiteCounts_AddUpOverCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "suites.json")
	for call := 1; call <= 2; call++ {
		counts, err := ReadSuiteCounts(path, "code")
		if err != nil {
			t.Fatal(err)
		}
		if err := counts.Simulate(2, 1); err != nil {
			t.Fatal(err)
		}
		if err := counts.Write(path); err != nil {
			t.Fatal(err)
		}
		figures := counts.Figures()
		if counts.Equal.Runs != 2*call || len(counts.Seeds) != call || len(figures) != 1 || figures[0].Samples != 2*call {
			t.Errorf("call %d: %+v, figures %+v", call, counts, figures)
		}
	}
	if other, err := ReadSuiteCounts(path, "other"); err != nil || other.Equal.Runs != 0 {
		t.Errorf("counts of other code: %+v, %v", other, err)
	}
}

// Few benchmarks with plain differences are decided in a suite as alone, in less time.
func TestSimulateMixedSuite_RightAndSooner(t *testing.T) {
	found, err := SimulateMixedSuite(SuiteMix{6, 0, 0, 2}, AloneBlocks, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if found.Ratios[0] < 1 || found.Shares[0] > 0.2 || found.False > 0 {
		t.Errorf("%+v", found)
	}
}
