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

// Findings are what the design needs of the newest analysis. The zero value means that there is none yet.
type Findings struct {
	// Screened is what the screening blocks alone say.
	Screened experiment.Verdict
	// Valid is the fewest valid blocks of any point and arm in screening waves, Lost the blocks of these waves in which a
	// trial was lost to noise or infrastructure, and not to the program.
	Valid, Lost int
	// HalfWidth is the widest relative half width of a Blocking gate's interval; nil without one.
	HalfWidth *float64
	// ConfirmValid and ConfirmLost are the same for confirming waves.
	ConfirmValid, ConfirmLost int
	// Cut and ConfirmCut are the blocks of these waves that were not executed to their end, because their pod or node was lost. Others take
	// their place whatever they measured before, and blocks.max does not count them: whoever asks for ten blocks gets ten whole ones.
	Cut, ConfirmCut int
	// Unrun are the blocks that left no attempt at all: their node was lost, or the run suspended, before they began. They
	// count as if they had never been planned.
	Unrun []string
	// LostTurns are what Lost and ConfirmLost count, one by one, of arms with several builds.
	LostTurns []LostTurn
	// Search is what is known of every arm's loads.
	Search []SearchedArm
}

// Step is what the design asks for next: blocks for a purpose, or nothing more.
type Step struct {
	// Done reports whether no further block is planned.
	Done    bool
	Purpose record.Purpose
	// Blocks of the wave. In a search a cell may be part of fewer.
	Blocks int
	// Cells is the number of blocks that each cell is part of; nil means that every cell is part of every block.
	Cells map[int]int
	// Avoid are nodes not to use if there are others: those of the screening whose verdict is to be confirmed.
	Avoid []string
	// Earlier counts the blocks that nodes were given before.
	Earlier map[string]int
	// BuildTurns counts the turns that builds had in blocks of this purpose.
	BuildTurns map[BuildTurn]int
	// Why is the reason for the blocks. If Done, it is what the design lacks, if anything.
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
		screens := slices.DeleteFunc(slices.Clone(waves), func(wave record.Wave) bool { return wave.Why() != record.Screen })
		confirm.Avoid = slices.Sorted(maps.Keys(begun(screens)))
		return *confirm
	}
	return step
}

// tally counts what was planned and ran.
type tally struct {
	blocks, waves map[record.Purpose]int
	trials        int
	// idle counts the newest waves of which nothing ran.
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
			out.waves[waves[i].Why()]++
			out.blocks[waves[i].Why()] += ran
		}
	}
	return out
}

// setOf has each name once. There are as many as whoever writes an analysis wants, and as many blocks as whoever makes a run does.
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

// screen asks for screening blocks. Once confirmation has started, there are no more: what is confirmed must not change.
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

// replace asks for replacements of blocks that were lost to noise or infrastructure. Blocks in which the program failed are not replaced:
// the failure is their result. The step is nil when nothing is missing or may be replaced; short is what is missing then.
func (t *target) replace(purpose record.Purpose, wanted, valid, lost, cut int) (step *Step, short string) {
	// Blocks that never ran are always planned again. Waves after the first count as replacements; those of an adaptive design that
	// grew count too, and its own rule asks for what is missing then.
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

// growth limits how many blocks one wave may add, because the half width that the number is computed from is itself an estimate.
const (
	growthAtMost  = 2
	growthAtLeast = 2
)

// narrow asks for the blocks until the interval is expected to be as narrow as required: its width is proportional to the inverse square
// root of their number.
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
		// More than an integer holds, where next to nothing is asked for.
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

// further describes how many more blocks are expected to be needed.
func (t *target) further(asked float64) string {
	if t.findings.HalfWidth == nil || t.findings.Valid == 0 {
		return ""
	}
	ratio := *t.findings.HalfWidth / asked
	more := math.Ceil(float64(t.findings.Valid)*ratio*ratio) - float64(t.findings.Valid)
	return "; about " + quantity.Decimals(max(1, more), 0) + " further blocks would do"
}

// reserved is the number of blocks that the budget must leave for the confirmation.
func (t *target) reserved() int {
	if confirm := t.exp.Plan.Design.Confirm; confirm != nil {
		return confirm.Blocks
	}
	return 0
}

// confirm asks for fresh blocks once the screening has an answer. It is nil when there is nothing to confirm.
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

// within reduces a step to what the budget allows, less the reserved blocks.
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
