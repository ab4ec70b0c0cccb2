package ci

import (
	"math"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/history/change"
)

func TestChanges_AsComment(t *testing.T) {
	at := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	evil := "<img src=x>|\n@acme\x1b[31m\u202e"
	slower := change.Change{
		ID: "c0ffee", Project: "team", From: 57, First: 58, To: 59, State: change.Located, Culprits: []string{"4f2a"},
		Effects: []change.Effect{{Series: "1234", LogRatio: math.Log(1.05), SE: 0.004, Worse: true}, {Series: "5678", LogRatio: -0.02, SE: 0.01}},
		History: []change.Event{{At: at, Who: evil, Person: true, Why: evil, To: change.Located}},
	}
	beyond := slower
	beyond.Effects = []change.Effect{{Series: "1234", LogRatio: 800, Worse: true}}
	faster := slower
	faster.State, faster.Effects = change.Confirmed, slower.Effects[1:]
	accepted := slower
	accepted.State = change.Accepted
	names := map[string]string{"1234": "team sort latency.median"}
	for name, tc := range map[string]struct {
		changes []change.Change
		site    string
		says    []string
		never   []string
	}{
		"a regression names its series, runs and commit": {[]change.Change{slower}, "", []string{
			"### ❌ Located regression `c0ffee`", "team sort latency.median worse: 1.05x \\(standard error 0.4 %\\)", "by 4f2a", "5678",
		}, []string{"](<"}},
		"with pages it leads there": {[]change.Change{slower}, "https://bench.example.org/x/", []string{
			"](<https://bench.example.org/x/series-1234.html>)", "](<https://bench.example.org/x/index.html#change-c0ffee>)",
		}, []string{"series-5678"}},
		"an improvement has no failure mark":       {[]change.Change{faster}, "", []string{"### ✅ Confirmed improvement"}, []string{"❌"}},
		"an accepted regression does not fail":     {[]change.Change{accepted}, "", []string{"### ℹ️ Accepted regression"}, []string{"❌"}},
		"an address with a scheme other than http": {[]change.Change{slower}, "javascript:alert(1)", nil, []string{"](<", "javascript"}},
		"an effect beyond the range of a float":    {[]change.Change{beyond}, "", []string{"worse: 1.798e"}, []string{"Inf"}},
		"nothing happened":                         {nil, "", []string{"No change"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Changes(tc.changes, names, tc.site)
			for _, part := range tc.says {
				if !strings.Contains(got, part) && !strings.Contains(got, strings.ReplaceAll(part, `\`, "")) {
					t.Errorf("no %q in:\n%s", part, got)
				}
			}
			for _, part := range append(tc.never, "<img", "@acme", "\x1b", "\u202e") {
				if strings.Contains(got, part) {
					t.Errorf("%q in:\n%s", part, got)
				}
			}
		})
	}
	many := Changes(make([]change.Change, 5000), nil, "")
	if len(many) > MaxMarkdown || !strings.HasSuffix(many, "assay changes lists it.\n") {
		t.Errorf("%d bytes are more than GitHub takes, or the end says nothing of the rest", len(many))
	}
}
