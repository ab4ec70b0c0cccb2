package analysis

import (
	"fmt"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// confirm lets a Go or NoGo stand only if blocks that played no part in reaching it say the same, by the same gates at the
// same confidence. An estimate that was picked because it was extreme is too extreme (regression to the mean), so the gates
// that are shown then rest on the fresh blocks alone. Fresh is nil as long as there are none.
func confirm(screened, fresh *judgement, parity *parityReport) *judgement {
	decided := screened.decided(parity)
	if len(decided) == 0 {
		return screened
	}
	out := &judgement{
		gates: slices.Clone(screened.gates), controls: screened.controls, candidates: slices.Clone(screened.candidates),
		validBlocks: screened.validBlocks, relativeHalfWidth: screened.relativeHalfWidth,
	}
	if fresh != nil {
		out.controls = fresh.controls
	}
	for i, gate := range out.gates {
		if fresh != nil && slices.Contains(decided, gate.Candidate) && timed(gate.Op) {
			// The same gates, candidates and points were judged, in the same order.
			out.gates[i] = fresh.gates[i]
			out.gates[i].Message += fmt.Sprintf("; on the confirming blocks alone, screened %s at %s", gate.Outcome, describe(gate.Estimate))
		}
	}
	for i := range out.candidates {
		candidate := &out.candidates[i]
		if !slices.Contains(decided, candidate.Name) {
			continue
		}
		screenedAs := candidate.Verdict
		switch {
		case fresh == nil:
			candidate.Verdict = assayv1alpha1.VerdictInconclusive
			candidate.Reason = fmt.Sprintf("screened %s, not confirmed: no confirming block has run yet; screening said: %s", screenedAs, candidate.Reason)
		case fresh.candidates[i].Verdict == screenedAs && repeats(screened, fresh, candidate.Name):
			*candidate = fresh.candidates[i]
			candidate.Reason += "; screened, and confirmed on fresh blocks"
		default:
			*candidate = fresh.candidates[i]
			candidate.Verdict = assayv1alpha1.VerdictInconclusive
			candidate.Reason = fmt.Sprintf("screened %s, not confirmed: on the confirming blocks alone it is %s%s: %s", screenedAs, fresh.candidates[i].Verdict, byOther(screenedAs, fresh.candidates[i].Verdict), candidate.Reason)
		}
	}
	out.verdict = judgeRun(out.candidates)
	return out
}

// repeats reports whether the fresh blocks say of some gate that decided the candidate what the screening said of it. Go needs all
// gates and so the same ones; NoGo needs one, and another one that fails by accident confirms nothing.
func repeats(screened, fresh *judgement, candidate string) bool {
	needed := false
	for i, gate := range screened.gates {
		if gate.Candidate != candidate || gate.Severity != assayv1alpha1.Blocking || gate.Op == assayv1alpha1.ParityEqual || gate.Outcome != assayv1alpha1.VerdictNoGo {
			continue
		}
		if needed = true; fresh.gates[i].Outcome == assayv1alpha1.VerdictNoGo {
			return true
		}
	}
	return !needed
}

func byOther(screened, fresh assayv1alpha1.Verdict) string {
	if screened != fresh {
		return ""
	}
	return " by another gate, and none that was missed in screening is missed again"
}
