package selection

import (
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Purposes maps the planned blocks to their purposes. Blocks that were planned after reading results must not be mixed with those whose
// results were read. A block without a plan screens, as all blocks of a ledger without waves do.
type Purposes map[string]record.Purpose

// Only returns a predicate that selects the blocks with a purpose.
func (p Purposes) Only(purpose record.Purpose) func(block string) bool {
	return func(block string) bool {
		found, ok := p[block]
		return found == purpose || !ok && purpose == record.Screen
	}
}

// Has reports whether any block was planned for a purpose.
func (p Purposes) Has(purpose record.Purpose) bool {
	return slices.Contains(slices.Collect(maps.Values(p)), purpose)
}

// HasOther reports whether any block was planned for another purpose.
func (p Purposes) HasOther(purpose record.Purpose) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(p)), func(found record.Purpose) bool { return found != purpose })
}

// EachPlanned visits every cell of every planned block once, in the order of the plans.
func (p Purposes) EachPlanned(exp *experiment.Experiment, waves []record.Wave, visit func(purpose record.Purpose, block string, c Cell)) {
	points, arms := indexes(exp)
	for i := range waves {
		wave := &waves[i]
		for _, block := range wave.Blocks {
			purpose, known := p[block.ID]
			if !known {
				continue // It is of a later wave or of another experiment.
			}
			seen := map[int]bool{}
			for _, index := range block.Order {
				if seen[index] {
					continue
				}
				seen[index] = true
				point, ok := points[wave.Points[wave.Cells[index].Point].Key]
				arm, ok2 := arms[wave.Arms[wave.Cells[index].Arm].Name]
				if ok && ok2 {
					visit(purpose, block.ID, Cell{point, arm})
				}
			}
		}
	}
}
