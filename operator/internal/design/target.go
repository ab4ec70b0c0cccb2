package design

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Findings are the results of the newest analysis that the design needs. The zero value stands for a missing analysis.
type Findings struct {
	// Screened is the verdict of the screening blocks alone.
	Screened experiment.Verdict
	// Valid is the fewest valid blocks of any point and arm in screening waves, Lost the blocks of these waves in which a
	// trial was lost to noise or infrastructure, and not to the program.
	Valid, Lost int
	// HalfWidth is the widest relative half width of a Blocking gate's interval; nil without one.
	HalfWidth *float64
	// ConfirmValid and ConfirmLost are the same counts for confirming waves.
	ConfirmValid, ConfirmLost int
	// Cut and ConfirmCut are the blocks of these waves that were interrupted because their pod or node was lost. They are always replaced
	// and do not count towards blocks.max, so that a run gets the requested number of complete blocks.
	Cut, ConfirmCut int
	// Unrun are the blocks without any attempt, because their node was lost or the run was suspended before they started. They
	// count as not planned.
	Unrun []string
	// LostTurns lists the losses of Lost and ConfirmLost for arms with several builds.
	LostTurns []LostTurn
	// Search holds the levels of every arm's search.
	Search []SearchedArm
}

// Step is the next step of the design: blocks for a purpose, or the end.
type Step struct {
	// Done reports whether no further block is planned.
	Done    bool
	Purpose record.Purpose
	// Blocks of the wave. In a search a cell may be part of fewer.
	Blocks int
	// Cells is the number of blocks that each cell is part of; nil means that every cell is part of every block.
	Cells map[int]int
	// Avoid are nodes to use only if there are no others: those of the screening whose verdict is to be confirmed.
	Avoid []string
	// Earlier counts the blocks that nodes received before.
	Earlier map[string]int
	// BuildTurns counts the turns of builds in blocks of this purpose.
	BuildTurns map[BuildTurn]int
	// Why is the reason for the blocks. If Done, it is the unmet requirement of the design, if any.
	Why string
}

func (t *target) next(waves []record.Wave) Step {
	if idle := t.tally.idle; idle > t.exp.Plan.Retries {
		return Step{Done: true, Why: fmt.Sprintf("no block ran in the last %d waves, and retry.limit is %d", idle, t.exp.Plan.Retries)}
	}
	if t.exp.Plan.Search != nil {
		return t.search()
	}
	step := t.screen()
	if !step.Done {
		return step
	}
	if confirm := t.confirm(step.Why); confirm != nil {
		screens := slices.DeleteFunc(slices.Clone(waves), func(wave record.Wave) bool { return wave.Purpose != record.Screen })
		confirm.Avoid = slices.Sorted(maps.Keys(begun(screens)))
		return *confirm
	}
	return step
}

// tally counts planned and executed blocks.
type tally struct {
	blocks, waves map[record.Purpose]int
	trials        int
	// idle counts the newest waves without any executed block.
	idle int
}

func count(waves []record.Wave, unrun []string) tally {
	out, never := tally{blocks: map[record.Purpose]int{}, waves: map[record.Purpose]int{}}, setOf(unrun)
	for i := range waves {
		ran := 0
		for _, block := range waves[i].Blocks {
			if !never[block.ID] {
				ran++
				out.trials += block.Trials()
			}
		}
		out.idle++
		if ran > 0 {
			out.idle = 0
			out.waves[waves[i].Purpose]++
			out.blocks[waves[i].Purpose] += ran
		}
	}
	return out
}

// setOf returns the set of names. A set keeps lookups fast, because an analysis may list any number of names.
func setOf(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, name := range names {
		out[name] = true
	}
	return out
}

type target struct {
	exp      *experiment.Experiment
	findings Findings
	tally    tally
}

// screen plans screening blocks. After confirmation has started there are no more, because the screened verdict must not change.
func (t *target) screen() Step {
	step := t.screenFurther()
	if t.tally.waves[record.Confirm] > 0 && !step.Done {
		return Step{Done: true}
	}
	return step
}

func (t *target) screenFurther() Step {
	design := t.exp.Plan.Design
	if t.tally.blocks[record.Screen] == 0 {
		return t.within(Step{Purpose: record.Screen, Blocks: design.Blocks.Min}, 0)
	}
	planned := t.tally.blocks[record.Screen] - t.findings.Cut
	step, short := t.replace(record.Screen, design.Blocks.Min, t.findings.Valid, t.findings.Lost, t.findings.Cut)
	if step != nil {
		if room := design.Blocks.Max - planned; room > 0 {
			step.Blocks = min(step.Blocks, room)
			return t.within(*step, t.reserved())
		}
		short = fmt.Sprintf("%s were lost to noise or infrastructure and blocks.max of %d allows none in their place",
			quantity.Count(step.Blocks, "block"), design.Blocks.Max)
	}
	if design.Stop != nil {
		return t.narrow(planned)
	}
	return Step{Done: true, Why: short}
}

