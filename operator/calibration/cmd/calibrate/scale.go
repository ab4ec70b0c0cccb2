package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// analyzedWithout lists the work of a run on a cluster that this measurement omits.
const analyzedWithout = "from a folder, without an object store, without `--write` and its reports and tables, and of a ledger without " +
	"leases, notes of trials that began and lists of earlier analyses"

// analyzeCost measures assay's analysis of a ledger with the given number of attempts of 30 samples each, repeatedly. Times are wall
// clock; the CPU time is in the note. The names of the figures contain the number of attempts in words.
func analyzeCost(ctx context.Context, binDir, words string, attempts, times int) ([]calibrate.Figure, error) {
	folder, err := os.MkdirTemp("", "calibrate-ledger-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := writeLedger(folder, attempts); err != nil {
		return nil, err
	}
	seconds := calibrate.Figure{Figure: "analyze." + words + "_attempts_s", Unit: "s", Samples: times}
	memory := calibrate.Figure{Figure: "analyze." + words + "_mib", Unit: "MiB", Samples: times}
	var cpu float64
	for i := range times {
		took, err := run(ctx, filepath.Join(binDir, "assay"), "analyze", "--ledger", store.FolderURL(folder))
		if err != nil {
			return nil, err
		}
		widen(&seconds, i, took.Seconds)
		widen(&memory, i, took.MiB)
		cpu += took.CPUSeconds / float64(times)
	}
	seconds.Note = fmt.Sprintf("%s CPU seconds on %d CPUs; %s", quantity.Plain(cpu, 3), runtime.NumCPU(), analyzedWithout)
	memory.Note = analyzedWithout
	return []calibrate.Figure{seconds, memory}, nil
}

// cost of a process.
type cost struct{ Seconds, CPUSeconds, MiB float64 }

// run starts a program through an intermediate process, because until exec a new process shares the memory size of its parent, which has
// simulated thousands of runs.
func run(ctx context.Context, argv ...string) (cost, error) {
	self, err := os.Executable()
	if err != nil {
		return cost{}, err
	}
	command := exec.CommandContext(ctx, self, append([]string{"cost", "--"}, argv...)...)
	command.Env = append(os.Environ(), "GOMEMLIMIT="+argo.AnalysisHeap) // As in the pod of the analysis.
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	var took cost
	return took, json.Unmarshal(out, &took)
}

func newCostCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cost -- PROGRAM [ARGUMENT...]", Short: "Print the seconds, CPU seconds and peak memory of a program", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			command := exec.CommandContext(cmd.Context(), args[0], args[1:]...)
			command.Stderr = cmd.ErrOrStderr()
			began := time.Now()
			if err := command.Run(); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			seconds := time.Since(began).Seconds()
			usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok {
				return fmt.Errorf("this system does not report the resources of a process")
			}
			cpu := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
			return json.NewEncoder(cmd.OutOrStdout()).Encode(cost{seconds, cpu.Seconds(), float64(usage.Maxrss) / 1024})
		},
	}
}

// widen adds a measurement to a figure, whose limits are minimum and maximum and whose value is the mean.
func widen(figure *calibrate.Figure, i int, value float64) {
	if i == 0 {
		figure.Low, figure.High = value, value
	}
	figure.Low, figure.High = min(figure.Low, value), max(figure.High, value)
	figure.Value += (value - figure.Value) / float64(i+1)
}

func writeLedger(folder string, atLeast int) error {
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		return err
	}
	const blocksPerWave = 100
	var waves []*record.Wave
	for trials := 0; trials < atLeast; trials += waves[len(waves)-1].Trials() {
		wave, err := fixture.Wave(exp, len(waves), len(waves)*blocksPerWave, blocksPerWave)
		if err != nil {
			return err
		}
		waves = append(waves, wave)
	}
	machine := fixture.Machine{Seed: 1, Noise: fixture.Noise{Block: 0.02, Arm: 0.003, Trial: 0.003, Sample: 0.01},
		Seconds: fixture.ScanSeconds}
	objects, err := fixture.Objects(exp, waves, machine.Run(exp, waves...))
	if err != nil {
		return err
	}
	for key, data := range objects {
		path := filepath.Join(folder, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
