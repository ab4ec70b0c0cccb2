package explain

import (
	"maps"
	"path"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// Repetition names and counts the blocks that may run again.
type Repetition struct {
	// CutBlocks and ConfirmCutBlocks began and lack a trial, LostBlocks and ConfirmLostBlocks are the most that a point and arm lost.
	CutBlocks, ConfirmCutBlocks, LostBlocks, ConfirmLostBlocks int
	// Unrun are the planned blocks without any attempt.
	Unrun     []string
	LostTurns []analysis.LostTurn
}

// Lost finds the blocks that the planner may run again: blocks that never ran or were cut short, and blocks that lost a trial to noise
// or the infrastructure. Failures of a program are results and are not repeated.
func Lost(d *estimate.Data, evidence record.Evidence) Repetition {
	var out Repetition
	ran, ended := map[string]bool{}, map[string]bool{}
	byProgram := map[string]int{}
	for i := range evidence.Attempts {
		a := &evidence.Attempts[i]
		ran[a.Block], ended[a.Trial] = true, true
		if a.EndedExecution {
			byProgram[a.Block]++
		}
	}
	for _, problem := range evidence.Problems {
		// The object exists, readable or not: attempts/<block>/<executor>/<trial>.json.
		ran[path.Base(path.Dir(path.Dir(problem.Key)))] = true
		ended[strings.TrimSuffix(path.Base(problem.Key), ".json")] = true
	}
	cut := map[record.Purpose]int{}
	for _, wave := range evidence.Waves {
		for _, block := range wave.Blocks {
			purpose, known := d.Chosen.Purposes[block.ID]
			if known && ran[block.ID] && byProgram[block.ID] <= d.Exp.Plan.Retries && isCut(block, ended) {
				cut[purpose]++
			}
		}
	}
	out.CutBlocks, out.ConfirmCutBlocks = cut[record.Screen], cut[record.Confirm]
	several := map[int]bool{}
	for _, planned := range d.Exp.Cells {
		several[planned.Arm] = several[planned.Arm] || planned.Build != ""
	}
	unrun := map[string]bool{}
	settled := settled(d)
	lost := map[record.Purpose]map[selection.Cell]int{record.Screen: {}, record.Confirm: {}, record.Search: {}}
	d.Chosen.EachPlanned(d.Exp, evidence.Waves, func(purpose record.Purpose, block string, c selection.Cell) {
		switch {
		case !ran[block] && !unrun[block]:
			unrun[block] = true
			out.Unrun = append(out.Unrun, block)
		case ran[block] && !settled[c][block]:
			lost[purpose][c]++
			if several[c.Arm] {
				out.LostTurns = append(out.LostTurns, analysis.LostTurn{Block: block, Point: d.Exp.Points[c.Point].Key, Arm: d.Exp.Arms[c.Arm].Name})
			}
		}
	})
	out.LostBlocks, out.ConfirmLostBlocks = most(lost[record.Screen]), most(lost[record.Confirm])
	return out
}

// isCut reports whether a trial of a started block has no attempt. Unless programs ended all of its executions, its pod or node was lost.
func isCut(block record.Block, ended map[string]bool) bool {
	for slot := range block.Order {
		if !ended[record.TrialName(block.ID, slot, false)] {
			return true
		}
	}
	return false
}

// settled returns the blocks of every cell that are not repeated: measured blocks, and disturbed blocks in a run that leaves disturbed
// trials out without a retry.
func settled(d *estimate.Data) map[selection.Cell]map[string]bool {
	out := map[selection.Cell]map[string]bool{}
	for c, blocks := range d.Measured {
		out[c] = maps.Clone(blocks)
	}
	if d.Exp.Plan.OnViolation == noise.Retry {
		return out
	}
	for attempt, kind := range d.Chosen.Kinds {
		if kind == selection.Noisy {
			selection.Inner(out, d.Chosen.Cells[attempt])[attempt.Block] = true
		}
	}
	return out
}

func most(counts map[selection.Cell]int) int {
	out := 0
	for _, count := range counts {
		out = max(out, count)
	}
	return out
}
