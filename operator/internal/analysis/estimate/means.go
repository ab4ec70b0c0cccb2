package estimate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

// Counts such as allocations, page faults or requests may be 0 in some trials. A count of 0 has no logarithm, and one such trial must not
// invalidate all others. Then the estimate is the ratio of the arms' means with Fieller's interval (1954, Some problems in interval
// estimation, Journal of the Royal Statistical Society B 16:175): it contains a ratio c unless the mean over blocks of mine - c·theirs
// differs from 0, by the interval of a difference over blocks, nodes and builds.

// counted reports whether figures of 0 are counts. A time of 0 means that its clock is too coarse.
func (d *Data) counted(metric string) bool {
	of := d.Exp.Metric(metric)
	if of == nil {
		return false
	}
	is, rate := experiment.ByClock(of.Unit)
	return !is || rate
}

// ratioOfMeans compares counts of which some are 0.
func (d *Data) ratioOfMeans(mine, theirs Quantity, a, b map[string][]float64) Inference {
	if anyNegative(a, b) { // A mean of negative figures has no ratio that is better or worse.
		return Inference{NoRatio: true, Reason: noRatio(mine.Metric, a, b)}
	}
	over, both := BlockMeans(a, false), BlockMeans(b, false)
	maps.DeleteFunc(both, func(block string, _ float64) bool { _, ok := over[block]; return !ok })
	if len(both) < stats.MinBlocks {
		return Inference{Blocks: len(both), Reason: tooFewOfBoth(len(both))}
	}
	spreadA, spreadB := trialSpread(a, false), trialSpread(b, false)
	divisor := d.acrossBuilds(both, d.OverBlocks(both, spreadB, false, false, 0), theirs.Cell)
	bounded := func(confidence float64) bool {
		low, _ := divisor.Ends(confidence)
		return low > 0
	}
	if !divisor.HasInterval() || !bounded(d.GateConfidence) {
		return Inference{NoRatio: true, Reason: noRatio(mine.Metric, a, b)}
	}
	differences := func(ratio float64) map[string]float64 {
		out := map[string]float64{}
		for block, value := range both {
			out[block] = over[block] - ratio*value
		}
		return out
	}
	mean := stats.Mean(inOrder(both))
	center := stats.Mean(inOrder(differences(0))) / mean
	// The widening for blocks, nodes and builds is computed once, at a difference of 0. Computed at every ratio it would switch on and off.
	none := differences(center)
	out := d.acrossBuilds(none, d.OverBlocks(none, spreadA.plus(spreadB.times(center)), false, true, 0), mine.Cell, theirs.Cell)
	if !out.HasInterval() {
		return out
	}
	spread := func(values map[string]float64) float64 {
		list := inOrder(values)
		return math.Sqrt(stats.Squares(list, stats.Mean(list)))
	}
	whole := spread(none)
	// off returns the distance of the difference at a ratio from 0, in standard errors.
	off := func(ratio float64) float64 {
		distance := mean * (center - ratio)
		if at := spread(differences(ratio)); at > 0 && whole > 0 {
			distance *= whole / at
		}
		return distance
	}
	ends, tail := out.Ends, out.Tail
	out.Value, out.SE, out.down, out.up, out.perNode = center, out.SE/mean, out.down/mean, out.up/mean, nil
	out.Ends = func(confidence float64) (low, high float64) {
		if !bounded(confidence) {
			return 0, math.Inf(1)
		}
		below, above := ends(confidence)
		excluded := func(ratio float64) bool { return off(ratio)+below > 0 || off(ratio)+above < 0 }
		if excluded(0) {
			low = edge(center, 0, excluded)
		}
		far := max(1, 2*center)
		for range doublings {
			if excluded(far) {
				return low, edge(center, far, excluded)
			}
			far *= 2
		}
		return low, math.Inf(1)
	}
	out.Tail = func(bound float64) float64 { return tail(-off(bound)) }
	if _, high := out.Ends(d.GateConfidence); math.IsInf(high, 0) {
		return Inference{NoRatio: true, Reason: noRatio(mine.Metric, a, b)}
	}
	zeros, all := notPositive(a, b)
	out.Note = fmt.Sprintf("%s is 0 in %d of %d trials, so this is the ratio of the means over blocks (Fieller 1954)", mine.Metric, zeros,
		all)
	return out.At(d.Confidence)
}

func anyNegative(groups ...map[string][]float64) bool {
	for _, group := range groups {
		for _, values := range group {
			if slices.Min(values) < 0 {
				return true
			}
		}
	}
	return false
}

// doublings bounds the search for an end of the interval. Beyond it, ratios have no meaning.
const doublings = 100

// edge returns the boundary between a ratio that is not excluded and one that is, on the excluded side.
func edge(inside, outside float64, excluded func(float64) bool) float64 {
	for math.Abs(outside-inside) > 1e-12*max(1, math.Abs(outside)) {
		middle := inside + (outside-inside)/2
		if middle == inside || middle == outside {
			break
		}
		if excluded(middle) {
			outside = middle
		} else {
			inside = middle
		}
	}
	return outside
}
