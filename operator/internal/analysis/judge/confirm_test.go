package judge

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

const (
	goes         = experiment.VerdictGo
	noGo         = experiment.VerdictNoGo
	inconclusive = experiment.VerdictInconclusive
	invalid      = experiment.VerdictInvalid
)

// TestConfirm_NoGoNeedsTheSameGate: that a candidate is NoGo again by another gate confirms nothing.
func TestConfirm_NoGoNeedsTheSameGate(t *testing.T) {
	says := func(verdict experiment.Verdict, outcomes ...experiment.Verdict) *judgement {
		out := &judgement{verdict: verdict, candidates: []analysis.Candidate{{Name: "new", Verdict: verdict}}}
		for _, outcome := range outcomes {
			out.gates = append(out.gates, analysis.GateResult{
				Candidate: "new", Severity: experiment.Blocking, Op: experiment.RatioAtMost, Outcome: outcome,
			})
		}
		return out
	}
	cases := map[string]struct {
		screened, fresh *judgement
		verdict         experiment.Verdict
	}{
		"the same gate is missed again":               {says(noGo, noGo, goes), says(noGo, noGo, goes), noGo},
		"one of two missed gates is missed again":     {says(noGo, noGo, noGo), says(noGo, goes, noGo), noGo},
		"another gate is missed":                      {says(noGo, noGo, goes), says(noGo, goes, noGo), inconclusive},
		"another gate is missed and the first is not": {says(noGo, noGo, inconclusive), says(noGo, inconclusive, noGo), inconclusive},
		"all gates hold again":                        {says(goes, goes, goes), says(goes, goes, goes), goes},
		"a gate holds no longer":                      {says(goes, goes, goes), says(inconclusive, goes, inconclusive), inconclusive},
	}
	// A missed gate that did not decide in screening, and is missed again, does not confirm the decision.
	beside := func(edit func(*analysis.GateResult)) (screened, fresh *judgement) {
		screened, fresh = says(noGo, noGo, noGo, goes), says(noGo, goes, noGo, noGo)
		edit(&screened.gates[1])
		edit(&fresh.gates[1])
		return screened, fresh
	}
	for name, edit := range map[string]func(*analysis.GateResult){
		"an advisory gate is missed again":            func(g *analysis.GateResult) { g.Severity = experiment.Advisory },
		"a gate of another candidate is missed again": func(g *analysis.GateResult) { g.Candidate = "newer" },
	} {
		screened, fresh := beside(edit)
		cases[name] = struct {
			screened, fresh *judgement
			verdict         experiment.Verdict
		}{screened, fresh, inconclusive}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := confirm(c.screened, c.fresh, &selection.Parity{})
			if got.verdict != c.verdict {
				t.Errorf("%s: %s, want %s", got.verdict, got.candidates[0].Reason, c.verdict)
			}
			if other := c.screened.verdict == c.fresh.verdict &&
				c.verdict == inconclusive; strings.Contains(got.candidates[0].Reason, "by another gate") != other {
				t.Errorf("reason %q", got.candidates[0].Reason)
			}
		})
	}
}
