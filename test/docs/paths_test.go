package docs

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inCode matches a path in backticks.
var inCode = regexp.MustCompile("`([A-Za-z0-9_.<>*-]+/[A-Za-z0-9_./<>*-]*)`")

// placeholder stands for any name in a path, such as <tool>.
var placeholder = regexp.MustCompile(`<[a-z]+>`)

// deadPaths lists the paths in a page's code spans that begin with a folder of the tree or of the page's own folder, and do not exist.
func deadPaths(root, page, text string) []string {
	exists := func(name string) bool {
		found, err := filepath.Glob(filepath.Join(root, name))
		return err == nil && len(found) > 0
	}
	var out []string
	for _, match := range inCode.FindAllStringSubmatch(text, -1) {
		name := placeholder.ReplaceAllString(match[1], "*")
		first, _, _ := strings.Cut(name, "/")
		beside := path.Join(path.Dir(page), name)
		// Builds write these folders, which git ignores.
		if slices.Contains([]string{"bin", "out", "dist", "target"}, first) {
			continue
		}
		known := exists(first) || exists(path.Join(path.Dir(page), first))
		// The table of packages leaves out their common folder.
		if known && !exists(name) && !exists(beside) && !exists(path.Join("operator", name)) {
			out = append(out, match[1])
		}
	}
	return out
}

func TestPages_PathsInCodeSpansExist(t *testing.T) {
	list := exec.Command("git", "ls-files", "*.md", ":!*/results/*", ":!*/testdata/*")
	list.Dir = root
	pages, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for page := range strings.FieldsSeq(string(pages)) {
		for _, name := range deadPaths(root, page, textOf(t, page)) {
			t.Errorf("%s names the path %s, which does not exist: correct it", page, name)
		}
	}
}

func TestDeadPaths_MissingFileIsReported(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	const text = "`a/b` and `a/<name>` exist, `a/c` and `b/none.go` do not; `example.com/x` is no path of the tree."
	if got := strings.Join(deadPaths(root, "a/README.md", text), " "); got != "a/c b/none.go" {
		t.Errorf("got %q, want the two paths that do not exist", got)
	}
}
