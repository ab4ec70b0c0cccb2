package estimate

import (
	"fmt"
	"maps"
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

// Ratio returns a candidate's quantity over the baseline's. Trials are compared only within their block, so that effects of the block on
// both arms cancel.
func (d *Data) Ratio(point, candidate int, metric string, statistic experiment.Statistic) Inference {
	baseline := d.Exp.Baseline()
	if baseline < 0 {
		return Inference{Reason: "the run has no baseline"}
	}
	mine := Quantity{selection.At(point, candidate), metric, statistic}
	if known, ok := d.ratios[mine]; ok {
		return known
	}
	out := d.Compare(mine, Quantity{selection.At(point, baseline), metric, statistic})
	d.ratios[mine] = out
	return out
}

// Compare is one quantity over another at the same point.
func (d *Data) Compare(mine, theirs Quantity) Inference {
	if why := d.Chosen.Reports.Differ(d.Exp, mine.Point, mine.Arm, theirs.Arm, mine.Metric); why != "" {
		return Inference{Reason: why}
	}
	if found, ok := d.ofZeros(mine, theirs); ok {
		return found
	}
	if share, ok := experiment.Percentiles[mine.Statistic]; ok {
		return d.onClock(d.percentileRatio(mine, theirs, share), mine, theirs)
	}
	return d.onClock(d.pairedRatio(mine, theirs), mine, theirs)
}

func (d *Data) pairedRatio(mine, theirs Quantity) Inference {
	a, b := d.PerBlock(mine), d.PerBlock(theirs)
	if len(a) > 0 && len(b) > 0 && !AllPositive(a, b) && d.counted(mine.Metric) {
		out := d.ratioOfMeans(mine, theirs, a, b)
		out.samples = d.samples(mine.Cell, mine.Metric) + d.samples(theirs.Cell, theirs.Metric)
		return out
	}
	if !AllPositive(a, b) {
		return Inference{NoRatio: true, Reason: noRatio(mine.Metric, a, b)}
	}
	out, differences := d.paired(mine.Cell, theirs.Cell, a, b, true)
	out.perBlock = map[string]float64{}
	for block, difference := range differences {
		out.perBlock[block] = stats.Round(math.Exp(difference))
	}
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

// paired is the mean difference of two cells inside blocks, and the differences without the effect of the place.
func (d *Data) paired(mine, theirs selection.Cell, a, b map[string][]float64, logarithmic bool) (Inference, map[string]float64) {
	differences, terms := d.withoutPlace(blockDifferences(a, b, logarithmic), mine, theirs)
	out := d.OverBlocks(differences, trialSpread(a, logarithmic).plus(trialSpread(b, logarithmic)), logarithmic, true, terms)
	out.terms = terms
	return d.acrossBuilds(differences, out, mine, theirs), differences
}

func tooFewOfBoth(blocks int) string {
	return fmt.Sprintf("%d of at least %d blocks have trials of both arms", blocks, stats.MinBlocks)
}

// PairedDifference returns the mean difference of two series within blocks, with Student's interval, of logarithms or of the values.
func PairedDifference(mine, theirs map[string][]float64, confidence float64, logarithmic bool) Inference {
	return studentInference(blockDifferences(mine, theirs, logarithmic), confidence, false)
}

// blockDifferences are the differences of two arms' block means, for the blocks that have both.
func blockDifferences(mine, theirs map[string][]float64, logarithmic bool) map[string]float64 {
	a, b := BlockMeans(mine, logarithmic), BlockMeans(theirs, logarithmic)
	out := map[string]float64{}
	for block, value := range a {
		if other, ok := b[block]; ok {
			out[block] = value - other
		}
	}
	return out
}

// Ratios compares every metric of every candidate and of the null arm with the baseline at every point.
func Ratios(d *Data, parity *selection.Parity) []analysis.RatioResult {
	out := []analysis.RatioResult{}
	baseline := d.Exp.Baseline()
	if baseline < 0 {
		return out
	}
	for point := range d.Exp.Points {
		for _, candidate := range d.Exp.Compared() {
			// The speed of a wrong result has no meaning.
			if parity.Refused(candidate) != "" {
				continue
			}
			arm := selection.ArmIndex(d.Exp, candidate)
			for _, metric := range d.Exp.Metrics() {
				for _, statistic := range d.Exp.Statistics(metric) {
					result := d.Ratio(point, arm, metric.Name, statistic)
					estimate := result.Ratio()
					if estimate == nil || !d.EnoughSamples(selection.At(point, arm), metric.Name, statistic) ||
						!d.EnoughSamples(selection.At(point, baseline), metric.Name, statistic) {
						continue
					}
					out = append(out, analysis.RatioResult{
						Point: d.Exp.Points[point].Key, Candidate: candidate, Metric: metric.Name, Statistic: statistic,
						Estimate: *estimate, MinimumDetectableEffect: result.MinimumDetectableEffect(d.Confidence),
						Terms: result.terms, PerBlock: result.perBlock, PerNode: result.perNode, NodesDiffer: result.NodesDiffer, Builds: result.Builds,
						WithRejected: d.blocksOf(d.Everything, point, arm, metric.Name, statistic),
						Everywhere:   d.blocksOf(d.Everywhere, point, arm, metric.Name, statistic),
						Series:       result.Series, Resolution: result.Resolution,
					})
				}
			}
		}
	}
	return out
}

// blocksOf returns the ratios by block with more trials; nil if they are unchanged.
func (d *Data) blocksOf(more *Data, point, arm int, metric string, statistic experiment.Statistic) map[string]float64 {
	if more == nil || experiment.Percentiles[statistic] != 0 {
		return nil
	}
	out := more.Ratio(point, arm, metric, statistic).perBlock
	if maps.Equal(out, d.Ratio(point, arm, metric, statistic).perBlock) {
		return nil
	}
	return out
}

// PhaseRatio is a phase's mean time of an arm over the baseline's, paired within blocks.
func (d *Data) PhaseRatio(point, arm int, phase string) Inference {
	of := func(arm int) map[string][]float64 {
		blocks := map[string][]float64{}
		for _, attempt := range d.Trials[selection.At(point, arm)] {
			if times := phaseTimes(attempt, phase); len(times) > 0 {
				blocks[attempt.Block] = append(blocks[attempt.Block], times...)
			}
		}
		return blocks
	}
	mine, theirs := of(arm), of(d.Exp.Baseline())
	if len(mine) == 0 || len(theirs) == 0 {
		return Inference{Reason: fmt.Sprintf("no trial of both arms reports a phase %q", phase)}
	}
	if !AllPositive(mine, theirs) {
		return Inference{Reason: fmt.Sprintf("phase %q has times that are not positive, and a ratio needs positive ones", phase)}
	}
	differences := blockDifferences(mine, theirs, true)
	found := studentInference(differences, d.Confidence, true)
	found = d.acrossBuilds(differences, found, selection.At(point, arm), selection.At(point, d.Exp.Baseline()))
	found = d.onClock(found, ofPhase(selection.At(point, arm), phase), ofPhase(selection.At(point, d.Exp.Baseline()), phase))
	if !found.HasInterval() {
		found.Reason += " with the phase in both arms"
	}
	return found
}
