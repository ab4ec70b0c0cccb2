package observe

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

func TestWhy_NamesTheDecidingFinding(t *testing.T) {
	slow := analysis.Candidate{Name: "slow", Verdict: experiment.VerdictNoGo, Reason: "gain: missed"}
	fast := analysis.Candidate{Name: "fast", Verdict: experiment.VerdictGo, Reason: "all gates hold"}
	cases := map[string]struct {
		result analysis.Analysis
		want   string
	}{
		"the best candidate of a Go":    {analysis.Analysis{Verdict: "Go", Best: "fast", Candidates: []analysis.Candidate{slow, fast}}, "fast: all gates hold"},
		"the first candidate of a NoGo": {analysis.Analysis{Verdict: "NoGo", Candidates: []analysis.Candidate{slow}}, "slow: gain: missed"},
		"nothing where no gate decides": {analysis.Analysis{Candidates: []analysis.Candidate{{Name: "a"}}}, ""},
		"the message of the first failed trial": {
			analysis.Analysis{
				Verdict:    "Invalid",
				Candidates: []analysis.Candidate{{Name: "fast", Verdict: "Invalid", Reason: "no output"}},
				Trials:     analysis.Trials{Planned: 8, Failed: 8},
				Excluded:   []analysis.Exclusion{{Attempt: "pod/w000-b0000-s00000", Reason: "Failed: the process exited with code 2"}},
			},
			"fast: no output; 8 of 8 trials failed or may not be used, the first (pod/w000-b0000-s00000): Failed: the process exited with code 2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := why(&tc.result); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	long := analysis.Analysis{Verdict: "NoGo",
		Candidates: []analysis.Candidate{{Name: "a", Verdict: "NoGo", Reason: strings.Repeat("é", 2000)}}}
	if got := []rune(why(&long)); len(got) != maxWhy+1 {
		t.Errorf("%d characters, want at most %d", len(got), maxWhy+1)
	}
}
