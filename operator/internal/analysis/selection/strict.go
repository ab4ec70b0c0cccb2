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

// mostGaps is how many missing waves are named: the number of the last one is for whoever writes an object to choose.
const mostGaps = 100

// findGaps names the waves that must have been there: waves are numbered from 0 without a gap, and each has a plan before anything
// of it runs.
func (s *Selection) findGaps(exp *experiment.Experiment, evidence record.Evidence, through int) {
	planned, ran, last := map[int]bool{}, map[int]bool{}, -1
	for _, wave := range evidence.Waves {
		if wave.Wave <= through {
			planned[wave.Wave] = true
			last = max(last, wave.Wave)
		}
	}
	for i := range evidence.Attempts {
		if attempt := &evidence.Attempts[i]; attempt.Wave <= through && attempt.Run.UID == exp.Run.UID && attempt.Experiment == exp.Digest {
			ran[attempt.Wave] = true
			last = max(last, attempt.Wave)
		}
	}
	// A plan that cannot be read is there all the same, also the newest.
	unread := map[string]bool{}
	for _, problem := range evidence.Problems {
		unread[problem.Key] = true
		var wave int
		if _, err := fmt.Sscanf(problem.Key, "waves/%d/wave.json", &wave); err == nil && wave <= through {
			last = max(last, wave)
		}
	}
	for wave := 0; wave <= last && len(s.Gaps) < mostGaps; wave++ {
		key := record.WaveKey(wave)
		switch {
		case unread[key]:
			s.Gaps = append(s.Gaps, key)
		case len(planned) > 0 && !planned[wave]:
			s.Gaps = append(s.Gaps, key)
			s.reject(key, absent, "the plan of wave %d is missing, and there are later ones: waves are numbered from 0 without a gap", wave)
		case len(planned) == 0 && !ran[wave]:
			s.Gaps = append(s.Gaps, key)
			s.reject(key, absent, "nothing of wave %d is there, and there are attempts of later ones: waves are numbered from 0 without a gap", wave)
		}
	}
}

// findMissingBlocks names the block at which the numbers break off: they run from 0 through all waves, each wave going on where the one
// before it ended. Whoever takes some blocks out of the ledger, with their plans, chooses what is judged, and a number that is there again
// would hide it. Where a wave is missing so are its blocks, and it was named.
func (s *Selection) findMissingBlocks(exp *experiment.Experiment, planned plan, evidence record.Evidence, through int) {
	if len(s.Gaps) > 0 {
		return
	}
	type place struct{ wave, number int }
	there := map[place]string{}
	see := func(block string) {
		wave, ok := record.WaveOf(block)
		if number, ok2 := record.BlockNumber(block); ok && ok2 && wave <= through {
			there[place{wave, number}] = block
		}
	}
	if planned.known {
		for block := range s.Purposes {
			see(block)
		}
	} else {
		for i := range evidence.Attempts {
			if attempt := &evidence.Attempts[i]; attempt.Run.UID == exp.Run.UID && attempt.Experiment == exp.Digest {
				see(attempt.Block)
			}
		}
		for _, problem := range evidence.Problems {
			see(path.Base(path.Dir(path.Dir(problem.Key))))
		}
		for i := range evidence.Unfinished {
			see(evidence.Unfinished[i].Block)
		}
	}
	inOrder := slices.SortedFunc(maps.Keys(there), func(a, b place) int { return cmp.Or(a.wave-b.wave, a.number-b.number) })
	for next, at := range inOrder {
		const rule = "blocks are numbered from 0 through all waves without a gap, and none twice"
		name := there[at]
		switch {
		case at.number == next:
			continue
		case at.number > next:
			name = fmt.Sprintf("block %d", next)
			s.reject(name, absent, "it is missing, and the next one is %s: %s", there[at], rule)
		default:
			s.reject(name, absent, "an earlier wave has its number or a larger one: %s", rule)
		}
		s.Gaps = append(s.Gaps, name)
		return
	}
}

// findUnplannedWarmups names the block in which an arm has more warm-ups than the design asks for. What is called a warm-up is not
// compared, so that calling slow trials so would take them out.
func (s *Selection) findUnplannedWarmups(exp *experiment.Experiment, planned plan, genuine []*record.Attempt) {
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
	for _, attempt := range genuine {
		if attempt.Warmup && !planned.known {
			counts[of{s.Cells[attempt], attempt.Block, trial.Executor(attempt)}]++
		}
	}
	maps.DeleteFunc(counts, func(_ of, n int) bool { return n <= exp.Plan.Design.WarmupTrials })
	if len(counts) == 0 {
		return
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(counts)), func(a, b of) int {
		return cmp.Or(record.CompareNames(a.block, b.block), a.Arm-b.Arm, a.Point-b.Point)
	})
	s.Gaps = append(s.Gaps, first.block)
	s.reject(first.block, foreign, "it has %d warm-ups of arm %s at one point and the design asks for %d: what is called a warm-up is not "+
		"compared", counts[first], exp.Arms[first.Arm].Name, exp.Plan.Design.WarmupTrials)
}

// contradictsPurpose describes how a wave runs for something that the experiment does not ask for, so that its blocks would be left out
// of what is judged; empty where it does.
func contradictsPurpose(plan *experiment.Plan, why record.Purpose) string {
	switch {
	case why == record.Search && plan.Search == nil:
		return "its purpose is search and the experiment has no search"
	case why == record.Confirm && plan.Search == nil && plan.Design.Confirm == nil:
		return "its purpose is confirm and the experiment confirms nothing"
	}
	return ""
}

// copied reports, of the used trials, the first two in different blocks that are one process: it began at one instant on one node and took
// as long to the last digit. Copies narrow an interval and measure nothing. A block whose trials all begin at once says nothing of when
// they did.
func copied(used []*record.Attempt) string {
	type process struct {
		node    string
		began   int64
		seconds float64
	}
	first, began := map[process]*record.Attempt{}, map[string]map[int64]bool{}
	for _, attempt := range used {
		Inner(began, attempt.Block)[attempt.StartedAt.UnixNano()] = true
	}
	for _, attempt := range used {
		of := process{trial.NodeOf(attempt), attempt.StartedAt.UnixNano(), attempt.DurationSeconds}
		switch before := first[of]; {
		case len(began[attempt.Block]) < 2:
		case before == nil:
			first[of] = attempt
		case before.Block != attempt.Block:
			return fmt.Sprintf("trials %s and %s began at the same instant and took as long to the last digit, so that one is a copy of the other",
				before.Trial, attempt.Trial)
		}
	}
	return ""
}
