package ci

import (
	"math"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/report"
)

func TestChanges_AsComment(t *testing.T) {
	at := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	evil := "<img src=x>|\n@acme\x1b[31m\u202e"
	key := series.Key{Project: "team", Benchmark: "sort", Metric: "latency", Statistic: "median"}
	id := key.ID()
	slower := change.Change{
		ID: "c0ffee", Project: "team", From: 57, First: 58, To: 59, State: change.Located, Culprits: []string{"4f2a"},
		Effects: []change.Effect{{Series: id, LogRatio: math.Log(1.05), SE: 0.004, Worse: true}, {Series: "5678", LogRatio: -0.02, SE: 0.01}},
		History: []change.Event{{At: at, Who: evil, Person: true, Why: evil, To: change.Located}},
	}
	beyond := slower
	beyond.Effects = []change.Effect{{Series: id, LogRatio: 800, Worse: true}}
	faster := slower
	faster.State, faster.Effects = change.Confirmed, slower.Effects[1:]
	accepted := slower
	accepted.State = change.Accepted
	names := report.NamesOf([]*series.Series{{Key: key, Segments: []series.Segment{{Points: []series.Point{
		{Sequence: 57, Revision: "3e19"}, {Sequence: 58, Revision: strings.Repeat("4f2a", 10)},
	}}}}})
	for name, tc := range map[string]struct {
		changes []change.Change
		site    string
		says    []string
		never   []string
	}{
		"a regression names its series, runs and commit": {[]change.Change{slower}, "", []string{
			"### ❌ Located regression `c0ffee`", "team sort latency.median worse: 1.05x \\(standard error 0.4 %\\)", "by 4f2a", "5678",
			"with revision 4f2a4f2a4f \\(of 3e19 to run 59\\)",
		}, []string{"](<"}},
		"with pages it leads there": {[]change.Change{slower}, "https://bench.example.org/x/", []string{
			"](<https://bench.example.org/x/series-" + id + ".html>)", "](<https://bench.example.org/x/index.html#change-c0ffee>)",
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
	many := Changes(make([]change.Change, 5000), report.Names{}, "")
	if len(many) > MaxMarkdown || !strings.HasSuffix(many, "assay changes lists it.\n") {
		t.Errorf("%d bytes are more than GitHub takes, or the end says nothing of the rest", len(many))
	}
}

// A comment on a pull request names no folder of the machine that measured.
func TestChanges_NameNoFileOfThisMachine(t *testing.T) {
	const local = "file:///home/ada/secret/point-3"
	got := Changes([]change.Change{{
		ID: "c0ffee", State: change.Confirmed, Effects: []change.Effect{{Series: local}},
		History:      []change.Event{{Who: local, Why: "see " + local + "?x=1, or ask"}},
		Acknowledged: &change.Event{Who: local, Why: local},
	}}, report.Names{}, "")
	if strings.Contains(got, "file:") || strings.Contains(got, "secret") || !strings.Contains(got, "point") {
		t.Errorf("the comment is:\n%s", got)
	}
}
