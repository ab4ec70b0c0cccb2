package selection

import (
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Blocks run for a purpose, and what was planned after looking at the results must not be mixed into what was looked at. A
// block that no known wave planned screens: before waves had purposes, all did.

// Only selects the blocks that ran for a purpose.
func (s *Selection) Only(purpose record.Purpose) func(block string) bool {
	return func(block string) bool {
		found, ok := s.Purposes[block]
		return found == purpose || !ok && purpose == record.Screen
	}
}

// Has reports whether a block was planned for a purpose.
func (s *Selection) Has(purpose record.Purpose) bool {
	return slices.Contains(slices.Collect(maps.Values(s.Purposes)), purpose)
}

// HasOther reports whether a block was planned for another purpose.
func (s *Selection) HasOther(purpose record.Purpose) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s.Purposes)), func(found record.Purpose) bool { return found != purpose })
}

// EachPlanned visits every cell of every block that was planned, once, in the order of the plan.
func (s *Selection) EachPlanned(exp *experiment.Experiment, waves []record.Wave, visit func(purpose record.Purpose, block string, c Cell)) {
	points, arms := indexes(exp)
	for i := range waves {
		wave := &waves[i]
		for _, block := range wave.Blocks {
			purpose, known := s.Purposes[block.ID]
			if !known {
				continue // Of a later wave, or of another experiment.
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
