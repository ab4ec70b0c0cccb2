package selection

import (
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

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
				if seen[index] || index >= len(wave.Cells) || wave.Cells[index].Point >= len(wave.Points) || wave.Cells[index].Arm >= len(wave.Arms) {
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
