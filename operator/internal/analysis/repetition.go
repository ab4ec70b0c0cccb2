package analysis

import (
	"path"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// findLostBlocks finds which blocks the planner may run again: those that never ran, and those that noise or the infrastructure
// took a trial of. What a program failed at is its result.
func findLostBlocks(out *Analysis, d *data, evidence record.Evidence) {
	ran := map[string]bool{}
	for i := range evidence.Attempts {
		ran[evidence.Attempts[i].Block] = true
	}
	for _, problem := range evidence.Problems {
		// Somebody wrote it, readable or not: attempts/<block>/<executor>/<trial>.json.
		ran[path.Base(path.Dir(path.Dir(problem.Key)))] = true
	}
	several := map[int]bool{}
	for _, planned := range d.exp.Cells {
		several[planned.Arm] = several[planned.Arm] || planned.Build != ""
	}
	unrun := map[string]bool{}
	settled := settled(d)
	lost := map[record.Purpose]map[cell]int{record.Screen: {}, record.Confirm: {}, record.Search: {}}
	d.chosen.eachPlanned(d.exp, evidence.Waves, func(purpose record.Purpose, block string, c cell) {
		switch {
		case !ran[block] && !unrun[block]:
			unrun[block] = true
			out.Unrun = append(out.Unrun, block)
		case ran[block] && !settled[c][block]:
			lost[purpose][c]++
			if several[c.arm] {
				out.LostTurns = append(out.LostTurns, LostTurn{block, d.exp.Points[c.point].Key, d.exp.Arms[c.arm].Name})
			}
		}
	})
	out.LostBlocks, out.ConfirmLostBlocks = most(lost[record.Screen]), most(lost[record.Confirm])
}

// eachPlanned visits every cell of every block that was planned, once, in the order of the plan.
func (s *selection) eachPlanned(exp *experiment.Experiment, waves []record.Wave, visit func(purpose record.Purpose, block string, c cell)) {
	points, arms := indexes(exp)
	for i := range waves {
		wave := &waves[i]
		for _, block := range wave.Blocks {
			purpose, known := s.purposes[block.ID]
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
					visit(purpose, block.ID, cell{point, arm})
				}
			}
		}
	}
}

// settled are the blocks of every cell that need no further look: measured, or disturbed where the run wants disturbed
// trials left out and not repeated.
func settled(d *data) map[cell]map[string]bool {
	out := map[cell]map[string]bool{}
	add := func(c cell, block string) {
		if out[c] == nil {
			out[c] = map[string]bool{}
		}
		out[c][block] = true
	}
	for c, blocks := range d.measured {
		for block := range blocks {
			add(c, block)
		}
	}
	if d.exp.Plan.OnViolation == noise.Retry {
		return out
	}
	for attempt, kind := range d.chosen.kinds {
		if kind == noisy {
			add(d.chosen.cells[attempt], attempt.Block)
		}
	}
	return out
}

func most(counts map[cell]int) int {
	out := 0
	for _, count := range counts {
		out = max(out, count)
	}
	return out
}
