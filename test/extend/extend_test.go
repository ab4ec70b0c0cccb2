// Package extend checks that a gate operator, an output format and a noise reading can be added in a few files. Each patch in this folder
// adds one.
package extend

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostFiles is the largest number of hand-written files that a patch may touch, including tests and docs.
const mostFiles = 6

// patches and the tests of the Rust packages that they change. Of the operator all packages are tested: a list of concepts may be anywhere.
var patches = map[string][]string{
	"operator.patch": nil,
	"format.patch":   {"cargo", "test", "--locked", "-p", "assay-schema", "-p", "assay-adapters"},
	"reading.patch":  {"cargo", "test", "--locked", "-p", "assay-schema", "-p", "assay-runner", "--lib"},
}

func operator(arguments ...string) []string {
	return append([]string{"go", "-C", "operator"}, arguments...)
}

func TestPatch_TouchesFewHandWrittenFiles(t *testing.T) {
	root := rootOf(t)
	for name := range patches {
		t.Run(name, func(t *testing.T) {
			patch := filepath.Join(root, "test", "extend", name)
			run(t, root, "git", "apply", "--check", patch)
			touched := touches(t, patch)
			if len(touched) > mostFiles {
				t.Errorf("%d files are touched and at most %d are allowed: %v", len(touched), mostFiles, touched)
			}
			for _, problem := range forbidden(t, root, touched) {
				t.Error(problem)
			}
		})
	}
}

func TestForbidden_GeneratedFilesAndExistingFixtures(t *testing.T) {
	root := rootOf(t)
	touched := map[string]bool{
		"operator/api/v1alpha1/zz_generated.concepts.go":   true,
		"operator/internal/analysis/analyze/testdata/a.go": false,
		"operator/internal/metrics/testdata/scrape.golden": true,
		"operator/internal/experiment/operator.go":         true,
	}
	if got := forbidden(t, root, touched); len(got) != 2 {
		t.Errorf("got %q, want the generated file and the existing golden file", got)
	}
}

// TestPatch_BuildsAndPassesTests applies each patch to its own copy of the tree, regenerates the types, and runs the tests.
func TestPatch_BuildsAndPassesTests(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the operator and the runner for each patch")
	}
	root := rootOf(t)
	for name, tests := range patches {
		t.Run(name, func(t *testing.T) {
			tree := copyOf(t, root)
			run(t, tree, "git", "apply", filepath.Join(root, "test", "extend", name))
			run(t, tree, operator("generate", "./internal/record")...)
			run(t, tree, operator("generate", "./internal/experiment")...)
			for _, arguments := range []string{"object paths=./api/...", "crd paths=./api/... output:crd:dir=config/crd"} {
				run(t, tree, "sh", "-c", "cd operator && ../hack/tool.sh controller-gen "+arguments)
			}
			run(t, tree, operator("build", "./...")...)
			// Two outputs of the program are kept in the tree, and change with the concepts that it shows.
			run(t, tree, operator("test", "./internal/metrics", "./internal/report/html", "-run", "GoldenFile|ReportInDocs", "-update")...)
			run(t, tree, operator("test", "-short", "./api/...", "./config/...", "./internal/...")...)
			if len(tests) > 0 {
				run(t, tree, tests...)
			}
		})
	}
}

func rootOf(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

var header = regexp.MustCompile(`(?m)^diff --git a/(\S+) b/\S+\n(new file mode)?`)

// touches returns the files of a patch, with true for one that exists before it.
func touches(t *testing.T, patch string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, match := range header.FindAllStringSubmatch(string(raw), -1) {
		out[match[1]] = match[2] == ""
	}
	if len(out) == 0 {
		t.Fatalf("%s touches no file", patch)
	}
	return out
}

var fixture = regexp.MustCompile(`(^|/)(testdata|fixtures|golden)/|\.golden$`)

// forbidden describes the files that a patch must not touch.
func forbidden(t *testing.T, root string, touched map[string]bool) []string {
	t.Helper()
	var out []string
	for file, exists := range touched {
		attribute := run(t, root, "git", "check-attr", "linguist-generated", "--", file)
		if strings.HasSuffix(strings.TrimSpace(attribute), ": set") {
			out = append(out, file+" is generated, so it does not belong to a patch")
		}
		if exists && fixture.MatchString(file) {
			out = append(out, file+" is an existing fixture or golden file")
		}
	}
	slices.Sort(out)
	return out
}

// copyOf copies the files that git knows of into a temporary folder.
func copyOf(t *testing.T, root string) string {
	t.Helper()
	tree := t.TempDir()
	files := run(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for file := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		from, to := filepath.Join(root, file), filepath.Join(tree, file)
		info, err := os.Lstat(from)
		if os.IsNotExist(err) {
			continue // Deleted and not committed.
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			var target string
			if target, err = os.Readlink(from); err == nil {
				err = os.Symlink(target, to)
			}
		} else if err == nil {
			var raw []byte
			if raw, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, raw, info.Mode().Perm())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// run returns the output of a command, and fails the test with it if the command fails.
func run(t *testing.T, folder string, command ...string) string {
	t.Helper()
	var out bytes.Buffer
	program := exec.CommandContext(t.Context(), command[0], command[1:]...)
	program.Dir, program.Stdout, program.Stderr = folder, &out, &out
	// All copies share the compiled dependencies.
	program.Env = append(os.Environ(), "CARGO_TARGET_DIR="+filepath.Join(rootOf(t), "target", "extend"))
	if err := program.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out.String())
	}
	return out.String()
}
