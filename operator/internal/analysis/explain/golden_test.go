package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/test/analyzed"
	"assay.dev/assay/operator/test/golden"
)

// TestExplain_SituationsMatchGoldenFile compares all explanations of runs that deserve one.
func TestExplain_SituationsMatchGoldenFile(t *testing.T) {
	var out strings.Builder
	analyzed.EachSituation(t, func(name string, run *analyzed.Run, got *analysis.Analysis) {
		fmt.Fprintf(&out, "# %s\n%s\n", name, got.Layout)
		for _, warning := range got.Warnings {
			fmt.Fprintf(&out, "* %s\n", warning)
		}
		for _, note := range got.Notes {
			fmt.Fprintf(&out, "* note: %s\n", note)
		}
		fmt.Fprintf(&out, "unrun %v, cut %d, %d confirming, lost %d, %d confirming\n", got.Unrun, got.CutBlocks, got.ConfirmCutBlocks,
			got.LostBlocks, got.ConfirmLostBlocks)
		for _, p := range explain.Precisions(run.Exp, got.Gates) {
			fmt.Fprintf(&out, "%s of %s at %s: %d blocks, half width %s, %s needed\n", p.Gate, p.Candidate, p.Point, p.Blocks,
				rounded(p.HalfWidth), number(p.Needed))
		}
		fmt.Fprintf(&out, "expected %s\n%s\n\n", explain.ExpectedText(run.Exp, got), analyzed.ShortJSON(t, got.Usage))
	})
	golden.Check(t, "testdata/situations.golden.txt", out.String())
}

func rounded(value *float64) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *value)
}

func number(value *int) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}
