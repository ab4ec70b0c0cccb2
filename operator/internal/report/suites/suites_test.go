package suites

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/suite"
	"assay.dev/assay/operator/test/golden"
)

func ends(value, low, high float64) *suite.Ratio {
	return &suite.Ratio{Value: value, Low: &low, High: &high, Blocks: 6}
}

// answer has a row of each outcome, and names that try to break out of the table.
func answer() *suite.Result {
	return &suite.Result{
		Metric: "time", Unit: "s", ErrorRate: 0.01, Confidence: 0.95, Of: 3, Mean: ends(1.02, 1.01, 1.03),
		Rows: []suite.Row{
			{Label: "BenchmarkSlow", Outcome: suite.Slower, Ratio: ends(1.1, 1.05, 1.15), Blocks: 8},
			{Label: "BenchmarkA|B\n| x | <img src=x> \x1b[31m", Outcome: suite.NoDifference, Ratio: ends(1, 0.98, 1.02), Blocks: 6},
			{Label: "BenchmarkFast", Outcome: suite.Faster, Ratio: ends(0.9, 0.85, 0.95), Blocks: 8},
			{Label: "BenchmarkBroken", Outcome: suite.Failed, Cause: "a trial of new failed: `code` @team", Blocks: 6},
		},
		OnlyOld: []string{"a.test BenchmarkGone"}, Shortfall: "no difference of 1 benchmark was found within the budget",
		Verdict: experiment.VerdictNoGo, Reason: "a ratio of at most 1.05 missed by BenchmarkBroken",
	}
}

func TestMarkdown_Golden(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "comment.md"), string(Markdown(answer())))
}

func TestTerminal_Golden(t *testing.T) {
	var out strings.Builder
	if err := Terminal(&out, answer()); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "table.txt"), out.String())
}

// However hostile its texts, an answer has one row in the table for each benchmark, and no markup of theirs.
func TestViews_HostileTextsStayInTheirCells(t *testing.T) {
	const hostile = "x|y\r\n# title\n<script>\u202e[a](http://b) @team \x1b[2J"
	r := answer()
	for i := range r.Rows {
		r.Rows[i].Label, r.Rows[i].Cause = hostile, hostile
	}
	r.OnlyOld, r.Broken, r.Shortfall, r.Reason = []string{hostile}, []string{hostile}, hostile, hostile
	text := string(Markdown(r))
	spans := regexp.MustCompile("`[^`]*`")
	if outside := spans.ReplaceAllString(text, ""); strings.ContainsAny(outside, "@<>") {
		t.Errorf("a forge finds a mention or markup:\n%s", outside)
	}
	rows := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") {
			rows++
		}
		if strings.HasPrefix(line, "#") {
			t.Errorf("a title of a text: %q", line)
		}
	}
	if want := len(r.Rows) + 1; rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
	var out strings.Builder
	if err := Terminal(&out, r); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"markdown": text, "terminal": out.String()} {
		for _, bad := range []string{"\x1b", "\u202e", "\r"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %q", name, bad)
			}
		}
	}
}

func TestMarkdown_LongTableKeepsDifferences(t *testing.T) {
	r := answer()
	r.Rows = nil
	for range 2 * mostRows {
		r.Rows = append(r.Rows, suite.Row{Label: "same", Outcome: suite.NoDifference})
	}
	r.Rows = append(r.Rows, suite.Row{Label: "different", Outcome: suite.Slower, Ratio: ends(2, 1, 3)})
	text := string(Markdown(r))
	if !strings.Contains(text, "different") || !strings.Contains(text, "leaves out 101 benchmarks") ||
		strings.Count(text, "| `same`") != mostRows-1 {
		t.Error(text[len(text)-400:])
	}
}
