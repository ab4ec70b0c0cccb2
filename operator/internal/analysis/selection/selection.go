// Package selection decides which attempts of a ledger may be judged, and records the fate of all others with its reason: altered,
// foreign, stale, failed, unusable, from another environment or beyond a noise limit. It estimates nothing.
//
// Select is a pipeline of pure steps. A rule for attempts takes those that the rule before it admitted and returns a ruling; a check of
// the ledger returns findings. No step writes into the result of another one: Select alone puts them together.
package selection

import (
	"slices"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Selection is the sorted evidence: the results of the steps, side by side.
type Selection struct {
	Admission
	Integrity
	Environments
	Arms
	Outcomes
	Visits
	// Purposes are those of the planned blocks.
	Purposes
	// Histograms are the decoded histograms of the results that were checked.
	Histograms trial.Histograms
	Noise      Noise
	// Digest is the sha256 of the checksum list of the attempts and start markers.
	Digest string
}

// Admission states which attempts count and which rule rejected each of the others. Every list is in the order of the trials' names.
type Admission struct {
	// Own are the attempts of this experiment.
	Own []*record.Attempt
	// Succeeded are the successful ones of Own, including those that do not count: an output that differs is wrong in any of them.
	Succeeded []*record.Attempt
	// Judged are the attempts that were compared with the noise limits: those used, and those that the limits rejected.
	Judged []*record.Attempt
	// Used are the attempts that the figures rest on, at most one for each trial.
	Used []*record.Attempt
	// Cells maps each attempt of Own to its cell.
	Cells map[*record.Attempt]Cell
	// Kinds maps each rejected attempt to the kind of its rejection.
	Kinds map[*record.Attempt]Rejection
	// Rejected lists the rejected objects in the order of the rules.
	Rejected []Exclusion
}

// Integrity reports evidence that is missing, altered or contradicts itself, so that no gate may decide on the rest.
type Integrity struct {
	// Gaps are the plans, blocks and attempts that are missing, unreadable or contradict the experiment.
	Gaps []string
	// Altered are the keys of objects that an earlier analysis read and that are missing or changed now.
	Altered []string
	// Separated describes trials of one block that did not run next to each other; empty if all did.
	Separated string
	// Copied describes a trial that is a copy of a trial of another block; empty without one.
	Copied string
}

// Arms reports arms that did not run one and the same program.
type Arms struct {
	// Changed describes, by arm, how its program changed during the run.
	Changed map[int]string
	// OtherWorkloads are the arms whose results name another workload than the baseline's.
	OtherWorkloads map[int]OtherWorkload
	// Reports compares the names, units and shapes of the arms' results.
	Reports Reports
}

// Select selects the attempts that count from the waves up to and including wave. The result depends on neither the order of the
// attempts nor that of the ledger's objects. Of several rules that would reject an attempt, the first one does.
func Select(exp *experiment.Experiment, evidence record.Evidence, wave int) *Selection {
	evidence = inOrder(evidence)
	attempts, markers := sortedAttempts(evidence.Attempts, wave), markersUpTo(evidence.Unfinished, wave)
	sums := checksumsOf(attempts, evidence.Problems)

	// Checks of the ledger.
	waves := findMissingWaves(exp, evidence, wave)
	planned, plans := indexPlan(exp, evidence.Waves, wave)
	missing := findMissingObjects(evidence.Sealed, sums)
	unaltered := rejectAltered(evidence.Sealed, attempts)
	own, cells := rejectForeign(exp, planned, unaltered.admitted)
	gaps := slices.Concat(waves.gaps, plans.gaps, findUnplanned(exp, planned, unaltered.admitted))
	var blocks findings
	if len(gaps) == 0 { // The blocks of a missing wave are missing too, and the wave is a gap already.
		blocks = findMissingBlocks(exp, planned, evidence, wave)
	}
	warmups := findUnplannedWarmups(exp, planned, own.admitted, cells)
	unfinished, strange := findUnfinished(exp, planned, own.admitted, markers)

	// Rules for attempts. Leases come before executions, or an execution beside another run's blocks could replace one that was alone.
	inForce := rejectStaleLeases(evidence.Leases, exp.Run.UID, own.admitted)
	counting := rejectSuperseded(inForce.admitted)
	measured := rejectUnsuccessful(counting.admitted)
	notCounting := rejectedBy(inForce, counting)
	check := newResultCheck(exp, cells, measured.admitted, notCounting)
	usable := check.rejectUnusable(measured.admitted)
	comparable, environments := rejectOtherEnvironments(usable.admitted)
	samePrograms := rejectOtherPrograms(comparable.admitted, cells)
	quiet, noise := rejectNoisy(exp, cells, own.admitted, samePrograms.admitted)

	admission := Admission{
		Own: own.admitted, Succeeded: succeeded(own.admitted), Judged: samePrograms.admitted, Used: quiet.admitted, Cells: cells,
		Kinds: kindsOf(unaltered, own, inForce, counting, measured, usable, comparable, samePrograms, quiet),
		Rejected: slices.Concat(findUnreadable(evidence.Problems), waves.excluded, plans.excluded, missing, rejectedBy(unaltered, own),
			blocks.excluded, warmups.excluded, strange, rejectedBy(inForce, counting, measured, usable, comparable, samePrograms, quiet)),
	}
	reported := reports{planned, admission, attempts, unfinished, evidence.Problems, missing}
	fates := fatesOf(reported)
	return &Selection{
		Admission: admission,
		Integrity: Integrity{
			Gaps:    slices.Concat(gaps, blocks.gaps, warmups.gaps, reported.findUnassigned(fates)),
			Altered: alteredObjects(evidence.Sealed, sums), Separated: findSeparated(usable.admitted), Copied: findCopy(quiet.admitted),
		},
		Environments: environments,
		Arms: Arms{
			Changed:        findChangedArms(counting.admitted, cells),
			OtherWorkloads: findOtherWorkloads(exp, evidence.Waves, workloadNames(counting.admitted, cells)),
			Reports:        reportsOf(exp, counting.admitted, cells),
		},
		Visits:   findVisits(exp, planned, own.admitted, cells),
		Outcomes: outcomesOf(exp, reported, fates, check.useless(notCounting)),
		Purposes: planned.purposes, Histograms: check.histograms, Noise: noise, Digest: sums.with(markerSums(markers)).digest(),
	}
}
