package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/operator/internal/steps"
)

// BrokenSetup is a step that failed, so that nothing is said about an arm.
type BrokenSetup struct {
	// Reason names the step, the arm, the command and its end.
	Reason string
}

func (e *BrokenSetup) Error() string { return setupBroken + e.Reason }

// The runner's exit code for a failed step, and the beginning of the last line of its standard error.
const (
	exitSetup   = 3
	setupBroken = "the setup is broken: "
)

// Steps runs the setups and the cleanups of a run on this machine, with the runner. A cleanup runs only if its setup has begun.
type Steps struct {
	Executor *Executor
	began    int
}

// Setup runs the setups of all points and arms. The first one that fails ends it with a BrokenSetup.
func (s *Steps) Setup(ctx context.Context) error {
	for s.began < len(s.cells()) {
		cell := s.began
		s.began++
		if err := s.step(ctx, cell, steps.Setup); err != nil {
			return err
		}
	}
	return nil
}

// Cleanup runs the cleanups of all points and arms whose setup began, the last one first, also those after a failed one. It runs once, and
// to its end: its context is used for values only, because it also follows an interruption.
func (s *Steps) Cleanup(ctx context.Context) error {
	var failed []error
	for ; s.began > 0; s.began-- {
		failed = append(failed, s.step(context.WithoutCancel(ctx), s.began-1, steps.Cleanup))
	}
	return errors.Join(failed...)
}

func (s *Steps) cells() []steps.Cell {
	if s.Executor.Steps == nil {
		return nil
	}
	return s.Executor.Steps.Cells
}

func (s *Steps) step(ctx context.Context, cell int, kind steps.Kind) error {
	if s.cells()[cell].Argv(kind) == nil {
		return nil
	}
	argv := append(slices.Clone(s.Executor.Within), s.Executor.Runner, "step", "--cell", fmt.Sprint(cell), "--kind", string(kind))
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said tail
	command.Stdout, command.Stderr = s.Executor.Log, io.MultiWriter(s.Executor.Log, &said)
	endsByItself(command, 0)
	if err := s.Executor.startWithSteps(command); err != nil {
		return err
	}
	err := command.Wait()
	switch broken := said.broken(command); {
	case ctx.Err() != nil:
		return ctx.Err()
	case broken != nil:
		return broken
	case err != nil:
		return fmt.Errorf("%s step: %w: %s", s.Executor.Runner, err, said.last())
	}
	return nil
}

// endsByItself makes a runner get a signal where it is cancelled, after which it has some seconds. A signal to this process's group (of a
// terminal, timeout, a cancelled CI job) does not reach it.
func endsByItself(command *exec.Cmd, more time.Duration) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10*time.Second + more
}

// startWithSteps starts a runner that reads the steps from a pipe, which trials cannot write to.
func (e *Executor) startWithSteps(command *exec.Cmd) error {
	if e.Steps == nil {
		return e.startPinned(command)
	}
	raw, err := json.Marshal(e.Steps)
	if err != nil {
		return err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pass the steps to the runner: %w", err)
	}
	defer reader.Close()
	command.Args = append(command.Args, "--steps", fmt.Sprintf("fd:%d", 3+len(command.ExtraFiles)))
	command.ExtraFiles = append(command.ExtraFiles, reader)
	if err := e.startPinned(command); err != nil {
		return errors.Join(err, writer.Close())
	}
	go func() {
		// A runner that ends early reports its reason.
		_, _ = writer.Write(raw)
		_ = writer.Close()
	}()
	return nil
}

// concludes returns the time that a runner may take to conclude its last trial after a request to stop.
func (e *Executor) concludes() time.Duration {
	if e.Steps == nil || !e.Steps.Has(steps.Conclude) {
		return 0
	}
	return time.Duration(e.Steps.TimeoutSeconds * float64(time.Second))
}

// tail keeps the end of a text.
type tail struct{ bytes.Buffer }

const longestTail = 64 << 10

func (t *tail) Write(text []byte) (int, error) {
	n, err := t.Buffer.Write(text)
	if t.Len() > longestTail {
		t.Next(t.Len() - longestTail)
	}
	return n, err
}

// last returns the last line.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(t.String()), "\n")
	return lines[len(lines)-1]
}

// broken returns the failed step that ended the runner; nil if it ended otherwise.
func (t *tail) broken(command *exec.Cmd) error {
	reason, found := strings.CutPrefix(t.last(), setupBroken)
	if !found || command.ProcessState == nil || command.ProcessState.ExitCode() != exitSetup {
		return nil
	}
	return &BrokenSetup{Reason: reason}
}
