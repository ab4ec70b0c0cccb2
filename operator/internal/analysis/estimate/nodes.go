package estimate

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
)

// Blocks are the unit of replication, and blocks of one node share its effect. If a ratio depends on the node, more blocks on the same
// nodes give no information about other nodes, so the interval must be over nodes.

// nodesDifferLevel is the significance level of the test for a difference between nodes. It is not part of a verdict's level: a false
// alarm only widens an interval, while a missed difference makes it too narrow.
const nodesDifferLevel = 0.1

// acrossNodes estimates each node separately and combines the nodes. The function of returns the inference from some of the blocks. A node
// with a single block takes part, because its standard error is from the variance within all nodes; if each has only one, blocks are
// nodes. Each of two nodes needs two blocks for a ratio, otherwise a gate that must hold on each would depend on one block. Blocks without
// a known node count as one further node.
//
// Paired numbers compare arms inside a block, so that a node's speed cancels: only nodes that differ by more than their blocks
// explain widen the interval. Of three and more nodes it becomes a random-effects interval over nodes (DerSimonian and Laird
// 1986, with the variance and Student's quantile of Hartung and Knapp 2001); two nodes do not show the spread of nodes, so
// for these it spans the intervals of both, so that a gate holds only if it holds on each.
//
// The level of an arm includes the speed of its node. It needs no test for a difference, and its interval is always over nodes; with two
// nodes it has one degree of freedom.
func (d *Data) acrossNodes(pooled Inference, blocks []string, paired bool, of func(blocks []string) Inference) Inference {
	groups := map[string][]string{}
	for _, block := range blocks {
		groups[d.nodes[block]] = append(groups[d.nodes[block]], block)
	}
	if len(groups) < 2 {
		return pooled
	}
	var found []Inference
	for _, node := range slices.Sorted(maps.Keys(groups)) {
		one := of(groups[node])
		if estimate := one.Ratio(); estimate != nil && paired {
			pooled.perNode = append(pooled.perNode, analysis.NodeResult{Node: cmp.Or(node, "unknown"), Estimate: *estimate})
		}
		alone := one.Blocks == 1 && paired && len(groups) == 2
		if one.Blocks > 0 && !alone && !math.IsNaN(one.Value) {
			found = append(found, one)
		}
	}
	if !pooled.HasInterval() || len(found) < 2 {
		return pooled
	}
	if _, df := varianceWithin(found); paired && df == 0 {
		return pooled
	}
	found = poolWithin(found)
	switch {
	case paired && !heterogeneous(found):
		return pooled
	case paired && len(found) == 2:
		spanning(&pooled, found)
	default:
		randomEffects(&pooled, found)
	}
	pooled.NodesDiffer = true
	return pooled.At(d.Confidence)
}

// poolWithin gives every node an interval with the standard error from the variance within all nodes.
func poolWithin(nodes []Inference) []Inference {
	within, df := varianceWithin(nodes)
	if df == 0 {
		return nodes
	}
	for i := range nodes {
		node := &nodes[i]
		node.SE, node.DF, node.Reason = math.Sqrt(within/float64(node.Blocks)), df, ""
		node.student(node.Scale(node.Value))
	}
	return nodes
}

// varianceWithin is the variance of blocks inside their nodes, with its degrees of freedom.
func varianceWithin(nodes []Inference) (variance, df float64) {
	for _, node := range nodes {
		n := float64(node.Blocks)
		variance += node.SE * node.SE * n * (n - 1)
		df += n - 1
	}
	if df > 0 {
		variance /= df
	}
	return variance, df
}

// heterogeneous is a one-way analysis of variance with the node as factor. Its result is the same before and after pooling, because the
// variance within is the same.
func heterogeneous(nodes []Inference) bool {
	var total, weighted float64
	for _, node := range nodes {
		n := float64(node.Blocks)
		total += n
		weighted += n * node.Scale(node.Value)
	}
	center := weighted / total
	var between float64
	for _, node := range nodes {
		off := node.Scale(node.Value) - center
		between += float64(node.Blocks) * off * off
	}
	within, df := varianceWithin(nodes)
	switch blur := nodes[0].blur(); {
	case between <= total*blur*blur:
		return false
	case within == 0:
		return true
	}
	dfBetween := float64(len(nodes) - 1)
	return stats.FTail(between/dfBetween/within, dfBetween, df) < nodesDifferLevel
}

// spanning extends the interval over those of all nodes and over the estimate. A percentile of merged samples may come from the fast node
// in one arm and from the slow node in the other, and then their ratio is outside of both intervals.
func spanning(out *Inference, nodes []Inference) {
	center, scale := out.Scale(out.Value), out.Scale
	out.Ends = func(confidence float64) (low, high float64) {
		low, high = center, center
		for _, node := range nodes {
			a, b := node.Ends(confidence)
			low, high = min(low, a), max(high, b)
		}
		return low, high
	}
	out.Tail = func(bound float64) float64 {
		worst := 0.0
		for _, node := range nodes {
			// A node with its estimate on the other side of the bound does not support the decision.
			if (node.Scale(node.Value) > scale(bound)) != (center > scale(bound)) {
				return 0.5
			}
			worst = max(worst, node.Tail(bound))
		}
		return worst
	}
}

// randomEffects treats the nodes as a random sample. The estimate becomes the weighted mean of the nodes, and the interval includes that of
// the pooled blocks.
func randomEffects(out *Inference, nodes []Inference) {
	k := float64(len(nodes))
	// weigh gives the weighted mean if nodes have a variance between them, the sums of the weights and of their squares, and how far the
	// nodes are spread about it.
	weigh := func(between float64) (center, weights, squares, spread float64) {
		variance := func(node Inference) float64 { return math.Max(node.SE*node.SE, 1e-30) + between }
		var weighted float64
		for _, node := range nodes {
			w := 1 / variance(node)
			weights += w
			squares += w * w
			weighted += w * node.Scale(node.Value)
		}
		center = weighted / weights
		for _, node := range nodes {
			off := node.Scale(node.Value) - center
			spread += off * off / variance(node)
		}
		return center, weights, squares, spread
	}
	_, weights, squares, q := weigh(0)
	center, weights, _, spread := weigh(math.Max(0, (q-(k-1))/(weights-squares/weights)))
	*out = out.including(studentAround(center, math.Sqrt(spread/(k-1)/weights), k-1, *out))
	out.Value = out.unscale(center)
}
