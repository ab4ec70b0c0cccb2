package reference

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../../.."

// shared holds the tables of the checkout for all tests, because reading the ledgers takes a second.
var shared = NewLibrary(root)

func pages(t *testing.T) (*Library, []Page) {
	t.Helper()
	library := shared
	all, err := library.Pages()
	if err != nil {
		t.Fatal(err)
	}
	return library, all
}

func TestPages_ReferencesShowTheirCells(t *testing.T) {
	library, all := pages(t)
	for _, page := range all {
		rendered, err := library.Render(page)
		if err != nil {
			t.Error(err)
		} else if rendered != page.Text {
			t.Errorf("%s differs from the tables it refers to: run make generate, and review the sentences", page.Path)
		}
	}
}

func TestPages_NumbersAreReferences(t *testing.T) {
	library, all := pages(t)
	for _, page := range all {
		for _, at := range library.Unreferenced(page) {
			t.Errorf("%s:%s is no reference: write [TEXT][SOURCE: COLUMN, ROW], or omit it", page.Path, at)
		}
	}
}

func TestPages_ExplanationsHaveAShare(t *testing.T) {
	library, all := pages(t)
	for _, page := range all {
		for _, problem := range library.Explanations(page) {
			t.Error(problem)
		}
	}
}

// study writes a checkout with one study and returns its library and a page with a text.
func study(t *testing.T, text string) (*Library, Page) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"workflows/studies/s/results/local/run/t.csv": "size,arm,time (us),time (us) low,time (us) high,time against a,time against a low," +
			"time against a high\n1,a,2000,1900,2100,,,\n1,b,1000,900,1100,0.5,0.45,0.55\n2,a,4000,3900,4100,,,\n2,b,1200,1100,1300,0.3,0.28,0.32\n",
		"workflows/studies/s/results/local/run/report.md": "# local/s: NoGo\n\n## Gates\n\n| outcome | gate | candidate | estimate \\[99.5 %\\] |\n" +
			"| --- | --- | --- | --- |\n| NoGo | gain (advisory) | b | 0.5000x \\[0.4000, 0.6000\\] |\n\n" +
			"Again:\n\n| outcome | gate |\n| --- | --- |\n" +
			"| Go | gain |\n\n* cpuModel: `\"AMD EPYC\"`\n",
		"workloads/a/b/src/lib.rs":        "fn known() {}",
		"workloads/a/b/src/server/mod.rs": "pub(crate) const ROOM: usize = 64 << 20;\nconst STEP: u64 = 4_096;\nconst OTHER: u8 = STEP as u8;",
		"workloads/a/b/src/wait.rs":       "const STEP: u64 = 2;\nconst STALL: Duration = Duration::from_millis(20);",
		"workloads/harness/src/flags.rs":  "pub const USAGE: u8 = 2;\nconst STALL: u8 = 7;",
		"charts/assay/files/benchmarktemplates/t.yaml": "spec: {parameters: [{name: batchSize, default: \"8\", minimum: \"1\", maximum: \"32\"}, " +
			"{name: aes, enum: [\"256\", \"512\"]}]}\n",
		"workflows/studies/s/run.yaml":             "# Is it fast?\nkind: BenchmarkRun\nspec: {gates: [{name: gain, metric: time, op: RatioAtMost, bound: \"0.95\"}]}\n",
		"workflows/studies/s/document/claims.yaml": "claims: [{id: c, at: here, says: \"it saves 12 % of 5,200 us\"}]\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return NewLibrary(dir), Page{Path: "workflows/studies/s/README.md", Text: text}
}

