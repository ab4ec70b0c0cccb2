package analysis

import (
	"fmt"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// judgeCandidates gives every candidate that a Blocking gate applies to its verdict.
func judgeCandidates(exp *experiment.Experiment, gates []GateResult, parity *parityReport) []Candidate {
	out := []Candidate{}
	for _, name := range exp.Candidates() {
		candidate := Candidate{Name: name}
		byOutcome := map[assayv1alpha1.Verdict][]GateResult{}
		blocking, hasGain := 0, false
		for _, gate := range gates {
			if gate.Candidate != name || gate.Severity != assayv1alpha1.Blocking {
				continue
			}
			// The gate that every run has decides nothing by itself, or a run that asks for nothing would have a verdict.
			if gate.Op != assayv1alpha1.Completes || named(exp, gate.Gate) {
				blocking++
			}
			byOutcome[gate.Outcome] = append(byOutcome[gate.Outcome], gate)
			if relative(gate.Op) && !hasGain {
				candidate.Gain, hasGain = gate.Estimate, true
			}
		}
		switch {
		case blocking == 0:
			candidate.Reason = "no blocking gate applies to it"
		case parity.baseline != "":
			candidate.Verdict, candidate.Reason = assayv1alpha1.VerdictInvalid, "nothing can be compared with the baseline: "+parity.baseline
		case parity.wrong[name] != "":
			candidate.Verdict, candidate.Reason = assayv1alpha1.VerdictNoGo, parity.wrong[name]
		default:
			candidate.Verdict, candidate.Reason = weakest(byOutcome, blocking)
		}
		out = append(out, candidate)
	}
	return out
}

func named(exp *experiment.Experiment, gate string) bool {
	return slices.ContainsFunc(exp.Spec.Gates, func(g assayv1alpha1.Gate) bool { return g.Name == gate })
}

// weakest takes the outcome that stands in the way, and the first gate that has it as the reason.
func weakest(byOutcome map[assayv1alpha1.Verdict][]GateResult, blocking int) (assayv1alpha1.Verdict, string) {
	for _, verdict := range []assayv1alpha1.Verdict{assayv1alpha1.VerdictNoGo, assayv1alpha1.VerdictInvalid, assayv1alpha1.VerdictInconclusive} {
		gates := byOutcome[verdict]
		if len(gates) == 0 {
			continue
		}
		reason := gateTitle(gates[0]) + ": " + gates[0].Message
		if len(gates) == 2 {
			reason += fmt.Sprintf(" (and 1 more gate is %s)", verdict)
		} else if len(gates) > 2 {
			reason += fmt.Sprintf(" (and %d more gates are %s)", len(gates)-1, verdict)
		}
		return verdict, reason
	}
	if blocking == 1 {
		return assayv1alpha1.VerdictGo, "its blocking gate holds"
	}
	return assayv1alpha1.VerdictGo, fmt.Sprintf("all %d blocking gates hold", blocking)
}

func gateTitle(gate GateResult) string {
	title := gate.Gate
	if gate.Point != "" {
		title += " at " + gate.Point
	}
	return title
}

// judgeRun is Go if some candidate is, NoGo if all are, and otherwise the weakest answer among them. Without a gate that
// decides there is no verdict.
func judgeRun(candidates []Candidate) assayv1alpha1.Verdict {
	count := map[assayv1alpha1.Verdict]int{}
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
	case count[assayv1alpha1.VerdictGo] > 0:
		return assayv1alpha1.VerdictGo
	case count[assayv1alpha1.VerdictNoGo] == judged:
		return assayv1alpha1.VerdictNoGo
	case count[assayv1alpha1.VerdictInvalid] > 0:
		return assayv1alpha1.VerdictInvalid
	default:
		return assayv1alpha1.VerdictInconclusive
	}
}
