package design

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

// SearchedArm holds the levels of one arm's search.
type SearchedArm struct {
	Arm    string
	Levels []search.Level
}

// search plans the loads that every arm tries next, in shared blocks. Fresh blocks wait until no arm has another load to try, because a
// wave has one purpose.
func (t *target) search() Step {
	known := map[string][]search.Level{}
	for _, arm := range t.findings.Search {
		known[arm.Arm] = arm.Levels
	}
	rules := t.exp.Search()
	probes, fresh := map[int]int{}, map[int]int{}
	for arm := range t.exp.Arms {
		next := rules.Next(known[t.exp.Arms[arm].Name])
		for _, probe := range next.Probes {
			cell := slices.IndexFunc(t.exp.Cells, func(c record.Cell) bool { return c.Point == probe.Level && c.Arm == arm })
			if next.Fresh {
				fresh[cell] = probe.Blocks
			} else {
				probes[cell] = probe.Blocks
			}
		}
	}
	switch {
	case len(probes) > 0:
		return t.affordable(Step{Purpose: record.Search, Cells: probes, Why: fmt.Sprintf("loads to try, over all arms: %d", len(probes))})
	case len(fresh) > 0:
		return t.affordable(Step{Purpose: record.Confirm, Cells: fresh, Why: "the loads of the answer are repeated on fresh blocks"})
	default:
		return Step{Done: true}
	}
}

// affordable drops the last blocks of a step until the budget allows it.
func (t *target) affordable(step Step) Step {
	room := t.exp.Plan.Budget.Trials - t.tally.trials
	perCell := t.exp.Plan.Design.TrialsPerBlock(1)
	out := Step{Purpose: step.Purpose, Cells: map[int]int{}, Why: step.Why}
	for out.Blocks < maxBlocksPerWave {
		var part []int
		for cell, blocks := range step.Cells {
			if blocks > out.Blocks {
				part = append(part, cell)
			}
		}
		if room -= len(part) * perCell; len(part) == 0 || room < 0 {
			break
		}
		out.Blocks++
		for _, cell := range part {
			out.Cells[cell]++
		}
	}
	if out.Blocks == 0 {
		return Step{Done: true, Why: t.budgetSpent()}
	}
	return out
}
