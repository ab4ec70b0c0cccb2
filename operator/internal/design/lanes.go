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

// LaneOf is the lane of the i-th block of a wave. Blocks go round the lanes, so that a node that fails half-way takes the
// same share of every point with it.
func LaneOf(block int, lanes []Lane) Lane { return lanes[block%len(lanes)] }

// LanesOf are the lanes that a wave was planned on, as LaneOf takes them; none for a wave without leases.
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

// lease is what the lane's blocks may run under; nil without one.
func (l Lane) lease() *record.Lease {
	if l.Token == 0 {
		return nil
	}
	return &record.Lease{Node: l.Node, Token: l.Token}
}
