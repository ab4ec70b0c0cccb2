package judge

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// A candidate is judged against a baseline that works. If the baseline, or every arm, fails in all trials, the image, the command, the
// output or the memory of the experiment is wrong, and the failures of a candidate show nothing about it.

// setupBroken describes why the experiment measures nothing, with the first cause; empty if it measures its baseline and some arm. The null
// arm is a copy of the baseline, so that it neither breaks nor repairs a setup.
func setupBroken(d *estimate.Data) string {
	completed := d.Chosen.Completions(nil)
	broken := make([]*selection.Completion, len(d.Exp.Arms))
	judged, none := 0, 0
	var first *selection.Completion
	for arm := range d.Exp.Arms {
		if experiment.RoleOf(d.Exp.Arms[arm]).RepeatsBaseline() {
			continue
		}
		all := &selection.Completion{Failures: selection.Losses{}, Blocks: map[string]bool{}}
		for point := range d.Exp.Points {
			all.Add(completed[selection.At(point, arm)])
		}
		if judged++; !all.NeverCompletes() {
			continue
		}
		none++
		broken[arm] = all
		if first == nil || all.First.Trial < first.First.Trial {
			first = all
		}
	}
	baseline := d.Exp.Baseline()
	switch {
	case none > 0 && none == judged:
		of := "any arm"
		if judged == 1 {
			of = "the only arm"
		}
		return fmt.Sprintf("no trial of %s completed (first %s: %s)", of, first.First.Trial, first.Cause())
	case baseline >= 0 && broken[baseline] != nil:
		of := broken[baseline]
		return fmt.Sprintf("no trial of the baseline %s completed: %s (first %s: %s)", d.Exp.Arms[baseline].Name, of.Failures, of.First.Trial,
			of.Cause())
	}
	return ""
}

// invalidate makes a run with a broken setup Invalid, also one without gates. Its candidates have no other verdict.
func (f *Findings) invalidate(why string) {
	f.SetupBroken, f.Verdict, f.Screened = why, experiment.VerdictInvalid, ""
	f.Candidates = slices.Clone(f.Candidates)
	for i := range f.Candidates {
		candidate, reason := &f.Candidates[i], "the setup is broken: "+why
		candidate.Headline = nil
		switch candidate.Verdict {
		case "":
		case experiment.VerdictInvalid:
			candidate.Reason = reason + "; " + candidate.Reason // A difference between the arms' reports, for example.
		default:
			candidate.Verdict, candidate.Reason = experiment.VerdictInvalid, reason
		}
	}
}

// incompleteBaseline describes a baseline that does not complete; empty for one that does.
func incompleteBaseline(d *estimate.Data, gates []analysis.GateResult) string {
	return notComplete(d, gates, func(role experiment.ArmRole) bool { return role == experiment.RoleBaseline })
}

// isCandidate reports whether a gate judges a candidate. Completion gates judge all arms.
func isCandidate(d *estimate.Data, gate *analysis.GateResult) bool {
	return experiment.RoleOf(d.Exp.Arms[selection.ArmIndex(d.Exp, gate.Candidate)]).Judged()
}

// notComplete describes the first arm of a role whose Blocking gate of op Completes is not Go.
func notComplete(d *estimate.Data, gates []analysis.GateResult, of func(experiment.ArmRole) bool) string {
	// Completion gates are last. Scanning backwards avoids visiting the up to 100,000 gates before them for each of those gates.
	first := len(gates)
	for first > 0 && gates[first-1].Op == experiment.Completes {
		first--
	}
	for _, gate := range gates[first:] {
		if gate.Severity != experiment.Blocking || gate.Outcome == experiment.VerdictGo {
			continue
		}
		if arm := d.Exp.Arms[selection.ArmIndex(d.Exp, gate.Candidate)]; of(experiment.RoleOf(arm)) {
			return fmt.Sprintf("the baseline does not complete (arm %s: %s)", arm.Name, gate.Message)
		}
	}
	return ""
}
