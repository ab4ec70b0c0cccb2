// Package local executes the blocks of a wave on this machine, through the same runner as a pod does.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

// Executor runs blocks one after the other on this machine.
type Executor struct {
	// Runner is the path of assay-runner.
	Runner string
	// Folder is the root of the run's ledger.
	Folder string
	// Name keeps the attempts of this execution apart from those of another one on the same ledger.
	Name string
	// CPUs is how many CPUs a block is pinned to; 0 leaves it where the scheduler puts it.
	CPUs int
	// Log gets the runner's progress lines.
	Log io.Writer
}

// Run executes every block of the wave and reports after each one. A block whose runner could not do its work ends the
// wave; the attempts already written stay.
func (e *Executor) Run(ctx context.Context, wave *record.Wave, done func(block record.Block)) error {
	path := filepath.Join(e.Folder, filepath.FromSlash(ledger.WaveKey(wave.Wave)))
	for _, block := range wave.Blocks {
		if err := e.runBlock(ctx, path, block.ID); err != nil {
			return err
		}
		if done != nil {
			done(block)
		}
	}
	return nil
}

func (e *Executor) runBlock(ctx context.Context, wave, block string) error {
	out := filepath.Join(e.Folder, filepath.FromSlash(ledger.BlockPrefix(block, e.Name)))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, e.Runner, "block", "--wave", wave, "--block", block, "--out", out, "--executor", e.Name)
	command.Stdout, command.Stderr = e.Log, e.Log
	// The runner ends its trials itself; it only needs to be asked.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	if err := e.startPinned(command); err != nil {
		return fmt.Errorf("start %s: %w", e.Runner, err)
	}
	err := command.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("block %s: %w", block, err)
	}
	return nil
}

// startPinned starts the command on the last CPUs of those allowed: the first one usually serves interrupts. A child
// inherits the affinity of the thread that starts it.
func (e *Executor) startPinned(command *exec.Cmd) error {
	if e.CPUs == 0 {
		return command.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, pinned unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read CPU affinity: %w", err)
	}
	allowed := allowedCPUs(&before)
	if len(allowed) < e.CPUs {
		return fmt.Errorf("spec.placement.cpus is %d and this process may use %d CPUs: lower it", e.CPUs, len(allowed))
	}
	for _, cpu := range allowed[len(allowed)-e.CPUs:] {
		pinned.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &pinned); err != nil {
		return fmt.Errorf("set CPU affinity: %w", err)
	}
	err := command.Start()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}

func allowedCPUs(set *unix.CPUSet) []int {
	var out []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			out = append(out, cpu)
		}
	}
	slices.Sort(out)
	return out
}

// FindProgram is the path of a program on this machine: the path as it is if it exists, else the same name in one of the
// folders or in PATH. A template names the path inside its image.
func FindProgram(program string, folders []string) (string, error) {
	candidates := []string{}
	if filepath.IsAbs(program) {
		candidates = append(candidates, program)
	}
	for _, folder := range folders {
		candidates = append(candidates, filepath.Join(folder, filepath.Base(program)))
	}
	for _, candidate := range candidates {
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return filepath.Abs(candidate)
		}
	}
	if path, err := exec.LookPath(filepath.Base(program)); err == nil {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("program %q of the template is neither at that path, nor in %v, nor in PATH: build it, or name its folder with --bin-dir", program, folders)
}

// Marshal is the wave as it is written to the ledger.
func Marshal(wave *record.Wave) ([]byte, error) {
	raw, err := json.MarshalIndent(wave, "", " ")
	if err != nil {
		return nil, fmt.Errorf("wave %d: %w", wave.Wave, err)
	}
	return append(raw, '\n'), nil
}
