package estimate

import (
	"cmp"
	"fmt"
	"maps"
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

// A difference is the candidate's quantity minus the baseline's in the unit of the metric. It needs no logarithm, so that counts of 0 have
// one, and its model is that of a ratio on the plain scale: trials are paired within blocks, and the interval is over blocks, nodes and
// builds. The spread of plain values grows with their level, so that a difference of times is less precise than their ratio.

// Difference returns a candidate's quantity minus the baseline's.
func (d *Data) Difference(point, candidate int, metric string, statistic experiment.Statistic) Inference {
	baseline := d.Exp.Baseline()
	if baseline < 0 {
		return Inference{Reason: "the run has no baseline"}
	}
	mine := Quantity{selection.At(point, candidate), metric, statistic}
	theirs := Quantity{selection.At(point, baseline), metric, statistic}
	if why := d.Chosen.Reports.Differ(d.Exp, point, candidate, baseline, metric); why != "" {
		return Inference{Reason: why}
	}
	if share, ok := experiment.Percentiles[statistic]; ok {
		return d.differenceOnClock(d.percentileDifference(mine, theirs, share), mine, theirs)
	}
	return d.differenceOnClock(d.pairedDifference(mine, theirs), mine, theirs)
}

func (d *Data) pairedDifference(mine, theirs Quantity) Inference {
	a, b := d.PerBlock(mine), d.PerBlock(theirs)
	out, _ := d.paired(mine.Cell, theirs.Cell, a, b, false)
	out.samples = d.samples(mine.Cell, mine.Metric) + d.samples(theirs.Cell, theirs.Metric)
	switch {
	case len(a) == 0:
		out.Reason = d.without(mine)
	case len(b) == 0:
		out.Reason = d.without(theirs)
	case out.Blocks < stats.MinBlocks:
		out.Reason = tooFewOfBoth(out.Blocks)
	}
	return out
}

func (d *Data) percentileDifference(mine, theirs Quantity, share float64) Inference {
	shared, other := d.blocksWith(mine.Cell, mine.Metric), d.blocksWith(theirs.Cell, theirs.Metric)
	maps.DeleteFunc(shared, func(block string, _ bool) bool { return !other[block] })
	blocks := number(maps.Keys(shared))
	if len(blocks) == 0 {
		return Inference{Reason: "no block has trials of both arms"}
	}
	var ofMine, ofTheirs *pool // Of all blocks, which are evaluated first.
	found := d.percentileAcrossNodes(mine.Statistic, blocks, true, func(blocks map[string]int, least int) Inference {
		a, b := d.newPool(mine, blocks), d.newPool(theirs, blocks)
		ofMine, ofTheirs = cmp.Or(ofMine, a), cmp.Or(ofTheirs, b)
		out := Inference{Blocks: len(blocks), samples: a.size() + b.size()}
		if min(a.size(), b.size()) < least {
			out.Reason = fmt.Sprintf("%s needs at least %d samples of each arm and there are %d and %d", mine.Statistic, least, a.size(), b.size())
			out.Value = math.NaN() // Absent, and not zero.
			return out
		}
		return d.bootstrap(mine, out, least, d.drawn(blocks, mine.Cell, theirs.Cell), func(weights []int64) float64 {
			return a.percentile(share, weights) - b.percentile(share, weights)
		})
	})
	return d.acrossGaps(found, share, mine, ofMine, compared{theirs, ofTheirs})
}

// differenceOnClock widens a difference by the steps of its clocks. Readings of a shared clock err in one direction, so that their
// difference is wrong by one step at most; those of separate clocks add up.
func (d *Data) differenceOnClock(found Inference, mine, theirs Quantity) Inference {
	if !found.HasInterval() {
		return found
	}
	_, rate := experiment.ByClock(d.unitOf(mine.Metric))
	low, high := found.Ends(d.GateConfidence)
	var together, apart float64
	var out analysis.Resolution
	for _, q := range []Quantity{mine, theirs} {
		read := d.readBy(q)
		switch {
		case read.silent:
			found.Reason = fmt.Sprintf("every reading of %s is 0, so its clock is too coarse for it", q.Metric)
			return found
		case read.step == 0 || math.IsInf(read.step/read.near, 0):
			continue
		}
		step := read.step
		if rate { // The step is that of the time in its denominator.
			step *= math.Abs(d.Level(q).Value) / read.near
		}
		if read.bucket && step < negligible*(high-low)/2 {
			continue
		}
		if step > out.Step {
			out.Step, out.Relative, out.Assumed = stats.Round(step), stats.Round(read.step/read.near), read.assumed
		}
		switch {
		case read.left == 0:
		case read.together:
			together = max(together, step*read.left)
		default:
			apart += step
		}
	}
	if out.Step == 0 {
		return found
	}
	out.Widened = together+apart > 0
	found.Resolution = &out
	if !out.Widened {
		return found
	}
	return found.moved(together+apart, together+apart).At(d.Confidence)
}

// RarelyDifferent is Rarely for a difference: the declared slowdown changes the candidate's level and not the difference.
func (d *Data) RarelyDifferent(found Inference, mine Quantity) Inference {
	slowdown := d.Exp.Plan.Design.RareSlowdown
	if slowdown == 0 || !found.HasInterval() {
		return found
	}
	share := stats.UnseenShare(found.Blocks, 1-d.GateConfidence)
	if experiment.Percentiles[mine.Statistic] != 0 || mine.Statistic == experiment.StatisticMax {
		share = 1
	}
	shift := share * slowdown * math.Abs(d.Level(mine).Value)
	return found.moved(shift, shift) // Either arm may have unobserved slow blocks.
}
