package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCount_LineHasOneKind(t *testing.T) {
	cases := map[string]struct {
		name, attribute, content string
		want                     map[string]int
	}{
		"blank lines and comments are no code":              {"operator/a.go", "", "// A.\npackage a\n\nvar x = 1 // One.\n", map[string]int{code: 2, remarks: 1}},
		"a test of Go is a separate file":                   {"operator/a_test.go", "", "package a\n", map[string]int{tests: 1}},
		"the tests of a Rust module are its end":            {"workloads/a.rs", "", "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n", map[string]int{code: 2, tests: 3}},
		"a function that only tests see leaves code":        {"workloads/a.rs", "", "#[cfg(test)]\nfn a() {}\nfn b() {}\n", map[string]int{code: 3}},
		"a crate's tests have a folder":                     {"runner/runner/tests/a.rs", "", "fn a() {}\n", map[string]int{tests: 1}},
		"a fixture is one in any language":                  {"operator/internal/a/testdata/b.go", "", "package a\n", map[string]int{fixtures: 1}},
		"text counts without comments in it":                {"docs/a.md", "", "# A\n\n// b\n", map[string]int{docs: 2}},
		"generated files count as generated in any folder":  {"operator/a.go", generated, "package a\n", map[string]int{generated: 1}},
		"third-party files count as such first":             {"charts/testdata/a.yaml", thirdParty, "a: 1\n", map[string]int{thirdParty: 1}},
		"binary files do not count":                         {"a.png", "", "a\x00b\n", nil},
		"a comment of a Makefile does not count":            {"Makefile", "", "# A.\na:\n\tb\n", map[string]int{code: 2, remarks: 1}},
		"an ending that nothing is known of has no comment": {"a.txt", "", "// a\n# b\n", map[string]int{code: 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := countFile(tc.name, tc.attribute, []byte(tc.content)); !maps.Equal(got, tc.want) {
				t.Errorf("counted %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCount_CheckoutByPart(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		".gitattributes": "made.go linguist-generated\nthird_party/** linguist-vendored\n",
		"a/b.go":         "package b\n", "a/made.go": "package b\n", "third_party/c.yaml": "c: 1\nd: 2\n", "README.md": "# A\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Remove(filepath.Join(root, "a/b.go")); err != nil {
		t.Fatal(err)
	}
	counted, err := countTree(root)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := counted.print(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(out.String())
	want := "lines code tests fixtures generated third-party docs comments " +
		"(top) 2 0 0 0 0 1 0 a 0 0 0 1 0 0 0 third_party 0 0 0 0 2 0 0 all 2 0 0 1 2 1 0"
	if got := strings.Join(lines, " "); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}
