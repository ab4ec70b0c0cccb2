package estimate

import (
	"math"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

// Rarely moves the candidate's bad end by what the declared slowdown can do in blocks that were not seen. A slowdown of S makes
// a time 1+S times as long and a rate 1+S times as low. A mean takes the share of blocks of it; a percentile may lie in the
// slow blocks altogether and takes all of it.
func (d *Data) Rarely(found Inference, metric *experiment.Metric, statistic experiment.Statistic) Inference {
	slowdown := d.Exp.Plan.Design.RareSlowdown
	if slowdown == 0 || !found.HasInterval() {
		return found
	}
	share := stats.UnseenShare(found.Blocks, 1-d.GateConfidence)
	if experiment.Percentiles[statistic] != 0 || statistic == experiment.StatisticMax {
		share = 1
	}
	shift := share * math.Log1p(slowdown)
	if !found.logarithmic {
		shift = share * slowdown * math.Abs(found.Value)
	}
	if metric.Direction == experiment.LowerIsBetter {
		return found.moved(0, shift)
	}
	return found.moved(shift, 0)
}
