package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// repository is a new one, in which each step is a shell command that makes commits.
func repository(t *testing.T, steps ...string) Repository {
	t.Helper()
	folder := t.TempDir()
	for _, step := range append([]string{"git init --quiet --initial-branch main"}, steps...) {
		command := exec.CommandContext(t.Context(), "/bin/sh", "-ec", step)
		command.Dir = folder
		command.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", step, err, out)
		}
	}
	return Repository{Folder: folder}
}

const commits = `for i in 1 2 3 4; do echo $i > n; git add n; git commit --quiet -m "step $i"; git tag v$i; done`

func TestCommits_BetweenTwoRevisions(t *testing.T) {
	merged := commits + `
git checkout --quiet -b side v2; echo side > s; git add s; git commit --quiet -m side; git tag side
git checkout --quiet main; git merge --quiet --no-ff -m "merge side" side; git tag merged; echo 5 > n; git commit --quiet -am "step 5"; git tag v5`
	r := repository(t, merged)
	for name, tc := range map[string]struct{ good, bad, want, fails string }{
		"are in their order, both counted in":      {good: "v1", bad: "v4", want: "step 1, step 2, step 3, step 4"},
		"have a merge as one step":                 {good: "v3", bad: "v5", want: "step 3, step 4, merge side, step 5"},
		"are two neighbours":                       {good: "v1", bad: "v2", want: "step 1, step 2"},
		"cannot be one":                            {good: "v1", bad: "v1^{commit}", fails: "both are commit"},
		"are no history the wrong way round":       {good: "v4", bad: "v1", fails: "is not an ancestor of --bad"},
		"are no first parents of each other":       {good: "side", bad: "v5", fails: "came to \"v5\" by a merge"},
		"have names that git knows":                {good: "v9", bad: "v1", fails: `invalid good "v9": no commit has that name`},
		"have names that git does not take as its": {good: "v1", bad: "--all", fails: `invalid bad "--all"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Between(t.Context(), tc.good, tc.bad)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("%v, want %q", err, tc.fails)
				}
				return
			}
			var subjects []string
			for _, c := range got {
				subjects = append(subjects, c.Subject)
			}
			if text := strings.Join(subjects, ", "); err != nil || text != tc.want {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
	_, err := (Repository{Folder: t.TempDir()}).Between(t.Context(), "a", "b")
	if err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("in a missing folder: %v", err)
	}
}

func TestBuild_RunsInASeparateWorktree(t *testing.T) {
	r := repository(t, commits, "echo mine > n")
	folder := filepath.Join(t.TempDir(), "builds", "v2")
	var log bytes.Buffer
	for range 2 { // Again is anew.
		if err := r.Build(t.Context(), "v2", folder, `cp n built && echo "$ASSAY_REVISION in $(pwd)"`, time.Minute, &log); err != nil {
			t.Fatal(err)
		}
	}
	if built, err := os.ReadFile(filepath.Join(folder, "built")); err != nil || string(built) != "2\n" {
		t.Errorf("%q, %v", built, err)
	}
	if !strings.Contains(log.String(), "v2 in ") {
		t.Errorf("the log is %q", log.String())
	}
	if mine, err := os.ReadFile(filepath.Join(r.Folder, "n")); err != nil || string(mine) != "mine\n" {
		t.Errorf("the person's own change is gone: %q, %v", mine, err)
	}
	for range 2 {
		if err := r.Remove(t.Context(), folder); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := r.git(t.Context(), "worktree", "list"); err != nil || strings.Count(left, "\n") != 1 {
		t.Errorf("%v, %s", err, left)
	}
}

// sleeper is a build whose process starts another one that outlives it.
const sleeper = "sleep 600 & echo $! > pid; wait"

// zombie reports whether a process has ended and waits to be reaped.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestBuild_InvalidBuildsAreErrors(t *testing.T) {
	r := repository(t, commits)
	folder := filepath.Join(t.TempDir(), "build")
	for name, tc := range map[string]struct {
		hash, command string
		limit         time.Duration
		commits       bool
		says          string
	}{
		"a command that fails is the commit's fault":      {"v2", "exit 3", time.Minute, true, "exit status 3"},
		"so is one that never ends":                       {"v2", sleeper, time.Second, true, "longer than 1s"},
		"a commit that is not there is nothing about one": {"v9", "true", time.Minute, false, "v9"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			err := r.Build(t.Context(), tc.hash, folder, tc.command, tc.limit, &bytes.Buffer{})
			if err == nil || errors.Is(err, ErrBuild) != tc.commits || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %s", took)
			}
			if raw, err := os.ReadFile(filepath.Join(folder, "pid")); err == nil {
				pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
				if err != nil {
					t.Fatal(err)
				}
				for range 100 { // The process that adopts it reaps it later.
					if syscall.Kill(pid, 0) != nil || zombie(pid) {
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
				t.Errorf("process %d that the build started is left", pid)
			} else if tc.command == sleeper {
				t.Errorf("it did not start: %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Build(ctx, "v2", folder, "true", time.Minute, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
