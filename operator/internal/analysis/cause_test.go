package analysis

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCause_QuotesTextOfProgram(t *testing.T) {
	for name, c := range map[string]struct{ reason, want string }{
		"a message":         {"no result on standard output", `"no result on standard output"`},
		"control sequences": {"\x1b[31mred\x00\r\nline", `"\x1b[31mred\x00\r\nline"`},
		"quotation marks":   {`"; kubectl delete`, `"\"; kubectl delete"`},
		"invalid UTF-8":     {"a\xffb", `"a\ufffdb"`},
		"no end":            {strings.Repeat("é", 5000), `"` + strings.Repeat("é", longestQuote) + `…"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Cause{Arm: "new", Trial: "w000-b0000-s00001", Lost: 1, Of: 20, Reason: c.reason}).Sentence()
			want := "1 of 20 trials of arm new gave no usable result, the first (w000-b0000-s00001): " + c.want
			if got != want && name != "invalid UTF-8" || !strings.HasPrefix(got, "1 of 20 trials") ||
				strings.ContainsAny(got, "\x1b\x00\r\n") || !utf8.ValidString(got) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	if got := (*Cause)(nil).Sentence(); got != "" {
		t.Errorf("no cause: %q", got)
	}
}

func TestFirstCause_ReasonForVerdict(t *testing.T) {
	lost := &Cause{Arm: "new", Trial: "t", Lost: 3, Of: 4, Reason: "exit 2"}
	const said = `3 of 4 trials of arm new gave no usable result, the first (t): "exit 2"`
	candidates := []Candidate{{Name: "new", Verdict: noGo, Reason: "worth-it: missed"}}
	of := func(candidate Candidate) []Candidate { return []Candidate{candidate} }
	for name, c := range map[string]struct {
		of                 Analysis
		cause, explanation string
	}{
		"Go": {Analysis{Verdict: goes, Best: "new", Headline: &Headline{Text: "1.6x (99 %), g"}, Candidates: of(Candidate{Name: "new", Verdict: goes, Reason: "all hold"})},
			"", "new: all hold; least room: 1.6x (99 %), g"},
		"Go although a trial failed": {Analysis{Verdict: goes, Cause: lost, Candidates: of(Candidate{Name: "new", Verdict: goes, Reason: "all hold"})},
			"", "new: all hold; " + said},
		"NoGo by a figure": {Analysis{Verdict: noGo, Candidates: candidates}, "new: worth-it: missed", "new: worth-it: missed"},
		"NoGo by a figure although a trial failed": {Analysis{Verdict: noGo, Cause: lost, Candidates: candidates}, "new: worth-it: missed",
			said + "; new: worth-it: missed"},
		"Invalid by lost trials": {Analysis{Verdict: invalid, Cause: lost, Candidates: of(Candidate{Name: "new", Verdict: invalid, Reason: "too few"})},
			said, said + "; new: too few"},
		"Inconclusive without a loss": {Analysis{Verdict: inconclusive, Candidates: of(Candidate{Name: "new", Verdict: inconclusive, Reason: "spans"})},
			"new: spans", "new: spans"},
		"a broken setup": {Analysis{Verdict: invalid, SetupBroken: "nothing runs", Cause: lost}, "nothing runs", said},
		"no gates":       {Analysis{Candidates: of(Candidate{Name: "new"})}, "", ""},
		"a search":       {Analysis{Search: []SearchResult{{Arm: "a", Reason: "ended"}, {Arm: "b", Reason: "too"}}}, "", "a: ended; b: too"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.of.FirstCause(); got != c.cause {
				t.Errorf("cause %q, want %q", got, c.cause)
			}
			if got := c.of.Explanation(); got != c.explanation {
				t.Errorf("explanation %q, want %q", got, c.explanation)
			}
		})
	}
}