func TestRender_TextShowsTheCell(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a number in another unit":     {"[9.9 ms][run: time (us), size=1, a]", "2.0 ms"},
		"a number over two lines":      {"[9.9\nms][run: time (us),\nsize=1, a]", "2.0\nms"},
		"a ratio with its interval":    {"[9.99x [9.99,\n9.99]][run: time against a, size=1, b]", "0.50x [0.45,\n0.55]"},
		"several rows":                 {"[9 and 9 µs][run: time (us), size=1, a|b]", "2000 and 1000 µs"},
		"a range":                      {"[9.9x to 9.9x][run: time against a, size=1|2, b]", "0.3x to 0.5x"},
		"a share saved":                {"[9 % less][run: time against a, size=1, b]", "50 % less"},
		"how many times as fast":       {"[9.0 times as fast][run: time against a, size=1, b]", "2.0 times as fast"},
		"a quotient":                   {"[9.9][run: time (us), size=2, a over size=1, a]", "2.0"},
		"a difference":                 {"[9,9 us][run: time (us), size=1, a minus b, size=1]", "1,000 us"},
		"a share of a difference":      {"[9 %][run: time (us), size=2, b minus size=1, b over size=2, a minus size=1, a]", "10 %"},
		"a quotient of columns":        {"[0.0001][run: time against a, size=1, b over time (us)]", "0.0005"},
		"a verdict":                    {"[Go][run: verdict]", "NoGo"},
		"a machine":                    {"[x][run: machine]", "AMD EPYC"},
		"a machine over two lines":     {"[AMD\nEPYC][run: machine]", "AMD\nEPYC"},
		"the estimate of a gate":       {"[9.9x [9.9, 9.9]][run/gates: estimate, gain]", "0.5x [0.4, 0.6]"},
		"a number in words":            {"[half][run: time against a, size=1, b]", "half"},
		"a comparison":                 {"[less][run: time against a, b below 1]", "less"},
		"a setting":                    {"[5 % less][run.yaml: gain]", "5 % less"},
		"a quotation":                  {"[5.2 ms][claims: c]", "5.2 ms"},
		"a quotation of a study":       {"[5.2 ms][s/claims: c]", "5.2 ms"},
		"a name with digits":           {"[p95 of 9 us][run: time (us), size=1, b]", "p95 of 1000 us"},
		"text in brackets is no label": {"[5.2 ms](run.yaml)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			library, page := study(t, tc.text+"\n")
			got, err := library.Render(page)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want != "" && !strings.HasPrefix(got, "["+tc.want+"][") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			page.Text = got
			if again, err := library.Render(page); err != nil || again != got {
				t.Errorf("rendered again it is %q (%v), want %q", again, err, got)
			}
		})
	}
}

