package estimate_test

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/test/analyzed"
	"assay.dev/assay/operator/test/golden"
)

// TestEstimate_SituationsMatchGoldenFile compares the figures at one point of runs that were altered in one way each.
func TestEstimate_SituationsMatchGoldenFile(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	analyzed.EachSituation(t, func(name string, _ *analyzed.Run, got *analysis.Analysis) {
		fmt.Fprintf(&out, "# %s\n", name)
		for _, a := range got.Arms {
			if a.Point == fixture.Point8 {
				fmt.Fprintf(&out, "arm %s\n", analyzed.ShortJSON(t, a))
			}
		}
		for _, r := range got.Ratios {
			if r.PerBlock = nil; r.Point == fixture.Point8 {
				fmt.Fprintf(&out, "ratio %s\n", analyzed.ShortJSON(t, r))
			}
		}
		for _, p := range got.Phases {
			if p.Point == fixture.Point8 {
				fmt.Fprintf(&out, "phase %s\n", analyzed.ShortJSON(t, p))
			}
		}
		out.WriteString("\n")
	})
	golden.Check(t, "testdata/situations.golden.txt", out.String())
}
