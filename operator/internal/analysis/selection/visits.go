package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// In use a program mostly follows itself, so the figure of an arm is that of the trials which follow a trial of the same arm. The planner
// runs the arms of a block in visits of several consecutive trials. The first trial of a visit runs on the machine as another arm left it,
// and does not count.

// Visits are the places of the trials in the visits of their blocks.
type Visits struct {
	// Entered holds the trials that follow no successful trial of their own arm, point and build.
	Entered map[*record.Attempt]Entry
	// Without describes a block with several arms in which an arm never follows itself; then all trials count and Entered is empty.
	Without string
}

// Entry describes the trial before one that does not count.
type Entry struct {
	// After is the cell of that trial.
	After Cell
	// Known reports whether it succeeded at the same point; false at the start of a block or point, and after a lost trial.
	Known bool
}

// visited is the content of one slot.
type visited struct {
	cell  Cell
	build string
}

// findVisits returns the visits of the measured trials, by the plan, or by the attempts in a ledger without plans.
func findVisits(exp *experiment.Experiment, planned plan, own []*record.Attempt, cells map[*record.Attempt]Cell) Visits {
	blocks, succeeded := map[string]map[int]visited{}, map[string]bool{}
	for _, slot := range planned.slots {
		if !slot.warmup {
			Inner(blocks, slot.block)[slot.slot] = visited{slot.cell, slot.build}
		}
	}
	for _, attempt := range own {
		if !attempt.Warmup {
			Inner(blocks, attempt.Block)[attempt.Slot] = visited{cells[attempt], attempt.Build}
			succeeded[attempt.ID] = attempt.Outcome == record.Succeeded
		}
	}
	out := Visits{Entered: map[*record.Attempt]Entry{}}
	for _, block := range slices.SortedFunc(maps.Keys(blocks), record.CompareNames) {
		if out.Without == "" {
			out.Without = withoutVisits(exp, block, blocks[block])
		}
	}
	if out.Without != "" {
		return out
	}
	alone := map[string]bool{} // The blocks with one arm at one point.
	for name, block := range blocks {
		alone[name] = len(armsAndPoints(block)) == 1
	}
	for _, attempt := range own {
		block := blocks[attempt.Block]
		if attempt.Warmup || alone[attempt.Block] {
			continue
		}
		at, found := block[attempt.Slot], Entry{}
		// Of several executions of a block, only the same one was on this machine before.
		id := trial.Executor(attempt) + "/" + record.TrialName(attempt.Block, attempt.Slot-1, false)
		if before, ok := block[attempt.Slot-1]; ok && succeeded[id] {
			if before == at {
				continue
			}
			found = Entry{before.cell, before.cell.Point == at.cell.Point && before.cell.Arm != at.cell.Arm}
		}
		out.Entered[attempt] = found
	}
	return out
}

// withoutVisits describes the first arm of a block that never follows itself although the block has others; "" if all do.
func withoutVisits(exp *experiment.Experiment, name string, block map[int]visited) string {
	following := map[Cell]bool{}
	for slot, at := range block {
		// Without a plan, a trial that is lost leaves a gap, and may have been of the same arm.
		if before, ok := block[slot-1]; ok && before == at || !ok && slot > 0 {
			following[at.cell] = true
		}
	}
	all := armsAndPoints(block)
	for _, c := range all {
		if len(all) > 1 && !following[c] {
			return fmt.Sprintf("no trial of arm %s in block %s follows another trial of that arm", exp.Arms[c.Arm].Name, name)
		}
	}
	return ""
}

// armsAndPoints returns the distinct cells of a block, in their order.
func armsAndPoints(block map[int]visited) []Cell {
	distinct := map[Cell]bool{}
	for _, at := range block {
		distinct[at.cell] = true
	}
	return slices.SortedFunc(maps.Keys(distinct), func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Point, b.Point), cmp.Compare(a.Arm, b.Arm))
	})
}