func TestRender_InvalidReferencesAreErrors(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a comparison that does not hold": {"[less][run: time against a, b below 0.4]", "does not hold"},
		"a word that is not its number":   {"[a quarter][run: time against a, size=1, b]", "not within"},
		"an unknown run":                  {"[1][other: time (us), a]", "no results"},
		"an unknown column":               {"[1][run: speed, a]", "no column"},
		"an unknown row":                  {"[1][run: time (us), c]", "no row"},
		"several rows for a number":       {"[1 us][run: time (us), a]", "1 numbers for 2 cells"},
		"too few digits":                  {"[0x][run: time against a, size=2, b]", "too few digits"},
		"a time without a unit":           {"[1][run: time (us), size=1, a]", "no unit of time"},
		"another setting":                 {"[6 % less][run.yaml: gain]", "is not in"},
		"another quotation":               {"[13 %][claims: c]", "is not in"},
		"words for a number":              {"[fast][run: time (us), size=1, a]", "add a condition"},
	} {
		t.Run(name, func(t *testing.T) {
			library, page := study(t, tc.text+"\n")
			if got, err := library.Render(page); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, error %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

func TestRender_TextRepeatsTheProgram(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a constant":                       {"[4,096 bytes][code: server::STEP]", ""},
		"a shifted constant":               {"[64 MiB][code: ROOM]", ""},
		"one in words":                     {"[two][code: wait::STEP]", ""},
		"a duration":                       {"[20 ms][code: STALL]", ""},
		"one of the harness":               {"[2][code: USAGE]", ""},
		"a constant with another value":    {"[4,095 bytes][code: server::STEP]", "is not in"},
		"a name with several values":       {"[2][code: STEP]", "no column"},
		"a constant made of others":        {"[2][code: OTHER]", "no column"},
		"the limits of a flag":             {"[1 to 32][flags: batch-size]", ""},
		"the default of a flag":            {"[8][flags: batch-size]", ""},
		"the choices of a flag":            {"[256 or 512][flags: aes]", ""},
		"a value that the flag has not":    {"[33][flags: batch-size]", "is not in"},
		"a flag that the template has not": {"[33][flags: rows]", "no column"},
	} {
		t.Run(name, func(t *testing.T) {
			library, page := study(t, tc.text+"\n<!-- parameters t -->\n<!-- /parameters -->\n")
			page.Path = "workloads/a/b/README.md"
			got, err := library.Render(page)
			switch {
			case tc.want == "" && (err != nil || !strings.HasPrefix(got, tc.text)):
				t.Errorf("got %q, error %v, want the text as it was", got, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %q, error %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

func TestUnreferenced_WhatIsNoReferenceIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"a number":                         {"It takes 2 ms.", []string{"1: 2"}},
		"one in words":                     {"It takes\nhalf of it.", []string{"2: half"}},
		"a date and a machine":             {"2026-11-28, AMD EPYC", []string{"1: 2026", "1: AMD", "1: EPYC"}},
		"a verdict":                        {"It is Go.", []string{"1: Go"}},
		"a comparison":                     {"It is faster.", []string{"1: faster"}},
		"a title that asks":                {"# Is it faster?", nil},
		"a title that does not":            {"# It is faster", []string{"1: faster"}},
		"a paragraph about the document":   {"**The document's claim.** It takes 2 ms.", []string{"1: 2"}},
		"a reference":                      {"It takes [2 ms][run: time (us), size=1, a].", nil},
		"a table outside the markers":      {"| a |", []string{"1: a row of a table outside the markers"}},
		"a table within them":              {"<!-- table local/run/t -->\n| 1 |\n<!-- /table -->", nil},
		"code":                             {"`nodelay=1`, p95, AVX-512\n```sh\nsleep 1\n```", nil},
		"a link to another site":           {"[40 ms](https://example.com)", nil},
		"a link to a file with the number": {"[0.95](run.yaml)", nil},
		"a link to a file without it":      {"[0.96](run.yaml)", []string{"1: 0.96"}},
		"one with a part of its number":    {"[0.9](run.yaml)", []string{"1: 0.9"}},
		"the name of a file":               {"run-25k.yaml", nil},
		"a number as code":                 {"exit code `2`, `40 ms`", []string{"1: 2", "1: 40"}},
	} {
		t.Run(name, func(t *testing.T) {
			library, page := study(t, tc.text+"\n")
			if got := library.Unreferenced(page); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestExplanations_WithoutAShareAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
	}{
		"a cause without a figure":         {"It is slow because it reads.", "without a share"},
		"a cause after a comma":            {"It is slow, as it has more to read.", "without a share"},
		"a cause in a noun":                {"Reading is the cause of it.", "without a share"},
		"a cause that results":             {"The time results from reading.", "without a share"},
		"a comparison with as":             {"It reads, as in the document.", ""},
		"a cause with a time only":         {"It is slow because it reads [2 ms][run: time (us), size=1, a].", "without a share"},
		"a cause with a share":             {"It is slow because it reads [0.5][run: time (us), size=1, b over size=1, a] of it.", ""},
		"a cause with a ratio":             {"It is slow because it reads [0.5x][run: time against a, size=1, b].", ""},
		"a share in another sentence":      {"It is slow because it reads. It takes [0.5x][run: time against a, size=1, b].", "without a share"},
		"a condition below it":             {"It is slow because it reads.\n<!-- shown by run: time against a, size=1, b at most 0.6 -->", ""},
		"a condition that does not hold":   {"It is slow because it reads.\n<!-- shown by run: time against a, size=1, b at most 0.4 -->", "does not hold"},
		"a column without a condition":     {"It is slow because it reads.\n<!-- shown by run: time against a, size=1, b -->", "has no condition"},
		"a test":                           {"It is slow because it reads.\n<!-- shown by test known -->", ""},
		"an unknown test":                  {"It is slow because it reads.\n<!-- shown by test other -->", "does not exist"},
		"a question":                       {"Is it slow because it reads?", ""},
		"a claim in bold without a figure": {"**It is slow.** It reads.", "in bold"},
		"one with a figure":                {"**It is slow**: [2.0 ms][run: time (us), size=1, a].", ""},
		"one with the document's figure":   {"**It is slow**: [5.2 ms][claims: c].", "in bold"},
		"one that opts out":                {"**It is slow.**\n<!-- no figure: it is the question -->", ""},
		"an opt-out without a reason":      {"**It is slow.**\n<!-- no figure: -->", "in bold"},
	} {
		t.Run(name, func(t *testing.T) {
			library, page := study(t, tc.text+"\n")
			got := strings.Join(library.Explanations(page), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