// replace plans replacements for blocks that were lost to noise or infrastructure. Blocks in which the program failed are not replaced,
// because the failure is their result. The step is nil if no block is missing or replaceable; short is the reason then.
func (t *target) replace(purpose record.Purpose, wanted, valid, lost, cut int) (step *Step, short string) {
	// Blocks that did not run are always planned again. Waves after the first count as replacements, also those in which an adaptive
	// design grew; its stopping rule requests the missing blocks then.
	unrun := wanted - t.tally.blocks[purpose]
	missing := max(min(wanted-valid, unrun+lost), unrun+cut)
	if t.tally.waves[purpose] > t.exp.Plan.Retries && missing > max(unrun, 0) {
		short = fmt.Sprintf("%s lost to noise or infrastructure, and retry.limit of %d waves in their place is used up",
			quantity.Count(missing, "block"), t.exp.Plan.Retries)
		missing = unrun
	}
	if missing <= 0 {
		return nil, short
	}
	why := "in place of " + quantity.Count(missing, "block") + " lost to noise or infrastructure"
	return &Step{Purpose: purpose, Blocks: missing, Why: why}, short
}

// growth limits the blocks that one wave may add, because the half width that determines the number is itself an estimate.
const (
	growthAtMost  = 2
	growthAtLeast = 2
)

// narrow plans the blocks until the expected interval is as narrow as required: its width is proportional to the inverse square root of
// their number.
func (t *target) narrow(planned int) Step {
	design := t.exp.Plan.Design
	asked, valid, more := design.Stop.RelativeHalfWidth, t.findings.Valid, 0
	switch width := t.findings.HalfWidth; {
	case width != nil && *width <= asked:
		return Step{Done: true}
	case width == nil && valid >= max(experiment.MinBlocks, design.Blocks.Min):
		return Step{Done: true, Why: "a Blocking gate has no interval, so there is nothing to make narrower"}
	case width == nil:
		more = max(experiment.MinBlocks, design.Blocks.Min) - valid
	default:
		// A very small requested width could exceed an integer.
		need := math.Ceil(float64(valid) * (*width / asked) * (*width / asked))
		more = max(growthAtLeast, int(min(need, float64(growthAtMost*valid)))-valid)
	}
	have := "no interval yet"
	if t.findings.HalfWidth != nil {
		have = fmt.Sprintf("the widest interval is ±%s and design.stop asks for ±%s", quantity.Percent(*t.findings.HalfWidth, 3),
			quantity.Percent(asked, 3))
	}
	room := design.Blocks.Max - planned
	if room <= 0 {
		return Step{Done: true, Why: fmt.Sprintf("%s after blocks.max of %d%s", have, design.Blocks.Max, t.further(asked))}
	}
	step := t.within(Step{Purpose: record.Screen, Blocks: min(more, room), Why: have}, t.reserved())
	if step.Done {
		step.Why = fmt.Sprintf("%s and %s%s", have, step.Why, t.further(asked))
	}
	return step
}

// further describes the number of further blocks that are expected to be needed.
func (t *target) further(asked float64) string {
	if t.findings.HalfWidth == nil || t.findings.Valid == 0 {
		return ""
	}
	ratio := *t.findings.HalfWidth / asked
	more := math.Ceil(float64(t.findings.Valid)*ratio*ratio) - float64(t.findings.Valid)
	return "; about " + quantity.Decimals(max(1, more), 0) + " further blocks would do"
}

// reserved returns the number of blocks that the budget must leave for confirmation.
func (t *target) reserved() int {
	if confirm := t.exp.Plan.Design.Confirm; confirm != nil {
		return confirm.Blocks
	}
	return 0
}

// confirm plans fresh blocks once the screening has a verdict. It returns nil if there is nothing to confirm.
func (t *target) confirm(shortOf string) *Step {
	design := t.exp.Plan.Design
	if design.Confirm == nil || t.findings.Screened != experiment.VerdictGo && t.findings.Screened != experiment.VerdictNoGo {
		return nil
	}
	wanted := design.Confirm.Blocks
	step := &Step{Purpose: record.Confirm, Blocks: wanted, Why: fmt.Sprintf("screened %s is confirmed on fresh blocks", t.findings.Screened)}
	if t.tally.waves[record.Confirm] > 0 {
		var short string
		step, short = t.replace(record.Confirm, wanted, t.findings.ConfirmValid, t.findings.ConfirmLost, t.findings.ConfirmCut)
		if step == nil && short != "" {
			return &Step{Done: true, Why: short}
		}
		if step == nil {
			return nil
		}
	}
	out := t.within(*step, 0)
	if out.Done && shortOf != "" {
		out.Why = shortOf + "; " + out.Why
	}
	return &out
}

// within reduces a step to the budget, less the reserved blocks.
func (t *target) within(step Step, reserved int) Step {
	perBlock := t.exp.Plan.Design.TrialsPerBlock(t.exp.CellsPerBlock())
	room := (t.exp.Plan.Budget.Trials-t.tally.trials)/perBlock - reserved
	if room <= 0 {
		return Step{Done: true, Why: t.budgetSpent()}
	}
	step.Blocks = min(step.Blocks, room, maxBlocksPerWave)
	return step
}

func (t *target) budgetSpent() string {
	return fmt.Sprintf("budget.trials of %d allows no further block", t.exp.Plan.Budget.Trials)
}
