package analysis

import (
	"fmt"
	"math"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// ratio is a candidate's quantity over the baseline's. Trials are compared only within their block: what a block does to
// both arms cancels.
func (d *data) ratio(point, candidate int, metric string, statistic assayv1alpha1.Statistic) inference {
	baseline := d.exp.Baseline()
	if baseline < 0 {
		return inference{reason: "the run has no baseline"}
	}
	key := comparison{quantity{cell{point, candidate}, metric, statistic}, baseline}
	if known, ok := d.comparisons[key]; ok {
		return known
	}
	mine := key.quantity
	theirs := quantity{cell{point, baseline}, metric, statistic}
	var out inference
	if p, ok := percentiles[statistic]; ok {
		out = d.percentileRatio(mine, theirs, p)
	} else {
		out = d.pairedRatio(mine, theirs)
	}
	d.comparisons[key] = out
	return out
}

func (d *data) pairedRatio(mine, theirs quantity) inference {
	a, b := d.perBlock(mine), d.perBlock(theirs)
	if !allPositive(a, b) {
		return inference{reason: fmt.Sprintf("%s has values that are not positive, and a ratio needs positive ones", mine.metric)}
	}
	logA, logB := blockMeans(a, true), blockMeans(b, true)
	differences, shown := map[string]float64{}, map[string]float64{}
	for block, value := range logA {
		if other, ok := logB[block]; ok {
			differences[block] = value - other
			shown[block] = round(math.Exp(value - other))
		}
	}
	out := studentInference(differences, d.confidence, true)
	out.perBlock = shown
	out.samples = d.samples(mine.cell, mine.metric) + d.samples(theirs.cell, theirs.metric)
	if out.blocks < minBlocks {
		out.reason = fmt.Sprintf("%d of at least %d blocks have trials of both arms", out.blocks, minBlocks)
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
		for _, candidate := range d.exp.Candidates() {
			// A wrong answer has no speed.
			if parity.refused(candidate) != "" {
				continue
			}
			arm := slices.IndexFunc(d.exp.Spec.Arms, func(a assayv1alpha1.Arm) bool { return a.Name == candidate })
			for i := range d.exp.Template.Metrics {
				metric := &d.exp.Template.Metrics[i]
				for _, statistic := range statistics(d.exp, metric) {
					result := d.ratio(point, arm, metric.Name, statistic)
					estimate := result.estimate("1")
					if estimate == nil || !d.enoughSamples(cell{point, arm}, metric.Name, statistic) || !d.enoughSamples(cell{point, baseline}, metric.Name, statistic) {
						continue
					}
					out = append(out, RatioResult{
						Point: d.exp.Points[point].Key, Candidate: candidate, Metric: metric.Name, Statistic: statistic,
						Estimate: *estimate, MinimumDetectableEffect: result.minimumDetectableEffect(d.confidence), PerBlock: result.perBlock,
					})
				}
			}
		}
	}
	return out
}
