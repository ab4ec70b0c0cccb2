package host

// This file runs other programs without a shell, behind an interface that tests can replace.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command is one program call.
type Command struct {
	Path  string
	Args  []string
	Dir   string
	Env   []string // added to this process's environment
	Stdin io.Reader
}

// String is the call as a person would type it.
func (c Command) String() string { return strings.Join(append([]string{c.Path}, c.Args...), " ") }

// Runner runs a command and returns its standard output.
type Runner interface {
	Output(ctx context.Context, command Command) ([]byte, error)
}

// OS runs commands on this machine.
type OS struct{}

// Output runs the command; an error carries the end of the command's standard error.
func (OS) Output(ctx context.Context, command Command) ([]byte, error) {
	cmd := exec.CommandContext(ctx, command.Path, command.Args...)
	cmd.Dir = command.Dir
	cmd.Env = append(os.Environ(), command.Env...)
	cmd.Stdin = command.Stdin
	// A program that outlives this one would be left over when this one is killed. The kernel sends the signal when the
	// thread that started it ends, hence the lock.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// A grandchild that keeps the pipes open must not keep us waiting after the deadline.
	cmd.WaitDelay = 2 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(err, ctx.Err())
		}
		return stdout.Bytes(), fmt.Errorf("%s: %w: %s", command, err, Tail(stderr.String(), 12))
	}
	return stdout.Bytes(), nil
}

// Tail returns the last lines of a text.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
