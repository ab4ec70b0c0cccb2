// Package local executes the blocks of a wave on this machine, with the same runner as a pod.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"assay.dev/assay/operator/internal/keeper"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/steps"
	"assay.dev/assay/operator/internal/store"
)

// Executor runs blocks one after the other on this machine. It is also their keeper, to which the runner sends each attempt over a
// connection that trials do not inherit.
type Executor struct {
	// Runner is the path of assay-runner.
	Runner string
	// Within are the words of a command that executes another one in a sandbox, before those of the runner; empty for none. The ledger and
	// its keeper are outside of it.
	Within []string
	// Folder is the root of the run's ledger.
	Folder string
	// Name distinguishes the attempts of this execution from those of another one in the same ledger.
	Name string
	// CPUs is the number of CPUs to which a block is pinned; 0 does not pin it.
	CPUs int
	// Log receives the runner's progress lines.
	Log io.Writer
	// Steps are the commands around trials; nil for none.
	Steps *steps.Document
	// Counters makes the runner record the counters of the processor that this machine has.
	Counters bool
	// Instrument observes the runner of a block and its trials; nil for none. It calls start on the thread whose children it observes, and
	// returns a function to call after the runner has exited. Waves that are judged have none.
	Instrument func(block *record.Block, start func() (pid int, err error)) (stop func() error, err error)

	// sums has the sha256 of the written attempts and plans that of the written plans, by key; programs has that of the executed files, by
	// path.
	sums, plans, programs map[string]string
}

// Plan writes an object of the ledger on which the analysis depends, such as the plan of a wave, and records its digest before.
func (e *Executor) Plan(ctx context.Context, store store.Store, key string, raw []byte) error {
	if e.plans == nil {
		e.plans = map[string]string{}
	}
	e.plans[key] = record.SHA256(raw)
	return store.Create(ctx, key, raw)
}

// Run executes every block of the wave and calls done after each. A failure of a block's runner ends the wave. Attempts
// written before stay in the ledger.
func (e *Executor) Run(ctx context.Context, wave *record.Wave, done func(block record.Block)) error {
	if e.sums == nil {
		e.sums, e.programs = map[string]string{}, map[string]string{}
	}
	store, err := store.OpenFolder(ctx, e.Folder)
	if err != nil {
		return err
	}
	path := filepath.Join(e.Folder, filepath.FromSlash(ledger.WaveKey(wave.Wave)))
	for _, block := range wave.Blocks {
		if err := e.samePrograms(wave); err != nil {
			return err
		}
		// The runner of each block reads the plan from the ledger, which earlier trials can write.
		if err := e.report(e.changedPlans(ctx, store)); err != nil {
			return err
		}
		if err := e.runBlock(ctx, store, path, &block); err != nil {
			return err
		}
		if done != nil {
			done(block)
		}
	}
	return nil
}

func (e *Executor) runBlock(ctx context.Context, store store.Store, wave string, block *record.Block) error {
	mine, runners, err := connection()
	if err != nil {
		return err
	}
	defer mine.Close()
	argv := append(slices.Clone(e.Within), e.Runner, "block", "--wave", wave, "--block", block.ID, "--keeper", "fd:3",
		"--finish-seconds", "0") // Who interrupts a run on this machine waits for it.
	if e.Counters {
		argv = append(argv, "--counters")
	}
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said tail
	command.Stdout, command.Stderr, command.ExtraFiles = e.Log, io.MultiWriter(e.Log, &said), []*os.File{runners}
	// The runner ends its trials when it gets a signal. A trial killed from outside of the runner would count as failed.
	endsByItself(command, e.concludes())
	stop, err := e.startObserved(block, command)
	if closeErr := runners.Close(); err != nil || closeErr != nil {
		return fmt.Errorf("start %s: %w", e.Runner, errors.Join(err, closeErr))
	}
	kept := &keeper.Keeper{
		Store: store, Block: block.ID, Executor: e.Name, Trials: keeper.TrialsOf(block), Kills: keeper.MemoryKills, Log: e.Log,
	}
	served := make(chan error, 1)
	go func() { served <- kept.Serve(context.WithoutCancel(ctx), mine) }()
	err = command.Wait()
	// Serving returns once the runner has exited, because that closes its end of the connection.
	keepErr := errors.Join(<-served, stop())
	maps.Copy(e.sums, kept.Sums)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if broken := said.broken(command); broken != nil {
		return errors.Join(keepErr, broken)
	}
	if err = errors.Join(keepErr, err); err != nil {
		return fmt.Errorf("block %s: %w", block.ID, err)
	}
	return nil
}

// startObserved starts a runner under the instrument. stop ends the observation.
func (e *Executor) startObserved(block *record.Block, command *exec.Cmd) (stop func() error, err error) {
	start := func() (int, error) {
		if err := e.startWithSteps(command); err != nil {
			return 0, err
		}
		return command.Process.Pid, nil
	}
	if e.Instrument != nil {
		return e.Instrument(block, start)
	}
	_, err = start()
	return func() error { return nil }, err
}

// FindProgram returns the path of a program on this machine. A template has the path in its image. If that does not exist here, a program
// of the same name is searched in the folders and then in PATH.
func FindProgram(program string, folders []string) (string, error) {
	name := filepath.Base(program)
	if filepath.IsAbs(program) && Executable(program) {
		return filepath.Clean(program), nil
	}
	for _, folder := range folders {
		if path := filepath.Join(folder, name); Executable(path) {
			return filepath.Abs(path)
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("program %q of the template does not exist at that path, in %v or in PATH; build it, or give its folder with "+
		"--bin-dir", program, folders)
}

// Counters returns the counted quantities of this machine, by their names in process metrics. For each it has the reason if the machine
// cannot count it, and "" otherwise.
func Counters(ctx context.Context, runner string) (map[string]string, error) {
	raw, err := exec.CommandContext(ctx, runner, "counters").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for the counters of this machine: %w", runner, err)
	}
	var out map[string]string
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("the counters of this machine, as %s prints them: %w", runner, err)
	}
	return out, nil
}
