package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// Blocks are the unit of replication, and blocks of one node share the node. When a ratio depends on the node, more blocks
// on the same nodes say more about these nodes and nothing about another one, so the interval must rest on the nodes.

// nodesDifferLevel is how surprising the difference between nodes must be before it counts as one. It is no part of any
// verdict's level: a false alarm only widens an interval, and nodes whose difference is overlooked narrow it wrongly.
const nodesDifferLevel = 0.1

// nodeOf is the node that ran an attempt: the one leased for its block, or the one that the runner was given; empty when unknown.
func nodeOf(attempt *record.Attempt) string {
	if attempt.Lease != nil {
		return attempt.Lease.Node
	}
	name, _ := attempt.Environment.Soft["nodeName"].(string)
	return name
}

// acrossNodes lets several nodes speak for themselves. Of gives the inference that rests on some of the blocks alone; a node
// takes part with two blocks, as its standard error rests on the variance within all nodes.
//
// Paired numbers compare arms inside a block, so that a node's speed cancels: only nodes that differ by more than their blocks
// explain widen the interval. Of three and more nodes it becomes a random-effects interval over nodes (DerSimonian and Laird
// 1986, with the variance and Student's quantile of Hartung and Knapp 2001); of two nodes, from which no spread of nodes can
// be told, it spans the intervals of both, so that a gate holds only if it holds on each.
//
// The level of an arm has its node's speed in it. That nodes differ needs no test then, and the interval is over nodes always;
// of two nodes it has one degree of freedom.
func (d *data) acrossNodes(pooled inference, blocks []string, paired bool, of func(blocks []string) inference) inference {
	groups := map[string][]string{}
	for _, block := range blocks {
		groups[d.nodes[block]] = append(groups[d.nodes[block]], block)
	}
	if len(groups) < 2 || groups[""] != nil {
		return pooled
	}
	fewest := 2
	if !paired {
		fewest = 1
	}
	var found []inference
	for _, node := range slices.Sorted(maps.Keys(groups)) {
		one := of(groups[node])
		if estimate := one.ratio(); estimate != nil && paired {
			pooled.perNode = append(pooled.perNode, NodeResult{node, *estimate})
		}
		if one.blocks >= fewest && !math.IsNaN(one.value) {
			found = append(found, one)
		}
	}
	if !pooled.hasInterval() || len(found) < 2 {
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
	pooled.nodesDiffer = true
	return pooled.at(d.confidence)
}

// poolWithin gives every node the standard error that the variance within all nodes makes, and an interval of its own.
func poolWithin(nodes []inference) []inference {
	within, df := varianceWithin(nodes)
	if df == 0 {
		return nodes
	}
	for i := range nodes {
		node := &nodes[i]
		node.se, node.df, node.reason = math.Sqrt(within/float64(node.blocks)), df, ""
		node.student(node.scale(node.value))
	}
	return nodes
}

// varianceWithin is the variance of blocks inside their nodes, with its degrees of freedom.
func varianceWithin(nodes []inference) (variance, df float64) {
	for _, node := range nodes {
		n := float64(node.blocks)
		variance += node.se * node.se * n * (n - 1)
		df += n - 1
	}
	if df > 0 {
		variance /= df
	}
	return variance, df
}

// heterogeneous is the analysis of variance with one factor, the node. It is asked before the nodes' errors are pooled or
// after: the variance within is the same.
func heterogeneous(nodes []inference) bool {
	var total, weighted float64
	for _, node := range nodes {
		n := float64(node.blocks)
		total += n
		weighted += n * node.scale(node.value)
	}
	center := weighted / total
	var between float64
	for _, node := range nodes {
		off := node.scale(node.value) - center
		between += float64(node.blocks) * off * off
	}
	within, df := varianceWithin(nodes)
	if within == 0 {
		return between > 0
	}
	dfBetween := float64(len(nodes) - 1)
	return fTail(between/dfBetween/within, dfBetween, df) < nodesDifferLevel
}

// spanning makes the interval reach over those of all nodes.
func spanning(out *inference, nodes []inference) {
	out.ends = func(confidence float64) (low, high float64) {
		low, high = nodes[0].ends(confidence)
		for _, node := range nodes[1:] {
			a, b := node.ends(confidence)
			low, high = min(low, a), max(high, b)
		}
		return low, high
	}
	center, scale := out.scale(out.value), out.scale
	out.tail = func(bound float64) float64 {
		worst := 0.0
		for _, node := range nodes {
			// A node whose estimate lies on the other side of the bound than the run's supports nothing.
			if (node.scale(node.value) > scale(bound)) != (center > scale(bound)) {
				return 0.5
			}
			worst = max(worst, node.tail(bound))
		}
		return worst
	}
}

// randomEffects takes the nodes as a sample of nodes. The estimate becomes the nodes' weighted mean; the interval reaches over
// the one of the pooled blocks as well.
func randomEffects(out *inference, nodes []inference) {
	k := float64(len(nodes))
	var weights, weightedSquares, weighted float64
	for _, node := range nodes {
		w := 1 / math.Max(node.se*node.se, 1e-30)
		weights += w
		weightedSquares += w * w
		weighted += w * node.scale(node.value)
	}
	center := weighted / weights
	var q float64
	for _, node := range nodes {
		off := node.scale(node.value) - center
		q += off * off / math.Max(node.se*node.se, 1e-30)
	}
	between := math.Max(0, (q-(k-1))/(weights-weightedSquares/weights))

	weights, weighted = 0, 0
	for _, node := range nodes {
		w := 1 / (math.Max(node.se*node.se, 1e-30) + between)
		weights += w
		weighted += w * node.scale(node.value)
	}
	center = weighted / weights
	var spread float64
	for _, node := range nodes {
		off := node.scale(node.value) - center
		spread += off * off / (math.Max(node.se*node.se, 1e-30) + between)
	}
	*out = out.including(studentAround(center, math.Sqrt(spread/(k-1)/weights), k-1, *out))
	out.value = out.unscale(center)
}

// nodeWarnings describe where the answer depends on the node.
func nodeWarnings(ratios []RatioResult) []string {
	var out []string
	for _, ratio := range ratios {
		if !ratio.NodesDiffer {
			continue
		}
		text := ""
		for i, node := range ratio.PerNode {
			if i > 0 {
				text += ", "
			}
			text += fmt.Sprintf("%s %s", node.Node, Describe(&node.Estimate))
		}
		how := "the interval rests on the nodes"
		if len(ratio.PerNode) == 2 {
			how = "two nodes cannot show how much nodes vary, so the interval spans both"
		}
		out = append(out, fmt.Sprintf("%s %s of %s at %s depends on the node (%s): %s", ratio.Metric, ratio.Statistic, ratio.Candidate,
			PointName(ratio.Point), text, how))
	}
	return out
}
