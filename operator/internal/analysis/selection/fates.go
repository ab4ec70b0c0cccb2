package selection

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// state is the state of a measured trial, from the weakest to the strongest: if several objects of the ledger report on a trial, the
// strongest state decides.
type state uint8

const (
	unreported state = iota
	missing
	unended
	invalid
	failed
	used
)

// fate is the fate of a measured trial.
type fate struct {
	trial, block string
	cell         Cell
	state        state
	// how names the loss; empty for a trial that is used.
	how string
	// useless is the reason why objects of this trial may not be used; empty otherwise. The program may have spoilt them to hide its result.
	useless string
	// known reports whether an attempt that may be used reports the outcome.
	known bool
	// planned reports whether a plan has the trial, and seen whether the ledger has an attempt of it, be it foreign.
	planned, seen bool
	// removed reports whether the only attempt is missing that an earlier analysis read.
	removed bool
	// absent names the loss of a trial of a block that ran if its outcome is unknown and no object of it is useless; empty otherwise.
	absent string
}

// fates holds exactly one fate for each measured trial that was planned or seen.
type fates struct {
	// trials are in the order of their names.
	trials []fate
	// ran are the blocks of which anything ran, and partial those with a trial that is not lost with its whole block.
	ran, partial map[string]bool
}

// reports are the results of other steps that report on trials.
type reports struct {
	planned    plan
	admission  Admission
	attempts   []*record.Attempt
	unfinished []Unfinished
	problems   []record.Problem
	// removed are the missing objects that an earlier analysis read.
	removed []Exclusion
}

// fatesOf decides the fates of all measured trials.
func fatesOf(from reports) fates {
	trials := make([]fate, 0, len(from.planned.slots))
	from.eachTrial(func(name string, objects trialObjects) {
		if found, ok := objects.fate(from.admission); ok {
			found.trial = name
			trials = append(trials, found)
		}
	})
	ran, partial := from.blocksThatRan(trials), partialBlocks(trials)
	for i, found := range trials {
		trials[i] = found.inBlock(ran[found.block], partial[found.block])
	}
	return fates{trials, ran, partial}
}

// find returns the fate of a trial; false if it has none.
func (f fates) find(name string) (fate, bool) {
	i, ok := slices.BinarySearchFunc(f.trials, name, func(found fate, name string) int { return record.CompareNames(found.trial, name) })
	if !ok {
		return fate{}, false
	}
	return f.trials[i], true
}

// trialObjects are the objects of the ledger that name one trial.
type trialObjects struct {
	slot       *plannedSlot
	attempts   []*record.Attempt
	unfinished []Unfinished
	unreadable bool
	removed    bool
}

// eachTrial visits the objects by the trial that they name, in the order of the names. It keeps no index of the attempts, because a
// hundred thousand entries would take a tenth of the memory of the analysis.
func (r reports) eachTrial(visit func(name string, objects trialObjects)) {
	unfinished, unreadable, removed := map[string][]Unfinished{}, map[string]bool{}, map[string]bool{}
	names := make([]string, 0, len(r.planned.slots))
	for name, slot := range r.planned.slots {
		if !slot.warmup {
			names = append(names, name)
		}
	}
	for _, attempt := range r.attempts {
		if slot := r.planned.slots[attempt.Trial]; slot == nil || slot.warmup {
			names = append(names, attempt.Trial)
		}
	}
	for _, one := range r.unfinished {
		if one.countsOnce() {
			names, unfinished[one.trial] = append(names, one.trial), append(unfinished[one.trial], one)
		}
	}
	for _, problem := range r.problems {
		name := trialOfKey(problem.Key)
		names, unreadable[name] = append(names, name), true
	}
	for _, one := range r.removed {
		name := trialOfKey(one.Attempt)
		names, removed[name] = append(names, name), true
	}
	slices.SortFunc(names, record.CompareNames)
	attempts := r.attempts // Those of the names to come: they are sorted by trial.
	for _, name := range slices.Compact(names) {
		objects := trialObjects{unfinished: unfinished[name], unreadable: unreadable[name], removed: removed[name]}
		if slot := r.planned.slots[name]; slot != nil && !slot.warmup {
			objects.slot = slot
		}
		n := 0
		for n < len(attempts) && attempts[n].Trial == name {
			n++
		}
		objects.attempts, attempts = attempts[:n], attempts[n:]
		visit(name, objects)
	}
}

// trialOfKey returns the trial in the key of an attempt object.
func trialOfKey(key string) string { return strings.TrimSuffix(path.Base(key), ".json") }

// fate decides the fate of the trial; false if no plan has the trial and no object of the experiment reports on it, or if it is a warm-up.
func (o *trialObjects) fate(of Admission) (fate, bool) {
	var out fate
	if o.slot != nil {
		out = fate{state: missing, cell: o.slot.cell, block: o.slot.block, how: lostMissing}
	}
	stronger := func(next fate) {
		if next.state > out.state {
			out = next
		}
	}
	known := false
	var useless []string
	for _, attempt := range o.attempts {
		cell, own := of.Cells[attempt]
		kind := of.Kinds[attempt]
		if !own {
			useless = append(useless, howLost(kind, attempt))
			continue
		}
		known = known || slices.Contains(telling, kind)
		if !attempt.Warmup {
			stronger(fate{state: stateOf(kind), cell: cell, block: attempt.Block, how: howLost(kind, attempt)})
		}
	}
	for _, one := range o.unfinished {
		stronger(fate{state: unended, cell: one.Cell, block: one.block, how: LostUnfinished})
	}
	if out.state == unreported {
		return fate{}, false
	}
	if o.unreadable {
		useless = append(useless, string(unreadable))
	}
	for _, how := range useless {
		stronger(fate{state: invalid, cell: out.cell, block: out.block, how: how})
		out.useless = how
	}
	if o.removed && out.state <= unended {
		out.how, out.useless, out.removed = string(altered), string(altered), true
	}
	out.known, out.planned, out.seen = known, o.slot != nil, len(o.attempts) > 0
	return out, true
}

