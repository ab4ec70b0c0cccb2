package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// studentInference is the mean of one number per block, with Student's interval.
//
// Why Student and not a bootstrap of the mean: the intervals were compared by simulation (TestCoverage…; docs/reference/
// ledger.md). With 3 to 8 blocks the percentile bootstraps cover 75 to 93 % instead of 95, and the studentised bootstrap
// 80 % at 3 blocks and 89 to 94 % under heavy tails from 15 blocks on. Student's interval is exact for normal blocks and
// errs on the careful side for heavy tails. Its weakness is skewness, and the logarithm of a ratio of two arms that differ
// only by a factor is symmetric whatever the noise is, because exchanging the arms of a block changes its sign.
func studentInference(byBlock map[string]float64, confidence float64, logarithmic bool) inference {
	out := inference{logarithmic: logarithmic, blocks: len(byBlock)}
	if out.blocks == 0 {
		out.reason = "no block has a value"
		return out
	}
	values := make([]float64, 0, len(byBlock))
	for _, block := range slices.Sorted(maps.Keys(byBlock)) {
		values = append(values, byBlock[block])
	}
	center := mean(values)
	out.value = out.unscale(center)
	if out.blocks < minBlocks {
		out.reason = fmt.Sprintf("%d of at least %d blocks", out.blocks, minBlocks)
		return out
	}
	var squares float64
	for _, value := range values {
		squares += (value - center) * (value - center)
	}
	n, df := float64(out.blocks), float64(out.blocks-1)
	out.se = math.Sqrt(squares / df / n)
	half := studentQuantile((1+confidence)/2, df) * out.se
	out.low, out.high = out.unscale(center-half), out.unscale(center+half)
	out.tail = func(bound float64) float64 {
		distance := math.Abs(out.scale(bound) - center)
		if out.se == 0 {
			if distance == 0 {
				return 0.5
			}
			return 0
		}
		return studentTail(distance/out.se, df)
	}
	return out
}

// level is a quantity of one arm: its mean over blocks, each block being the mean of its trials. Both means are taken of
// logarithms when all values are positive, so that the ratio of two levels is the ratio that gates judge.
func (d *data) level(q quantity) inference {
	if known, ok := d.levels[q]; ok {
		return known
	}
	var out inference
	if p, ok := percentiles[q.statistic]; ok {
		out = d.percentileLevel(q, p)
	} else {
		blocks := d.perBlock(q)
		logarithmic := allPositive(blocks)
		out = studentInference(blockMeans(blocks, logarithmic), d.confidence, logarithmic)
		out.samples = d.samples(q.cell, q.metric)
	}
	d.levels[q] = out
	return out
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
