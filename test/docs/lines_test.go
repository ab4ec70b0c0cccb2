package docs

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is how many characters a line has at most; a tab is one. It is max_line_length of .editorconfig.
const widest = 140

// Lines that cannot be broken: by the end of the file's name, those that match.
var unbreakable = map[string]*regexp.Regexp{
	// Markers, directives, and rows of tables in tests.
	"_test.go": regexp.MustCompile("^\\s*(//(go:| \\+)|(\"([^\"\\\\]|\\\\.)*\"|`[^`]*`|\\w+):\\s|[{\"`].*,$)|//nolint"),
	".go":      regexp.MustCompile(`^\s*//(go:| \+)|//nolint`),
	// Rows of tables in doc comments, and raw strings.
	".rs": regexp.MustCompile(`^\s*//[!/] \||\br#*"`),
	// Rows of tables, links, and definitions of links.
	".md": regexp.MustCompile(`^\s*\||^\s*(<!-- .*-->|\S*)$|^\[[^\]]+\]: \S+$`),
	// Schemas of values.
	".yaml": regexp.MustCompile(`^\s*# @schema `),
}

// tooLong returns the numbers of the lines of a file that are too long and could be broken.
func tooLong(name, text string) []int {
	kind := filepath.Ext(name)
	if strings.HasSuffix(name, "_test.go") {
		kind = "_test.go"
	}
	lines := strings.Split(text, "\n")
	var raw []bool
	switch kind {
	case ".go", "_test.go":
		raw = rawStrings(text, len(lines))
	case ".md":
		raw = fenced(lines)
	}
	whole := unbreakable[kind]
	var out []int
	for i, line := range lines {
		if utf8.RuneCountInString(line) > widest && (raw == nil || !raw[i]) && (whole == nil || !whole.MatchString(line)) {
			out = append(out, i+1)
		}
	}
	return out
}

// rawStrings reports which lines of Go hold a part of a raw string.
func rawStrings(text string, count int) []bool {
	out := make([]bool, count)
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return out
		}
		if kind == token.STRING && strings.HasPrefix(literal, "`") {
			first := file.Line(pos)
			for line := first; line <= first+strings.Count(literal, "\n"); line++ {
				out[line-1] = true
			}
		}
	}
}

// fenced reports which lines of Markdown are in blocks of code.
func fenced(lines []string) []bool {
	out := make([]bool, len(lines))
	inside := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		out[i] = inside || fence
		inside = inside != fence
	}
	return out
}

func TestLines_FitOnAScreen(t *testing.T) {
	list := exec.Command("git", "ls-files", "-z", "--", "*.go", "*.rs", "*.md", "*.yaml", "*.yml", "*.sh", "*.mk", "Makefile", ".ci/run",
		":(exclude,attr:linguist-generated)", ":(exclude,attr:linguist-vendored)", ":(exclude)*/testdata/*", ":(exclude)*/fixtures/*")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSuffix(string(files), "\x00"), "\x00")
	if len(names) < 100 {
		t.Fatalf("git lists %d files", len(names))
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(list.Dir, name))
		if os.IsNotExist(err) {
			continue // It is deleted and not committed yet.
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range tooLong(name, string(text)) {
			t.Errorf("%s:%d has more than %d characters: break the line", name, line, widest)
		}
	}
}

func TestLines_TooLongAreFound(t *testing.T) {
	long := strings.Repeat("x ", widest/2)
	cases := map[string]struct {
		name, text string
		want       []int
	}{
		"a line that fits":           {"a.go", "// " + long[:widest-3], nil},
		"a line of a character more": {"a.go", "// " + long[:widest-2], []int{1}},
		"a character is not a byte":  {"a.md", strings.Repeat("ä ", widest/2), nil},
		"a tab is a character":       {"a.go", "\t// " + long[:widest-4], nil},
		"code":                       {"a.go", "package a\nvar a = f(" + long + ")", []int{2}},
		"a string":                   {"a.go", "package a\nvar a = \"" + long + "\"", []int{2}},
		"a raw string":               {"a.go", "package a\nvar a = `\n" + long + "x\n" + long + "x`\n// " + long, []int{5}},
		"a raw string in a comment does not count": {"a.go", "// ` " + long, []int{1}},
		"a marker":                             {"a.go", "// +kubebuilder:rule=" + long, nil},
		"a directive":                          {"a.go", "//go:generate cp " + long, nil},
		"a row of a test":                      {"a_test.go", "\t\t\"name\": {" + long + "},", nil},
		"a row of a table that is no test":     {"a.go", "\t\t\"name\": {" + long + "},", []int{1}},
		"a row by position":                    {"a_test.go", "\t\t{" + long + "},", nil},
		"a statement of a test":                {"a_test.go", "\tt.Errorf(\"" + long + "\")", []int{1}},
		"prose":                                {"a.md", long + "x", []int{1}},
		"a row of a table in prose":            {"a.md", "| " + long + " |", nil},
		"a block of code in prose, and after":  {"a.md", "```sh\n" + long + "x\n```\n" + long + "x", []int{4}},
		"one long word, such as an address":    {"a.md", "https://" + strings.ReplaceAll(long, " ", "/"), nil},
		"a definition of a link":               {"a.md", "[" + long + "x]: a.csv", nil},
		"a comment that says how a block runs": {"a.md", "<!-- run: " + long + " -->", nil},
		"a comment of Rust":                    {"a.rs", "// " + long, []int{1}},
		"a row of a table in Rust":             {"a.rs", "//! | " + long + " |", nil},
		"a raw string of Rust":                 {"a.rs", "const A: &str = r#\"" + long + "\"#;", nil},
		"a row of YAML":                        {"a.yaml", "- {description: " + long + "}", []int{1}},
		"a schema of a value":                  {"a.yaml", "# @schema {" + long + "}", nil},
		"a command":                            {"a.sh", "echo " + long, []int{1}},
		"a target's help":                      {"Makefile", "a: b ## " + long, []int{1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tooLong(tc.name, tc.text); !slices.Equal(got, tc.want) {
				t.Errorf("lines %v, want %v", got, tc.want)
			}
		})
	}
}
