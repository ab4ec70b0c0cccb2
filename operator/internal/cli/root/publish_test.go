package root

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"assay.dev/assay/operator/internal/cli"
)

// A forge links to a file by its path in the repository, wherever the gate was started and however the file was named.
func TestPublish_PathRelativeToRepository(t *testing.T) {
	base := t.TempDir()
	for _, folder := range []string{"repository/.git", "repository/benchmarks/deep", "elsewhere/deep", "worktree/benchmarks"} {
		if err := os.MkdirAll(filepath.Join(base, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The .git of a worktree is a file.
	if err := os.WriteFile(filepath.Join(base, "worktree/.git"), []byte("gitdir: elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ here, file, flag, want string }{
		"named from the root":              {"repository", "benchmarks/run.yaml", "", "benchmarks/run.yaml"},
		"with a dot before it":             {"repository", "./benchmarks/run.yaml", "", "benchmarks/run.yaml"},
		"with a detour":                    {"repository", "benchmarks/deep/../run.yaml", "", "benchmarks/run.yaml"},
		"named from a folder below":        {"repository/benchmarks", "run.yaml", "", "benchmarks/run.yaml"},
		"above the folder below":           {"repository/benchmarks/deep", "../run.yaml", "", "benchmarks/run.yaml"},
		"a whole path":                     {"elsewhere", filepath.Join(base, "repository/benchmarks/run.yaml"), "", "benchmarks/run.yaml"},
		"in a worktree":                    {"elsewhere", filepath.Join(base, "worktree/benchmarks/run.yaml"), "", "benchmarks/run.yaml"},
		"a whole path below no repository": {"elsewhere", filepath.Join(base, "elsewhere/deep/run.yaml"), "", "deep/run.yaml"},
		"a file outside of repositories":   {"elsewhere/deep", "../run.yaml", "", "../run.yaml"},
		"named by --file":                  {"repository/benchmarks", "run.yaml", "./benchmarks/run.yaml", "benchmarks/run.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(filepath.Join(base, tc.here))
			answer := filepath.Join(t.TempDir(), "gate.json")
			raw, err := json.Marshal(cli.GateAnswer{File: tc.file, Reason: "no runner"})
			if err == nil {
				err = os.WriteFile(answer, raw, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"report", answer, "--format", "gitlab"}
			if tc.flag != "" {
				args = append(args, "--file", tc.flag)
			}
			stdout, stderr, err := assay(t, args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			var got []struct{ Location struct{ Path string } }
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got) != 1 || got[0].Location.Path != tc.want {
				t.Errorf("%v: the path is not %s in %s", err, tc.want, stdout)
			}
		})
	}
}
