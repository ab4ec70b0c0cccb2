package estimate

import (
	"math"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

// Rarely moves the candidate's unfavourable end by the declared slowdown in blocks that were not observed. A slowdown of S multiplies a
// time by 1+S and divides a rate by 1+S. A mean changes by the share of these blocks; a percentile may lie in the slow blocks and changes
// by all of it. In a ratio the baseline may be the arm with unobserved slow blocks, so both ends move.
func (d *Data) Rarely(found Inference, metric *experiment.Metric, statistic experiment.Statistic, relative bool) Inference {
	slowdown := d.Exp.Plan.Design.RareSlowdown
	if slowdown == 0 || !found.HasInterval() || math.IsInf(found.Value, 0) {
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
	switch {
	case relative:
		return found.moved(shift, shift)
	case metric.Direction == experiment.LowerIsBetter:
		return found.moved(0, shift)
	default:
		return found.moved(shift, 0)
	}
}
