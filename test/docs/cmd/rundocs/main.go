// Command rundocs executes the shell commands of the documentation, page by page, each in a separate shell that starts in
// the root of the tree. It needs the environment that the pages expect: bin/ and kubectl on the PATH, and KUBECONFIG.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/test/docs"
)

func main() {
	root := flag.String("root", ".", "root of the tree")
	only := flag.String("only", "", "pages whose path contains this")
	limit := flag.Duration("limit", 20*time.Minute, "time for one page, blocks that noise has run again included")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *root, *only, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "rundocs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, only string, limit time.Duration) error {
	pages, err := docs.Pages(root)
	if err != nil {
		return err
	}
	var failed []string
	for _, page := range pages {
		if !strings.Contains(page, only) {
			continue
		}
		blocks, err := docs.ReadPage(root, page)
		if err != nil {
			return err
		}
		script := docs.Script(page, blocks)
		if script == "" {
			continue
		}
		fmt.Printf("== %s\n", page)
		started := time.Now()
		before, err := tree(ctx, root)
		if err != nil {
			return err
		}
		err = execute(ctx, root, script, limit)
		if after, treeErr := tree(ctx, root); treeErr != nil || after != before {
			err = errors.Join(err, treeErr, fmt.Errorf("the tree is not as it was; git status:\n%s", after))
		}
		if err != nil {
			fmt.Printf("%s: %v\n", page, err)
			failed = append(failed, page)
		}
		fmt.Printf("   %.0f s\n", time.Since(started).Seconds())
	}
	if len(failed) > 0 {
		return fmt.Errorf("commands of these pages fail: %s", strings.Join(failed, ", "))
	}
	return ctx.Err()
}

// tree returns the changes that git reports. Files that a page leaves behind could enter the next commit.
func tree(ctx context.Context, root string) (string, error) {
	command := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=all")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git status: %w", err)
	}
	return string(out), nil
}

func execute(ctx context.Context, root, script string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", script)
	command.Dir, command.Stdout, command.Stderr = root, os.Stdout, os.Stderr
	// Processes of a page end with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	return command.Run()
}
