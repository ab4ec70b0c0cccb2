package judge

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// confirm retains a Go or NoGo only if blocks that were not part of it repeat it, by the same gates at the same confidence. An
// estimate that was selected because it was extreme is too extreme (regression to the mean), so the gates shown afterwards depend on
// the fresh blocks alone. Fresh is nil before any confirming block has run.
func confirm(screened, fresh *judgement, parity *selection.Parity) *judgement {
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
		if fresh != nil && slices.Contains(decided, gate.Candidate) && gate.Op.Timed() {
			// The same gates, candidates and points were judged, in the same order.
			out.gates[i] = fresh.gates[i]
			out.gates[i].Message += fmt.Sprintf("; on the confirming blocks alone, screened %s at %s", gate.Outcome,
				analysis.Describe(gate.Estimate))
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
			candidate.Verdict = experiment.VerdictInconclusive
			candidate.Reason = fmt.Sprintf("screened %s, not confirmed: no confirming block has run yet; screening said: %s", screenedAs,
				candidate.Reason)
		case fresh.candidates[i].Verdict == screenedAs && repeats(screened, fresh, candidate.Name):
			*candidate = fresh.candidates[i]
			candidate.Reason += "; screened, and confirmed on fresh blocks"
		default:
			*candidate = fresh.candidates[i]
			now, by := candidate.Verdict, ""
			if now == screenedAs {
				by = " by another gate, and none that was missed in screening is missed again"
			}
			candidate.Verdict = experiment.VerdictInconclusive
			candidate.Reason = fmt.Sprintf("screened %s, not confirmed: on the confirming blocks alone it is %s%s: %s", screenedAs, now, by,
				candidate.Reason)
		}
	}
	out.verdict = judgeRun(out.candidates)
	return out
}

// repeats reports whether the fresh blocks repeat the outcome of a gate that decided the candidate. Go needs all gates and so the same
// ones. NoGo needs one gate, and an accidental failure of another gate confirms nothing.
func repeats(screened, fresh *judgement, candidate string) bool {
	needed := false
	for i, gate := range screened.gates {
		if gate.Candidate != candidate || gate.Severity != experiment.Blocking || gate.Op == experiment.ParityEqual ||
			gate.Outcome != experiment.VerdictNoGo {
			continue
		}
		if needed = true; fresh.gates[i].Outcome == experiment.VerdictNoGo {
			return true
		}
	}
	return !needed
}
