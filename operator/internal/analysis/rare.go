package analysis

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// What happens in few blocks may happen in none of those that ran, and then nothing in them tells that it ever does. A design
// that declares how slow such a block may be (spec.design.rareSlowdown) has its gates hold also if such blocks are as frequent
// as those that ran cannot exclude. Without it the analysis says what it cannot have seen.

// unseenShare is the highest share of blocks that something may happen in and still, as often as level says, in none of n: the
// exact form of the rule of three (Hanley and Lippman-Hand 1983, JAMA 249:1743).
func unseenShare(n int, level float64) float64 { return 1 - math.Pow(level, 1/float64(n)) }

// rarely moves the candidate's bad end by what the declared slowdown can do in blocks that were not seen. A slowdown of S makes
// a time 1+S times as long and a rate 1+S times as low. A mean takes the share of blocks of it; a percentile may lie in the
// slow blocks altogether and takes all of it.
func (d *data) rarely(found inference, metric *experiment.Metric, statistic experiment.Statistic) inference {
	slowdown := d.exp.Plan.Design.RareSlowdown
	if slowdown == 0 || !found.hasInterval() {
		return found
	}
	share := unseenShare(found.blocks, 1-d.gateConfidence)
	if experiment.Percentiles[statistic] != 0 || statistic == experiment.StatisticMax {
		share = 1
	}
	shift := share * math.Log1p(slowdown)
	if !found.logarithmic {
		shift = share * slowdown * math.Abs(found.value)
	}
	if metric.Direction == experiment.LowerIsBetter {
		return found.moved(0, shift)
	}
	return found.moved(shift, 0)
}

// unseen describes what so many blocks cannot have seen.
func (d *data) unseen(blocks int) string {
	if blocks == 0 {
		return ""
	}
	const rare, slowdown, level = 0.05, 0.2, 0.05
	share := unseenShare(blocks, level)
	text := fmt.Sprintf("%d blocks cannot show what happens in fewer than one block in %d", blocks, blocks)
	percent := func(share float64) string { return quantity.Percent(share, 2) }
	text += fmt.Sprintf(": what happens in %s of the blocks is in none of them in %s of runs, and what happens in %s still in %s; blocks %s "+
		"slower that often make a mean %s and %s slower", percent(rare), percent(math.Pow(1-rare, float64(blocks))), percent(share),
		percent(level), percent(slowdown), percent(math.Expm1(rare*math.Log1p(slowdown))), percent(math.Expm1(share*math.Log1p(slowdown))))
	if declared := d.exp.Plan.Design.RareSlowdown; declared > 0 {
		return text + fmt.Sprintf("; gates allow for blocks %s%% slower (spec.design.rareSlowdown)", quantity.InPercent(declared))
	}
	return text + "; gates do not allow for it (spec.design.rareSlowdown)"
}
