package estimate

import (
	"math"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
)

// An effect of the place in a block, such as a drift, moves the difference of two arms up in a block that ran one of them first and down in
// a block that ran the other first. The planner balances the places over blocks; without a term for them their effect would be part of the
// spread. The term is fitted for every two arms of a point from leastForPlace blocks on, independent of its size.

// leastForPlace is the smallest number of blocks on a node with a term for the place, so that at least two degrees of freedom remain.
const leastForPlace = 4

// withoutPlace returns the differences of two arms without the linear effect of their distance in the block, estimated by least squares,
// and the number of terms fitted. The residuals are scaled by the error of the mean at a distance of 0.
func (d *Data) withoutPlace(differences map[string]float64, mine, theirs selection.Cell) (adjusted map[string]float64, terms int) {
	a, b := d.places(mine), d.places(theirs)
	var x, y []float64
	first, second := false, false
	blocks := inOrderOf(differences)
	for _, block := range blocks {
		if len(a[block]) == 0 || len(b[block]) == 0 {
			return differences, 0
		}
		distance := stats.Mean(a[block]) - stats.Mean(b[block])
		first, second = first || distance < 0, second || distance > 0
		x, y = append(x, distance), append(y, differences[block])
	}
	// Inside of nodes, or a difference between nodes would be an effect of the place where they ran the arms in different orders.
	fewest, awayX := d.insideNodes(blocks, x)
	_, awayY := d.insideNodes(blocks, y)
	centre, spread := stats.Mean(x), stats.Squares(awayX, 0)
	if fewest < leastForPlace || !first || !second || spread == 0 {
		return differences, 0
	}
	slope := 0.0
	for i := range x {
		slope += awayX[i] * awayY[i] / spread
	}
	scale := math.Sqrt(1 + float64(len(x))*centre*centre/spread)
	adjusted = make(map[string]float64, len(blocks))
	for i, block := range blocks {
		residual := awayY[i] - slope*awayX[i]
		adjusted[block] = y[i] - slope*x[i] - residual + scale*residual
	}
	return adjusted, 1
}

// insideNodes returns the fewest blocks of a node, and the values of the blocks less the mean of their node.
func (d *Data) insideNodes(blocks []string, values []float64) (fewest int, away []float64) {
	byNode := map[string][]float64{}
	for i, block := range blocks {
		byNode[d.nodes[block]] = append(byNode[d.nodes[block]], values[i])
	}
	for i, block := range blocks {
		away = append(away, values[i]-stats.Mean(byNode[d.nodes[block]]))
	}
	fewest = len(blocks)
	for _, of := range byNode {
		fewest = min(fewest, len(of))
	}
	return fewest, away
}

// places returns the slots of the trials of a cell that count, by block.
func (d *Data) places(c selection.Cell) map[string][]float64 {
	out := map[string][]float64{}
	for _, attempt := range d.Trials[c] {
		out[attempt.Block] = append(out[attempt.Block], float64(attempt.Slot))
	}
	return out
}
