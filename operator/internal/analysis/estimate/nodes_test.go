package estimate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// onNodes gives every block its node, and the ratio that the node has. Every node must run as many blocks forwards as backwards, as the
// planner does, or an effect of the node is an effect of the place.
func onNodes(l *analyzed.Run, nodes []string, slower map[string]float64) {
	for b := range l.Waves[0].Blocks {
		l.Waves[0].Blocks[b].Lease = &record.Lease{Node: nodes[b%len(nodes)], Token: 1}
	}
	for i := range l.Attempts {
		a := &l.Attempts[i]
		var wave, block int
		if _, err := fmt.Sscanf(a.Block, "w%03d-b%04d", &wave, &block); err != nil {
			panic(err)
		}
		a.Lease = &record.Lease{Node: nodes[block%len(nodes)], Token: 1}
		if a.Arm != "loop" {
			*a.Result.Metrics["throughput"].Value /= 1 + slower[a.Lease.Node]
		}
	}
}

func TestNodes_Verdicts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		nodes   []string
		slower  map[string]float64
		blocks  int
		differ  bool
		perNode int
		outcome experiment.Verdict
		warning string
		without string
	}{
		"one node says nothing of nodes":                                 {nodes: []string{"a"}, blocks: 12, outcome: fixture.Go},
		"nodes that agree change nothing":                                {nodes: []string{"a", "a", "b", "b"}, blocks: 12, perNode: 2, outcome: fixture.Go},
		"of two nodes that differ the gate needs both":                   {nodes: []string{"a", "a", "b", "b"}, slower: map[string]float64{"b": 0.2}, blocks: 12, differ: true, perNode: 2, outcome: fixture.Inconclusive, warning: "the interval spans both"},
		"of two nodes that differ the gate holds where it holds on each": {nodes: []string{"a", "a", "b", "b"}, slower: map[string]float64{"b": 0.05}, blocks: 12, differ: true, perNode: 2, outcome: fixture.Go, warning: "the interval spans both"},
		"of three nodes that differ the interval rests on the nodes": {
			nodes: []string{"a", "a", "b", "b", "c", "c"}, slower: map[string]float64{"b": 0.06, "c": 0.12}, blocks: 12, differ: true, perNode: 3, outcome: fixture.Inconclusive, warning: "the interval rests on the nodes",
		},
		"nodes with two blocks each take part": {
			nodes: []string{"a", "a", "b", "b"}, slower: map[string]float64{"b": 0.2}, blocks: 4, differ: true, perNode: 2, outcome: fixture.Inconclusive, warning: "the interval spans both",
		},
		"a single block of a second node decides nothing, and is named": {
			nodes: []string{"a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "b"}, slower: map[string]float64{"b": 0.2}, blocks: 12,
			perNode: 2, outcome: fixture.Go, warning: "one block of a second node decides nothing",
		},
		"a single block of a second node that is like the others is not": {
			nodes: []string{"a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "b"}, blocks: 12, perNode: 2, outcome: fixture.Go,
			without: "depends on the node",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, c.blocks, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.7)},
				fixture.WithGates(fixture.GainAt8("1.5")))
			onNodes(l, c.nodes, c.slower)
			got := l.Analyze()
			if len(got.Excluded) > 0 {
				t.Fatal(got.Excluded)
			}
			at := slices.IndexFunc(got.Ratios, func(r analysis.RatioResult) bool {
				return r.Metric == "throughput" && r.Candidate == "fused-m4r" && r.Point == got.Gates[0].Point
			})
			ratio := got.Ratios[at]
			if ratio.NodesDiffer != c.differ || len(ratio.PerNode) != c.perNode {
				t.Errorf("nodes differ: %v with %d nodes, want %v with %d", ratio.NodesDiffer, len(ratio.PerNode), c.differ, c.perNode)
			}
			gate := got.Gates[slices.IndexFunc(got.Gates, func(g analysis.GateResult) bool { return g.Candidate == "fused-m4r" })]
			if gate.Outcome != c.outcome {
				t.Errorf("%s: %s, want %s", gate.Outcome, gate.Message, c.outcome)
			}
			if c.outcome == fixture.Inconclusive && (gate.MoreBlocks != nil || !strings.Contains(gate.Message, "further nodes would decide")) {
				t.Errorf("promises that %v further blocks decide: %s", gate.MoreBlocks, gate.Message)
			}
			if !strings.Contains(strings.Join(got.Warnings, "\n"), c.warning) {
				t.Errorf("warnings %q, want one with %q", got.Warnings, c.warning)
			}
			if c.without != "" && strings.Contains(strings.Join(got.Warnings, "\n"), c.without) {
				t.Errorf("warnings %q, want none with %q", got.Warnings, c.without)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}
