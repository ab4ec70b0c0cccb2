package analysis

import (
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
)

// ratio is a candidate's quantity over the baseline's. Trials are compared only within their block: what a block does to
// both arms cancels.
func (d *data) ratio(point, candidate int, metric string, statistic experiment.Statistic) inference {
	baseline := d.exp.Baseline()
	if baseline < 0 {
		return inference{reason: "the run has no baseline"}
	}
	key := comparison{quantityOf{cell{point, candidate}, metric, statistic}, baseline}
	if known, ok := d.comparisons[key]; ok {
		return known
	}
	mine := key.quantityOf
	theirs := quantityOf{cell{point, baseline}, metric, statistic}
	out := d.compare(mine, theirs)
	d.comparisons[key] = out
	return out
}

// compare is one quantity over another at the same point.
func (d *data) compare(mine, theirs quantityOf) inference {
	if share, ok := experiment.Percentiles[mine.statistic]; ok {
		return d.onClock(d.percentileRatio(mine, theirs, share), mine, theirs)
	}
	return d.onClock(d.pairedRatio(mine, theirs), mine, theirs)
}

func (d *data) pairedRatio(mine, theirs quantityOf) inference {
	a, b := d.perBlock(mine), d.perBlock(theirs)
	if !allPositive(a, b) {
		return inference{reason: noRatio(mine.metric, a, b)}
	}
	differences, shown := blockDifferences(a, b, true), map[string]float64{}
	for block, difference := range differences {
		shown[block] = round(math.Exp(difference))
	}
	out := d.overBlocks(differences, trialSpread(a, true).plus(trialSpread(b, true)), true, true)
	out = d.acrossBuilds(differences, out, mine.cell, theirs.cell)
	out.perBlock = shown
	out.samples = d.samples(mine.cell, mine.metric) + d.samples(theirs.cell, theirs.metric)
	switch {
	case len(a) == 0:
		out.reason = d.without(mine)
	case len(b) == 0:
		out.reason = d.without(theirs)
	case out.blocks < minBlocks:
		out.reason = fmt.Sprintf("%d of at least %d blocks have trials of both arms", out.blocks, minBlocks)
	}
	return out
}

// pairedDifference is how far two series of blocks are apart within blocks, with Student's interval: of logarithms, or of the values.
func pairedDifference(mine, theirs map[string][]float64, confidence float64, logarithmic bool) inference {
	return studentInference(blockDifferences(mine, theirs, logarithmic), confidence, false)
}

// blockDifferences are the differences of two arms' block means, for the blocks that have both.
func blockDifferences(mine, theirs map[string][]float64, logarithmic bool) map[string]float64 {
	a, b := blockMeans(mine, logarithmic), blockMeans(theirs, logarithmic)
	out := map[string]float64{}
	for block, value := range a {
		if other, ok := b[block]; ok {
			out[block] = value - other
		}
	}
	return out
}

// compared are the arms set beside the baseline: the candidates, and the null arm, which shows what no change at all looks
// like.
func compared(exp *experiment.Experiment) []string {
	out := exp.Candidates()
	for _, arm := range exp.Arms {
		if arm.Null && !slices.Contains(out, arm.Name) {
			out = append(out, arm.Name)
		}
	}
	return out
}

func ratioResults(d *data, parity *parityReport) []RatioResult {
	out := []RatioResult{}
	baseline := d.exp.Baseline()
	if baseline < 0 {
		return out
	}
	for point := range d.exp.Points {
		for _, candidate := range compared(d.exp) {
			// A wrong answer has no speed.
			if parity.refused(candidate) != "" {
				continue
			}
			arm := armIndex(d.exp, candidate)
			for _, metric := range d.exp.Metrics() {
				for _, statistic := range statistics(d.exp, metric) {
					result := d.ratio(point, arm, metric.Name, statistic)
					estimate := result.ratio()
					if estimate == nil || !d.enoughSamples(cell{point, arm}, metric.Name, statistic) ||
						!d.enoughSamples(cell{point, baseline}, metric.Name, statistic) {
						continue
					}
					out = append(out, RatioResult{
						Point: d.exp.Points[point].Key, Candidate: candidate, Metric: metric.Name, Statistic: statistic,
						Estimate: *estimate, MinimumDetectableEffect: result.minimumDetectableEffect(d.confidence),
						PerBlock: result.perBlock, PerNode: result.perNode, NodesDiffer: result.nodesDiffer, Builds: result.builds,
						Series: result.series, Resolution: result.resolution,
					})
				}
			}
		}
	}
	return out
}
