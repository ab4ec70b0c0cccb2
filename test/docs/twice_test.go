package docs

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longestTwice is how many lines of code may stand in two places. More belong in one place that both use.
const longestTwice = 8

// stretchesTwice are the pairs of files that say more of the same, with the decision that says why.
var stretchesTwice = map[[2]string]string{
	{"operator/api/v1alpha1/benchmarktemplate_types.go", "operator/internal/experiment/plan.go"}: "plan-and-spec.md",
}

// stretch is lines of code in two places: the files, and where it begins in each.
type stretch struct {
	files [2]string
	at    [2]int
	lines int
}

func (s stretch) String() string {
	return fmt.Sprintf("%s:%d and %s:%d have %d lines of code in common, and at most %d are allowed: write them once",
		s.files[0], s.at[0], s.files[1], s.at[1], s.lines, longestTwice)
}

// codeLine is a line without its indentation, and its number.
type codeLine struct {
	text string
	at   int
}

// commentary is how lines begin that are no code, by the end of the file's name: comments, imports and what names the package.
var commentary = map[string]*regexp.Regexp{
	".go": regexp.MustCompile(`^(//|package |import )`),
	".rs": regexp.MustCompile(`^(//|(pub(\([a-z]+\))? )?(use|mod) )`),
}

var shellCommentary = regexp.MustCompile(`^#`)

// codeLines are the lines of code of a file. The tests of a Rust module stand at its end.
func codeLines(name, text string) []codeLine {
	skipped, imports := commentary[filepath.Ext(name)], false
	if skipped == nil {
		skipped = shellCommentary
	}
	var out []codeLine
	at := 0
	for line := range strings.Lines(text) {
		at++
		line = strings.TrimSpace(line)
		if filepath.Ext(name) == ".rs" && line == "#[cfg(test)]" {
			return out
		}
		imports = imports && line != ")" || line == "import ("
		if line != "" && !imports && !skipped.MatchString(line) {
			out = append(out, codeLine{line, at})
		}
	}
	return out
}

// repeated finds the stretches of more than longestTwice lines that stand twice, each at its whole length.
func repeated(files map[string][]codeLine) []stretch {
	type place struct {
		file string
		line int
	}
	const window = longestTwice + 1
	places := map[[window]string][]place{}
	var out []stretch
	for _, file := range slices.Sorted(maps.Keys(files)) {
		lines := files[file]
		for i := range len(lines) - window + 1 {
			var key [window]string
			for k := range key {
				key[k] = lines[i+k].text
			}
			for _, other := range places[key] {
				before := files[other.file]
				if i > 0 && other.line > 0 && before[other.line-1].text == lines[i-1].text {
					continue // A part of a stretch that is there already.
				}
				n := 0
				for i+n < len(lines) && other.line+n < len(before) && lines[i+n].text == before[other.line+n].text {
					n++
				}
				out = append(out, stretch{[2]string{other.file, file}, [2]int{before[other.line].at, lines[i].at}, n})
			}
			places[key] = append(places[key], place{file, i})
		}
	}
	return out
}

func TestNoStretchOfCodeStandsTwice(t *testing.T) {
	list := exec.Command("git", "ls-files", "-z", "--", "*.go", "*.rs", "*.sh", "*.mk", ":(exclude,attr:linguist-generated)",
		":(exclude,attr:linguist-vendored)", ":(exclude)*_test.go", ":(exclude)*/testdata/*", ":(exclude)*/tests/*", ":(exclude)test/*")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]codeLine{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !os.IsNotExist(err) { // It may be deleted and not committed yet.
			t.Fatal(err)
		}
		files[name] = codeLines(name, string(text))
	}
	if len(files) < 500 {
		t.Fatalf("git lists %d files of code", len(files))
	}
	explained := map[[2]string]bool{}
	for _, s := range repeated(files) {
		if stretchesTwice[s.files] == "" {
			t.Error(s)
		}
		explained[s.files] = true
	}
	for pair, decision := range stretchesTwice {
		if _, err := os.Stat(filepath.Join(root, "docs", "decisions", decision)); err != nil || !explained[pair] {
			t.Errorf("%s no longer repeats %s, or docs/decisions/%s is gone: remove the exception", pair[1], pair[0], decision)
		}
	}
}

func TestWhatStandsTwice(t *testing.T) {
	body := func(lines int, of string) string {
		var out strings.Builder
		for i := range lines {
			fmt.Fprintf(&out, "%s(%d)\n", of, i)
		}
		return out.String()
	}
	for name, tc := range map[string]struct {
		a, b string
		want []stretch
	}{
		"as many as may":                 {body(8, "f"), body(8, "f"), nil},
		"a line more":                    {body(9, "f"), body(9, "f"), []stretch{{[2]string{"a.go", "b.go"}, [2]int{1, 1}, 9}}},
		"many, once":                     {body(20, "f"), body(20, "f"), []stretch{{[2]string{"a.go", "b.go"}, [2]int{1, 1}, 20}}},
		"indented, and after others":     {body(9, "f"), "x\n" + strings.ReplaceAll(body(9, "f"), "f", "\tf"), []stretch{{[2]string{"a.go", "b.go"}, [2]int{1, 2}, 9}}},
		"a comment between is no code":   {body(9, "f"), strings.Replace(body(9, "f"), "f(3)", "// Why.\nf(3)", 1), []stretch{{[2]string{"a.go", "b.go"}, [2]int{1, 1}, 9}}},
		"other names are another matter": {body(9, "f"), body(9, "g"), nil},
		"twice in a file":                {body(9, "f") + "x\n" + body(9, "f"), "", []stretch{{[2]string{"a.go", "a.go"}, [2]int{1, 11}, 9}}},
		"imports":                        {"import (\n" + body(9, "f") + ")\n", "import (\n" + body(9, "f") + ")\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := repeated(map[string][]codeLine{"a.go": codeLines("a.go", tc.a), "b.go": codeLines("b.go", tc.b)})
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if got := codeLines("a.rs", "use a;\nfn f() {}\n#[cfg(test)]\nmod tests {}\n"); len(got) != 1 || got[0] != (codeLine{"fn f() {}", 2}) {
		t.Errorf("the code of a Rust file is %v", got)
	}
}
