package explain

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/quantity"
)

// Unseen describes what so many blocks cannot have seen.
func Unseen(d *estimate.Data, blocks int) string {
	if blocks == 0 {
		return ""
	}
	const rare, slowdown, level = 0.05, 0.2, 0.05
	share := stats.UnseenShare(blocks, level)
	text := fmt.Sprintf("%d blocks cannot show what happens in fewer than one block in %d", blocks, blocks)
	percent := func(share float64) string { return quantity.Percent(share, 2) }
	text += fmt.Sprintf(": what happens in %s of the blocks is in none of them in %s of runs, and what happens in %s still in %s; blocks %s "+
		"slower that often make a mean %s and %s slower", percent(rare), percent(math.Pow(1-rare, float64(blocks))), percent(share),
		percent(level), percent(slowdown), percent(math.Expm1(rare*math.Log1p(slowdown))), percent(math.Expm1(share*math.Log1p(slowdown))))
	if declared := d.Exp.Plan.Design.RareSlowdown; declared > 0 {
		return text + fmt.Sprintf("; gates allow for blocks %s%% slower (spec.design.rareSlowdown)", quantity.InPercent(declared))
	}
	return text + "; gates do not allow for it (spec.design.rareSlowdown)"
}
