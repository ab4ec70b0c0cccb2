// Package checkout lists the commits of a git repository and builds each in a separate worktree (git-worktree(1)), without modifying the
// checkout of the user.
package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Repository is a git repository, by any folder of its checkout.
type Repository struct {
	Folder string
	// options stand before the command of git. With options, git reads no configuration but theirs and the repository's.
	options []string
}

// Commit is one step of a history.
type Commit struct {
	Hash    string `json:"hash"`
	Subject string `json:"subject"`
}

// Between are the commits from good to bad, both counted in, along first parents: a merge is one step, which brought all that was merged.
func (r Repository) Between(ctx context.Context, good, bad string) ([]Commit, error) {
	from, err := r.commit(ctx, "good", good)
	if err != nil {
		return nil, err
	}
	to, err := r.commit(ctx, "bad", bad)
	if err != nil {
		return nil, err
	}
	if from.Hash == to.Hash {
		return nil, fmt.Errorf("invalid good %q and bad %q: both are commit %s; name two", good, bad, from.Hash)
	}
	if _, err := r.git(ctx, "merge-base", "--is-ancestor", from.Hash, to.Hash); err != nil {
		return nil, fmt.Errorf("--good %q is not an ancestor of --bad %q; if the history was rewritten, use their merge base "+
			"(git merge-base %s %s)", good, bad, good, bad)
	}
	text, err := r.git(ctx, "log", "--first-parent", "--reverse", "--format=%H%x09%s", from.Hash+".."+to.Hash)
	if err != nil {
		return nil, err
	}
	out := []Commit{from}
	for line := range strings.Lines(text) {
		hash, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out = append(out, Commit{hash, subject})
	}
	parent, err := r.git(ctx, "rev-parse", "--verify", "--quiet", out[1].Hash+"^1")
	if parent = strings.TrimSpace(parent); err != nil || parent != from.Hash {
		return nil, fmt.Errorf("invalid good %q: it came to %q by a merge, and only first parents are searched; the newest of them that does "+
			"not have it is %s", good, bad, parent)
	}
	return out, nil
}

// commit is the one that a person calls by a name.
func (r Repository) commit(ctx context.Context, what, name string) (Commit, error) {
	hash, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		if _, notGit := r.git(ctx, "rev-parse", "--git-dir"); notGit != nil {
			return Commit{}, fmt.Errorf("%s: %w", r.Folder, notGit)
		}
		return Commit{}, fmt.Errorf("invalid %s %q: no commit has that name in %s: git fetch it, or write another", what, name, r.Folder)
	}
	hash = strings.TrimSpace(hash)
	subject, err := r.git(ctx, "log", "-1", "--format=%s", hash)
	return Commit{hash, strings.TrimSpace(subject)}, err
}

// Build checks a commit out into a folder and runs a shell command there. It returns ErrBuild if the commit does not build; other errors
// are unrelated to the commit.
func (r Repository) Build(ctx context.Context, hash, folder, command string, limit time.Duration, log io.Writer) error {
	if err := r.Remove(ctx, folder); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	if _, err := r.git(ctx, "worktree", "add", "--quiet", "--detach", "--force", folder, hash); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	build := exec.CommandContext(limited, "/bin/sh", "-c", command)
	build.Dir, build.Stdout, build.Stderr = folder, log, log
	build.Env = append(environment(), "ASSAY_REVISION="+hash)
	// Child processes of the command are terminated with it.
	build.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	build.Cancel = func() error { return syscall.Kill(-build.Process.Pid, syscall.SIGKILL) }
	build.WaitDelay = 5 * time.Second
	err := build.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("%w: it took longer than %s", ErrBuild, limit)
	case errors.As(err, &exit):
		return fmt.Errorf("%w: %w", ErrBuild, err)
	default:
		return fmt.Errorf("run the build: %w", err)
	}
}

// ErrBuild is the error of a commit that does not build.
var ErrBuild = errors.New("it does not build")

// Remove removes the worktree of a build; none is no error.
func (r Repository) Remove(ctx context.Context, folder string) error {
	if _, err := os.Lstat(folder); err == nil {
		if _, err := r.git(ctx, "worktree", "remove", "--force", folder); err != nil {
			// It is half of one, as an interrupted git leaves it.
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
		}
	}
	_, err := r.git(ctx, "worktree", "prune")
	return err
}

// git runs git and returns its output.
func (r Repository) git(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", slices.Concat([]string{"-C", r.Folder}, r.options, args)...)
	command.Env = append(environment(), "LC_ALL=C")
	if r.options != nil {
		command.Env = append(command.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
			"GIT_ASKPASS=/bin/false")
	}
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if text := strings.TrimSpace(problem.String()); text != "" {
			return "", fmt.Errorf("git %s: %s", args[0], text)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.String(), nil
}

// otherRepository lists the variables that select another repository than that of the folder, for example in a hook.
var otherRepository = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"}

// environment is this process's without them.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(otherRepository, name)
	})
}
