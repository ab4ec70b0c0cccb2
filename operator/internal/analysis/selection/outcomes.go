package selection

import (
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Outcomes are the fates of the trials, and sums of them.
type Outcomes struct {
	Trials analysis.Trials
	Lost   Lost
	// Unfinished are the executions of trials that started and left no attempt.
	Unfinished []Unfinished
	// Outputless are, by arm, the trials with an unknown output.
	Outputless map[int]Outputless
	// fates are those of the trials that are not used, or have an object that may not be used.
	fates []fate
}

// outcomesOf sums the fates. Trials that a ledger without plans is presumed to miss count as missing.
func outcomesOf(exp *experiment.Experiment, from reports, found fates, useless map[*record.Attempt]bool) Outcomes {
	further := unfinishedLosses(from.unfinished)
	further = append(further, uselessLosses(found)...)
	further = append(further, warmupLosses(from.admission)...)
	further = append(further, executionLosses(from.admission, found, useless)...)
	all := found
	if !from.planned.known {
		all = found.with(presumed(exp, found.trials))
	}
	out := Outcomes{
		Trials: countTrials(all, warmupTrials(from.planned, from.admission)), Lost: sumLosses(all, further), Unfinished: from.unfinished,
		fates: found.exceptions(),
	}
	out.Trials.Attempts = len(from.attempts)
	out.Outputless = findOutputless(from.admission.Succeeded, out.fates, from.unfinished)
	return out
}

// warmupTrials returns the warm-ups that were planned or ran.
func warmupTrials(planned plan, of Admission) map[string]bool {
	out := map[string]bool{}
	for name, slot := range planned.slots {
		if slot.warmup {
			out[name] = true
		}
	}
	for _, attempt := range of.Own {
		if attempt.Warmup {
			out[attempt.Trial] = true
		}
	}
	return out
}

// countTrials counts the trials by their state. Each counts once.
func countTrials(trials fates, warmups map[string]bool) analysis.Trials {
	out := analysis.Trials{Planned: len(trials.trials) + len(warmups), Warmups: len(warmups)}
	for _, found := range trials.trials {
		switch found.state {
		case used:
			out.Used++
		case failed:
			out.Failed++
		case invalid:
			out.Invalid++
		default:
			out.Missing++
		}
	}
	return out
}

// Outputless counts the trials of an arm with an unknown output.
type Outputless struct {
	Count int
	// First is the first of them.
	First string
}

// findOutputless counts, by arm, the measured trials whose output is unknown. The output of an execution that does not count is known,
// unless another object of the trial may not be used.
func findOutputless(succeeded []*record.Attempt, trials []fate, unfinished []Unfinished) map[int]Outputless {
	known := map[string]bool{}
	for _, found := range trials {
		known[found.trial] = false
	}
	for _, one := range unfinished {
		known[one.trial] = false
	}
	for _, attempt := range succeeded {
		if _, exception := known[attempt.Trial]; exception {
			known[attempt.Trial] = true
		}
	}
	out, seen := map[int]Outputless{}, map[string]bool{}
	add := func(c Cell, trial string) {
		if seen[trial] {
			return
		}
		seen[trial] = true
		of := out[c.Arm]
		if of.Count++; of.First == "" || record.CompareNames(trial, of.First) < 0 {
			of.First = trial
		}
		out[c.Arm] = of
	}
	for _, found := range trials {
		if found.invalidated() || found.absent != "" && !known[found.trial] {
			add(found.cell, found.trial)
		}
	}
	for _, one := range unfinished {
		if one.countsOnce() && !known[one.trial] {
			add(one.Cell, one.trial)
		}
	}
	return out
}
