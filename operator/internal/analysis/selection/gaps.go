package selection

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// mostGaps limits how many missing waves are named: the number of the last wave is read from an object that anyone may have written.
const mostGaps = 100

// findUnreadable excludes the objects that cannot be read.
func findUnreadable(problems []record.Problem) (out []Exclusion) {
	for _, problem := range problems {
		out = append(out, exclude(problem.Key, unreadable, "%s", problem.Reason))
	}
	return out
}

// findMissingWaves finds the gaps in the numbers of the waves. They are numbered from 0 without a gap, and a wave is planned before it
// runs.
func findMissingWaves(exp *experiment.Experiment, evidence record.Evidence, through int) findings {
	planned, ran, last := map[int]bool{}, map[int]bool{}, -1
	for _, wave := range evidence.Waves {
		if wave.Wave <= through {
			planned[wave.Wave] = true
			last = max(last, wave.Wave)
		}
	}
	for i := range evidence.Attempts {
		if attempt := &evidence.Attempts[i]; attempt.Wave <= through && isOf(exp, attempt) {
			ran[attempt.Wave] = true
			last = max(last, attempt.Wave)
		}
	}
	// An unreadable plan exists, and may be the newest one.
	unread := map[string]bool{}
	for _, problem := range evidence.Problems {
		unread[problem.Key] = true
		var wave int
		if _, err := fmt.Sscanf(problem.Key, "waves/%d/wave.json", &wave); err == nil && wave <= through {
			last = max(last, wave)
		}
	}
	var found findings
	for wave := 0; wave <= last && len(found.gaps) < mostGaps; wave++ {
		key := record.WaveKey(wave)
		switch {
		case unread[key]:
			found.gaps = append(found.gaps, key)
		case len(planned) > 0 && !planned[wave]:
			found.add(key, absent, "the plan of wave %d is missing, and there are later ones: waves are numbered from 0 without a gap", wave)
		case len(planned) == 0 && !ran[wave]:
			found.add(key, absent, "nothing of wave %d is there, and there are attempts of later ones: waves are numbered from 0 without a gap",
				wave)
		}
	}
	return found
}

// isOf reports whether an attempt names the run and the experiment.
func isOf(exp *experiment.Experiment, attempt *record.Attempt) bool {
	return attempt.Run.UID == exp.Run.UID && attempt.Experiment == exp.Digest
}

// findMissingBlocks finds the first block whose number does not follow the one before it: blocks are numbered from 0 through all waves.
// Removing blocks from a ledger together with their plans would choose which of them are judged, and using a number twice would hide it.
func findMissingBlocks(exp *experiment.Experiment, planned plan, evidence record.Evidence, through int) findings {
	type place struct{ wave, number int }
	there := map[place]string{}
	for _, block := range namedBlocks(exp, planned, evidence) {
		wave, ok := record.WaveOf(block)
		if number, ok2 := record.BlockNumber(block); ok && ok2 && wave <= through {
			there[place{wave, number}] = block
		}
	}
	var found findings
	inOrder := slices.SortedFunc(maps.Keys(there), func(a, b place) int { return cmp.Or(a.wave-b.wave, a.number-b.number) })
	for next, at := range inOrder {
		const rule = "blocks are numbered from 0 through all waves without a gap, and none twice"
		switch {
		case at.number == next:
			continue
		case at.number > next:
			found.add(fmt.Sprintf("block %d", next), absent, "it is missing, and the next one is %s: %s", there[at], rule)
		default:
			found.add(there[at], absent, "an earlier wave has its number or a larger one: %s", rule)
		}
		break
	}
	return found
}

// namedBlocks returns the blocks of the plans; without plans, those that any object of the run names.
func namedBlocks(exp *experiment.Experiment, planned plan, evidence record.Evidence) (blocks []string) {
	if planned.known {
		return slices.Collect(maps.Keys(planned.purposes))
	}
	for i := range evidence.Attempts {
		if attempt := &evidence.Attempts[i]; isOf(exp, attempt) {
			blocks = append(blocks, attempt.Block)
		}
	}
	for _, problem := range evidence.Problems {
		blocks = append(blocks, blockOfKey(problem.Key))
	}
	for i := range evidence.Unfinished {
		blocks = append(blocks, evidence.Unfinished[i].Block)
	}
	return blocks
}

// blockOfKey returns the block in the key of an attempt object.
func blockOfKey(key string) string { return path.Base(path.Dir(path.Dir(key))) }

// findUnplannedWarmups finds the first block in which an arm has more warm-ups than the design asks for. Warm-ups are not compared, so that
// calling slow trials warm-ups would remove them from the comparison.
func findUnplannedWarmups(exp *experiment.Experiment, planned plan, own []*record.Attempt, cells map[*record.Attempt]Cell) findings {
	type of struct {
		Cell
		block, executor string
	}
	counts := map[of]int{}
	for _, slot := range planned.slots {
		if slot.warmup {
			counts[of{slot.cell, slot.block, ""}]++
		}
	}
	for _, attempt := range own {
		if attempt.Warmup && !planned.known {
			counts[of{cells[attempt], attempt.Block, trial.Executor(attempt)}]++
		}
	}
	maps.DeleteFunc(counts, func(_ of, n int) bool { return n <= exp.Plan.Design.WarmupTrials })
	var found findings
	if len(counts) == 0 {
		return found
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(counts)), func(a, b of) int {
		return cmp.Or(record.CompareNames(a.block, b.block), a.Arm-b.Arm, a.Point-b.Point, cmp.Compare(a.executor, b.executor))
	})
	found.add(first.block, foreign, "it has %d warm-ups of arm %s at one point and the design asks for %d: warm-ups are not compared",
		counts[first], exp.Arms[first.Arm].Name, exp.Plan.Design.WarmupTrials)
	return found
}
