package judge_test

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/test/analyzed"
	"assay.dev/assay/operator/test/golden"
)

// TestJudge_SituationsMatchGoldenFile compares all decisions about runs that were altered in one way each.
func TestJudge_SituationsMatchGoldenFile(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	analyzed.EachSituation(t, func(name string, _ *analyzed.Run, got *analysis.Analysis) {
		fmt.Fprintf(&out, "# %s\n%s, screened %q, best %s %v, %d valid blocks, %d confirming, half width %s\n", name, got.Verdict, got.Screened,
			got.Best, got.BestOf, got.ValidBlocks, got.ConfirmBlocks, analyzed.ShortJSON(t, got.RelativeHalfWidth))
		for _, c := range got.Candidates {
			fmt.Fprintf(&out, "candidate %s: %s, %s\n", c.Name, c.Verdict, c.Reason)
		}
		for _, g := range got.Gates {
			fmt.Fprintf(&out, "gate %s\n", analyzed.ShortJSON(t, g))
		}
		for _, g := range got.Screening {
			fmt.Fprintf(&out, "screening %s\n", analyzed.ShortJSON(t, g))
		}
		for _, c := range got.Controls {
			fmt.Fprintf(&out, "control %s\n", analyzed.ShortJSON(t, c))
		}
		for _, d := range got.Doubts {
			fmt.Fprintf(&out, "doubt %s\n", analyzed.ShortJSON(t, d))
		}
		for _, p := range got.Predicted {
			fmt.Fprintf(&out, "predicted %s\n", analyzed.ShortJSON(t, p))
		}
		out.WriteString("\n")
	})
	golden.Check(t, "testdata/situations.golden.txt", out.String())
}