// stateOf returns the state that an attempt of the experiment gives its trial.
func stateOf(kind Rejection) state {
	switch kind {
	case "":
		return used
	case Failed:
		return failed
	case notStarted:
		return missing
	default:
		return invalid
	}
}

// inBlock completes the fate of a trial by those of its block. A cause that takes whole blocks does not select trials. If it took a part of
// the block, that part may be the slow trials.
func (f fate) inBlock(ran, partial bool) fate {
	if f.isAbsent(ran, partial) {
		f.absent = f.how
	}
	if partial && slices.Contains(lostWithBlocks, f.how) {
		f.how += besideOthers
	}
	return f
}

func (f fate) isAbsent(ran, partial bool) bool {
	switch {
	case f.known || f.useless != "":
		return false
	case f.how == string(superseded): // The execution that counts has no attempt of it.
		return true
	case f.state == missing && f.seen: // It did not start, and others of its block did.
		return partial
	case f.state == missing:
		return f.planned && ran
	default:
		return partial && f.how == string(staleLease)
	}
}

// invalidated reports whether the outcome is unknown because the objects of the trial may not be used.
func (f fate) invalidated() bool { return f.useless != "" && !f.known }

// blocksThatRan returns the blocks of which the ledger has, or had, any object of a trial.
func (r reports) blocksThatRan(trials []fate) map[string]bool {
	out := map[string]bool{}
	for _, attempt := range r.attempts {
		out[attempt.Block] = true
	}
	for _, one := range r.unfinished {
		if one.countsOnce() {
			out[one.block] = true
		}
	}
	for _, problem := range r.problems {
		out[blockOfKey(problem.Key)] = true
	}
	for _, found := range trials {
		if found.removed {
			out[found.block] = true
		}
	}
	return out
}

// partialBlocks returns the blocks with a trial that ran and is not lost by a cause that takes whole blocks.
func partialBlocks(trials []fate) map[string]bool {
	out := map[string]bool{}
	for _, found := range trials {
		if found.state >= invalid && !slices.Contains(lostWithBlocks, found.how) {
			out[found.block] = true
		}
	}
	return out
}

var trialName = regexp.MustCompile("^" + record.TrialForm + "$")

// findUnassigned returns the keys of the useless objects of a ledger without plans whose trial has no fate. They cannot be assigned to an
// arm.
func (r reports) findUnassigned(found fates) (keys []string) {
	if r.planned.known {
		return nil
	}
	unassigned := func(name string) bool {
		_, known := found.find(name)
		return !known && trialName.MatchString(name)
	}
	for _, attempt := range r.attempts {
		if _, own := r.admission.Cells[attempt]; !own && unassigned(attempt.Trial) {
			keys = append(keys, sourceOf(attempt).Key)
		}
	}
	var unread []string
	for _, problem := range r.problems {
		if unassigned(trialOfKey(problem.Key)) {
			unread = append(unread, problem.Key)
		}
	}
	slices.SortFunc(unread, record.CompareNames)
	return append(keys, unread...)
}

// presumed returns the trials that a ledger without plans is presumed to miss: every block was meant to run every arm as often as the block
// and arm with most trials.
func presumed(exp *experiment.Experiment, trials []fate) (out []fate) {
	seen := map[string]map[Cell]int{}
	most := 0
	for _, found := range trials {
		in := Inner(seen, found.block)
		in[found.cell]++
		most = max(most, in[found.cell])
	}
	for block, cells := range seen {
		for point := range exp.Points {
			var there int
			for arm := range exp.Arms {
				there += cells[Cell{point, arm}]
			}
			if there == 0 && exp.Plan.Search != nil {
				continue // A block of a search runs some of the loads.
			}
			for arm := range exp.Arms {
				for n := cells[Cell{point, arm}]; n < most; n++ {
					name := fmt.Sprintf("%s, %s at %s, trial %d", block, exp.Arms[arm].Name, analysis.PointName(exp.Points[point].Key), n+1)
					out = append(out, fate{trial: name, state: missing, cell: Cell{point, arm}, block: block, how: lostMissing})
				}
			}
		}
	}
	return out
}

// with returns the fates together with further ones, in the order of the trials' names.
func (f fates) with(further []fate) fates {
	trials := slices.Concat(f.trials, further)
	slices.SortFunc(trials, func(a, b fate) int { return record.CompareNames(a.trial, b.trial) })
	return fates{trials, f.ran, f.partial}
}

// exceptions returns the fates of the trials that are not used, or have an object that may not be used.
func (f fates) exceptions() (out []fate) {
	for _, found := range f.trials {
		if found.state != used || found.useless != "" {
			out = append(out, found)
		}
	}
	return out
}
