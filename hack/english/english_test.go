package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestExtract_FindsTheProseOfEachLanguage(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		want          []string
	}{
		"Go comments and strings, not identifiers": {"a.go", "package a\n\n// One two.\nconst whatIs = \"three four\" + `five six`\n",
			[]string{"3 // One two.", "4 three four", "4 five six"}},
		"Rust comments, strings and raw strings": {"a.rs", "//! One two.\n" +
			"fn a<'a>() { b('\"', \"three \\\" four\", r#\"five \" six\"#) } /* seven\neight nine */\n",
			[]string{"1 //! One two.", "2 \"three \\\" four\"", "2 r#\"five \" six", "3 eight nine "}},
		"Markdown outside fenced blocks": {"a.md", "One two.\n```sh\nwhat is\n```\nThree four.\n", []string{"1 One two.", "5 Three four."}},
		"Markdown outside copied tables": {"a.md", "One two.\n<!-- table a/b -->\n#### Three four\n<!-- /table -->\nFive six.\n",
			[]string{"1 One two.", "5 Five six."}},
		"a study without the titles that its results repeat": {"workflows/studies/a/run.yaml", "# one two\n- {title: three four}\n",
			[]string{"1 # one two"}},
		"shell comments":         {"a.sh", "run it # one two\n${#three} four\n", []string{"1  one two"}},
		"whole YAML":             {"a.yaml", "summary: one two\n", []string{"1 summary: one two"}},
		"nothing of other files": {"a.json", `{"a": "one two"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, text := range extract(test.file, []byte(test.content)) {
				got = append(got, string(rune('0'+text.line))+" "+text.body)
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}

func TestCountTexts_CountsClausesAndAllowsOrdinaryUses(t *testing.T) {
	for body, want := range map[string]int{
		"Lines is what the run has left":           1,
		"whatever keeps this pass from its end":    1,
		"nobody reads it, and whoever did is gone": 2,
		"each has a folder of its own":             1,
		"the error says what to do":                0,
		"What does it measure?":                    0,
		"requeue adds the run to the queue":        0,
	} {
		tally, _ := countTexts("a.md", []text{{1, body}})
		got := 0
		for _, n := range tally.hits {
			got += n
		}
		if got != want {
			t.Errorf("%q: got %d clauses, want %d", body, got, want)
		}
	}
}

func TestRun_TreeAboveTheLimitFails(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("docs/a.md", strings.Repeat("A plain line of text.\n", 998)+"This is what is left.\nNobody reads it.\n")
	write("other/generated.md", "what is what is\n")
	write(".gitattributes", "other/* linguist-generated\n")
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}} {
		if out, err := exec.Command("git", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", arguments[0], err, out)
		}
	}
	var out strings.Builder
	if err := run(nil, nil, &out); err != nil {
		t.Errorf("2 clauses in 1,000 lines are below the limit of 3: %v", err)
	}
	err := run([]string{"-limit", "0.5"}, nil, &out)
	if err == nil || !strings.Contains(err.Error(), "docs: 2 in 1000 lines") || strings.Contains(err.Error(), "other") {
		t.Errorf("2 clauses in 1,000 lines with a limit of 0.5: got %v, want an error that names docs alone", err)
	}
	out.Reset()
	if err := run([]string{"-figure"}, nil, &out); err != nil || !strings.Contains(out.String(), `"value":2.00,"unit"`) {
		t.Errorf("2 clauses in 1,000 lines: got %s, %v", out.String(), err)
	}
	help := strings.NewReader("print what is there\nprint what is left\n")
	if err := run([]string{"-limit", "0.5", "-stdin", "help", "other"}, help, &out); err == nil {
		t.Error("a clause on standard input was not counted")
	}
}
