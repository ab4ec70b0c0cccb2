package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// studentInference is the mean of one number per block, with Student's interval.
//
// Why Student and not a bootstrap, a trimmed mean or ranks: docs/decisions/0010 has the comparison, and "calibrate
// estimators" prints it again. Student's interval is exact for normal blocks and errs on the careful side for heavy tails and
// outliers. Its weakness is skewness, and the logarithm of a ratio of two arms that differ only by a factor is symmetric
// whatever the noise is, because exchanging the arms of a block changes its sign.
func studentInference(byBlock map[string]float64, confidence float64, logarithmic bool) inference {
	out := inference{logarithmic: logarithmic, blocks: len(byBlock)}
	if out.blocks == 0 {
		out.reason = "no block has a value"
		return out
	}
	values := inOrder(byBlock)
	center := mean(values)
	out.value = out.unscale(center)
	if n := float64(out.blocks); n > 1 {
		out.se, out.df = math.Sqrt(squares(values, center)/(n-1)/n), n-1
	}
	if out.blocks < minBlocks {
		out.reason = fmt.Sprintf("%d of at least %d blocks", out.blocks, minBlocks)
		return out
	}
	out.student(center)
	return out.at(confidence)
}

// student gives the inference Student's interval around a centre on the working scale.
func (i *inference) student(center float64) {
	se, df := i.se, i.df
	i.ends = func(confidence float64) (low, high float64) {
		half := studentQuantile((1+confidence)/2, df) * se
		return center - half, center + half
	}
	scale := i.scale
	i.tail = func(bound float64) float64 { return distanceTail(math.Abs(scale(bound)-center), se, df) }
}

// distanceTail is the p-value of a distance from the estimate.
func distanceTail(distance, se, df float64) float64 {
	switch {
	case se > 0:
		return studentTail(distance/se, df)
	case distance > 0:
		return 0
	default:
		return 0.5
	}
}

// inOrder are the values of the blocks in the order of their names, so that sums are the same every time.
func inOrder(byBlock map[string]float64) []float64 {
	values := make([]float64, 0, len(byBlock))
	for _, block := range inOrderOf(byBlock) {
		values = append(values, byBlock[block])
	}
	return values
}

// inOrderOf are the names of the blocks, sorted.
func inOrderOf[T any](byBlock map[string]T) []string {
	return slices.SortedFunc(maps.Keys(byBlock), record.CompareNames)
}

func squares(values []float64, center float64) float64 {
	var sum float64
	for _, value := range values {
		sum += (value - center) * (value - center)
	}
	return sum
}

// level is a quantity of one arm: its arithmetic mean over blocks, each block being the arithmetic mean of its trials, with
// Student's interval on the plain scale. A bound on a mean is one on what was spent, which a geometric mean understates.
func (d *data) level(q quantityOf) inference {
	if known, ok := d.levels[q]; ok {
		return known
	}
	var out inference
	if p, ok := experiment.Percentiles[q.statistic]; ok {
		out = d.percentileLevel(q, p)
	} else {
		blocks := d.perBlock(q)
		out = d.overBlocks(blockMeans(blocks, false), trialSpread(blocks, false), false, false)
		out = d.acrossBuilds(blockMeans(blocks, false), out, q.cell)
		if len(blocks) == 0 {
			out.reason = d.without(q)
		}
		out.samples = d.samples(q.cell, q.metric)
	}
	out = d.onClock(out, q)
	d.levels[q] = out
	return out
}

// overBlocks is the mean of one number per block with the interval that blocks allow: over nodes where these differ, and wider
// where the blocks depend on each other or are skewed. Paired numbers are differences of arms inside a block.
func (d *data) overBlocks(values map[string]float64, within spread, logarithmic, paired bool) inference {
	found := studentInference(values, d.confidence, logarithmic)
	found = d.acrossNodes(found, slices.SortedFunc(maps.Keys(values), record.CompareNames), paired, func(blocks []string) inference {
		part := make(map[string]float64, len(blocks))
		for _, block := range blocks {
			part[block] = values[block]
		}
		return studentInference(part, d.confidence, logarithmic)
	})
	return d.serially(found, values, within)
}

// blockMeans is one number per block: the mean of its trials.
func blockMeans(blocks map[string][]float64, logarithmic bool) map[string]float64 {
	out := make(map[string]float64, len(blocks))
	for block, values := range blocks {
		var sum float64
		for _, value := range values {
			if logarithmic {
				value = math.Log(value)
			}
			sum += value
		}
		out[block] = sum / float64(len(values))
	}
	return out
}
