package design

import (
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// Lane is a chain of blocks on one node: its blocks run one after the other. Node is empty for a local run.
type Lane struct {
	Node string
	// Token of the lease under which the blocks run; 0 without one.
	Token int64
}

// LaneOf returns the lane of the i-th block of a wave. Blocks alternate over the lanes, so that a node that fails half-way loses the
// same share of every point.
func LaneOf(block int, lanes []Lane) Lane { return lanes[block%len(lanes)] }

// LanesOf returns the lanes of a planned wave, in the order of LaneOf; nil for a wave without leases.
func LanesOf(wave *record.Wave) []Lane {
	var out []Lane
	for _, block := range wave.Blocks {
		if block.Lease == nil {
			return nil
		}
		if lane := Lane(*block.Lease); !slices.Contains(out, lane) {
			out = append(out, lane)
		}
	}
	return out
}

// lease returns the lease of the lane's blocks; nil without one.
func (l Lane) lease() *record.Lease {
	if l.Token == 0 {
		return nil
	}
	return &record.Lease{Node: l.Node, Token: l.Token}
}
