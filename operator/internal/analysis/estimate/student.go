package estimate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// studentInference is the mean of one number per block, with Student's interval.
//
// docs/methodology/calibration.md compares it with a bootstrap, a trimmed mean and ranks.
// Student's interval is exact for normal blocks and conservative for heavy tails and outliers. Its weakness is skewness, and the logarithm
// of a ratio of two arms that differ only by a factor is symmetric for any noise, because exchanging the arms of a block changes its sign.
func studentInference(byBlock map[string]float64, confidence float64, logarithmic bool) Inference {
	out := Inference{logarithmic: logarithmic, Blocks: len(byBlock)}
	if out.Blocks == 0 {
		out.Reason = "no block has a value"
		return out
	}
	values := inOrder(byBlock)
	center := stats.Mean(values)
	out.Value = out.unscale(center)
	if n := float64(out.Blocks); n > 1 {
		out.SE, out.DF = math.Sqrt(stats.Squares(values, center)/(n-1)/n), n-1
	}
	if out.Blocks < stats.MinBlocks {
		out.Reason = fmt.Sprintf("%d of at least %d blocks", out.Blocks, stats.MinBlocks)
		return out
	}
	out.student(center)
	return out.At(confidence)
}

// student gives the inference Student's interval around a centre on the working scale.
func (i *Inference) student(center float64) {
	se, df := i.SE, i.DF
	i.Ends = func(confidence float64) (low, high float64) {
		half := stats.StudentQuantile((1+confidence)/2, df) * se
		return center - half, center + half
	}
	scale := i.Scale
	i.Tail = func(bound float64) float64 { return stats.DistanceTail(math.Abs(scale(bound)-center), se, df) }
}

// fitted takes the degrees of freedom of fitted terms from an inference on df of them.
func (i Inference) fitted(terms, df float64) Inference {
	if terms == 0 || df <= terms {
		return i
	}
	i.SE, i.DF = i.SE*math.Sqrt(df/(df-terms)), df-terms
	if i.HasInterval() {
		i.student(i.Scale(i.Value))
	}
	return i
}

// inOrder returns the values of the blocks in the order of their names, so that sums are deterministic.
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

// Level is a quantity of one arm: its arithmetic mean over blocks, each block being the arithmetic mean of its trials, with
// Student's interval on the plain scale. A bound on a mean limits the total cost, which a geometric mean understates.
func (d *Data) Level(q Quantity) Inference {
	if known, ok := d.levels[q]; ok {
		return known
	}
	var out Inference
	if p, ok := experiment.Percentiles[q.Statistic]; ok {
		out = d.percentileLevel(q, p)
	} else {
		blocks := d.PerBlock(q)
		out = d.OverBlocks(BlockMeans(blocks, false), trialSpread(blocks, false), false, false, 0)
		out = d.acrossBuilds(BlockMeans(blocks, false), out, q.Cell)
		if len(blocks) == 0 {
			out.Reason = d.without(q)
		}
		out.samples = d.samples(q.Cell, q.Metric)
	}
	out = d.onClock(out, q)
	d.levels[q] = out
	return out
}

// OverBlocks is the mean of one number per block with the interval that blocks allow: over nodes where these differ, and wider
// where the blocks depend on each other or are skewed. Paired numbers are differences of arms inside a block, and terms the number of
// parameters that were fitted to them beside their mean.
func (d *Data) OverBlocks(values map[string]float64, within Spread, logarithmic, paired bool, terms int) Inference {
	found := studentInference(values, d.Confidence, logarithmic).fitted(float64(terms), float64(len(values)-1)).At(d.Confidence)
	nodes := map[string]bool{}
	for block := range values {
		nodes[d.nodes[block]] = true
	}
	found = d.acrossNodes(found, inOrderOf(values), paired, func(blocks []string) Inference {
		part := make(map[string]float64, len(blocks))
		for _, block := range blocks {
			part[block] = values[block]
		}
		// The terms are fitted to the blocks of all nodes.
		share := float64(terms) * float64(len(blocks)-1) / float64(max(1, len(values)-len(nodes)))
		return studentInference(part, d.Confidence, logarithmic).fitted(share, float64(len(blocks)-1)).At(d.Confidence)
	})
	return d.serially(found, values, within)
}

// BlockMeans returns the mean of the trials of each block.
func BlockMeans(blocks map[string][]float64, logarithmic bool) map[string]float64 {
	out := make(map[string]float64, len(blocks))
	for block, values := range blocks {
		out[block] = stats.Mean(scaled(values, logarithmic))
	}
	return out
}

// scaled returns the logarithms of values, or the values.
func scaled(values []float64, logarithmic bool) []float64 {
	if !logarithmic {
		return values
	}
	out := make([]float64, len(values))
	for i, value := range values {
		out[i] = math.Log(value)
	}
	return out
}
