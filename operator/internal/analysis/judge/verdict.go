package judge

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// judgeCandidates gives every candidate that a Blocking gate applies to its verdict. incomplete describes a baseline that does not
// complete, beside which no candidate is NoGo.
func judgeCandidates(exp *experiment.Experiment, gates []analysis.GateResult, parity *selection.Parity, incomplete string,
) []analysis.Candidate {
	byFigures := judgedByFigures(gates)
	out := []analysis.Candidate{}
	for _, name := range exp.Candidates() {
		candidate := analysis.Candidate{Name: name}
		byOutcome := map[experiment.Verdict]int{}
		blocking := 0
		for _, gate := range gates {
			if gate.Candidate != name || gate.Severity != experiment.Blocking {
				continue
			}
			// The implicit completion gate does not count here, otherwise a run without gates would have a verdict. Neither does one for
			// all arms beside gates on figures or outputs of other arms, otherwise an arm for comparison would be a candidate.
			general := byFigures[name] || len(byFigures) == 0
			if gate.Op != experiment.Completes || named(exp, gate.Gate, name) || general && named(exp, gate.Gate, "") {
				blocking++
			}
			byOutcome[gate.Outcome]++
		}
		switch {
		case blocking == 0:
			candidate.Reason = "no blocking gate applies to it"
		case parity.Baseline != "":
			candidate.Verdict, candidate.Reason = experiment.VerdictInvalid, "nothing can be compared with the baseline: "+parity.Baseline
		case parity.Wrong[name] != "" && incomplete != "":
			candidate.Verdict, candidate.Reason = experiment.VerdictInconclusive, parity.Wrong[name]+", but "+incomplete
		case parity.Wrong[name] != "":
			candidate.Verdict, candidate.Reason = experiment.VerdictNoGo, parity.Wrong[name]
		default:
			candidate.Verdict, candidate.Reason = weakest(name, gates, byOutcome, blocking)
		}
		out = append(out, candidate)
	}
	return out
}

// named reports whether the run has the gate, for a candidate or, if that is empty, for all arms.
func named(exp *experiment.Experiment, gate, candidate string) bool {
	return slices.ContainsFunc(exp.Plan.Gates, func(g experiment.Gate) bool { return g.Name == gate && g.Candidate == candidate })
}

// judgedByFigures returns the arms with a Blocking gate on figures or outputs.
func judgedByFigures(gates []analysis.GateResult) map[string]bool {
	out := map[string]bool{}
	for _, gate := range gates {
		if gate.Op != experiment.Completes && gate.Severity == experiment.Blocking {
			out[gate.Candidate] = true
		}
	}
	return out
}

// weakest returns the outcome that prevents Go, with the deciding gate of that outcome as the reason.
func weakest(candidate string, gates []analysis.GateResult, byOutcome map[experiment.Verdict]int, blocking int) (experiment.Verdict,
	string) {
	for _, verdict := range []experiment.Verdict{experiment.VerdictNoGo, experiment.VerdictInvalid, experiment.VerdictInconclusive} {
		if n := byOutcome[verdict]; n > 0 {
			gate := analysis.Deciding(candidate, verdict, gates)
			return verdict, gate.Title() + ": " + gate.Message + analysis.FurtherGates(n-1, verdict)
		}
	}
	if blocking == 1 {
		return experiment.VerdictGo, "its blocking gate holds"
	}
	return experiment.VerdictGo, fmt.Sprintf("all %d blocking gates hold", blocking)
}

// headlines adds the figures of the deciding gates. Where outputs differ no figure decides, also if no gate compares them.
func headlines(exp *experiment.Experiment, candidates []analysis.Candidate, gates []analysis.GateResult, parity *selection.Parity) {
	for i := range candidates {
		candidate := &candidates[i]
		candidate.Headline = nil
		if parity.Baseline == "" && parity.Wrong[candidate.Name] == "" {
			candidate.Headline = analysis.HeadlineOf(exp, analysis.Deciding(candidate.Name, candidate.Verdict, gates))
		}
	}
}

// judgeRun returns Go if some candidate is Go, NoGo if all are, and otherwise the weakest verdict among them. It returns "" without a
// Blocking gate.
func judgeRun(candidates []analysis.Candidate) experiment.Verdict {
	count := map[experiment.Verdict]int{}
	judged := 0
	for _, candidate := range candidates {
		if candidate.Verdict != "" {
			count[candidate.Verdict]++
			judged++
		}
	}
	switch {
	case judged == 0:
		return ""
	case count[experiment.VerdictGo] > 0:
		return experiment.VerdictGo
	case count[experiment.VerdictNoGo] == judged:
		return experiment.VerdictNoGo
	case count[experiment.VerdictInvalid] > 0:
		return experiment.VerdictInvalid
	default:
		return experiment.VerdictInconclusive
	}
}
