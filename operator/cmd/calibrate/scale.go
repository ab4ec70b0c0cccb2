package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"assay.dev/assay/operator/internal/calibrate"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/simulate"
	"assay.dev/assay/operator/internal/specimen"
)

// size is how many attempts a ledger has, in words and as a number.
type size struct {
	name     string
	attempts int
}

// analyzeCost has assay judge a ledger of so many attempts of 30 samples each, on one core, so many times.
func analyzeCost(ctx context.Context, binDir string, of size, times int) ([]calibrate.Figure, error) {
	folder, err := os.MkdirTemp("", "calibrate-ledger-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := writeLedger(folder, of.attempts); err != nil {
		return nil, err
	}
	seconds := calibrate.Figure{Figure: "analyze." + of.name + "_attempts_s", Unit: "s", Samples: times}
	memory := calibrate.Figure{Figure: "analyze." + of.name + "_mib", Unit: "MiB", Samples: times}
	for i := range times {
		command := exec.CommandContext(ctx, filepath.Join(binDir, "assay"), "analyze", "--ledger", ledger.FolderURL(folder))
		command.Env = append(os.Environ(), "GOMAXPROCS=1", "GOMEMLIMIT=384MiB") // As in the pod of the analysis.
		command.Stderr = os.Stderr
		if err := command.Run(); err != nil {
			return nil, fmt.Errorf("assay analyze: %w", err)
		}
		usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			return nil, fmt.Errorf("this system does not tell what a process used")
		}
		widen(&seconds, i, command.ProcessState.UserTime().Seconds()+command.ProcessState.SystemTime().Seconds())
		widen(&memory, i, float64(usage.Maxrss)/1024)
	}
	return []calibrate.Figure{seconds, memory}, nil
}

// widen adds a measurement to a figure, whose ends are the smallest and the largest one and whose value is their mean.
func widen(figure *calibrate.Figure, i int, value float64) {
	if i == 0 {
		figure.Low, figure.High = value, value
	}
	figure.Low, figure.High = min(figure.Low, value), max(figure.High, value)
	figure.Value += (value - figure.Value) / float64(i+1)
}

func writeLedger(folder string, atLeast int) error {
	exp, err := specimen.Scan(nil)
	if err != nil {
		return err
	}
	const mostBlocks = 1000 // Of a wave.
	perBlock := exp.CellsPerBlock() * 3
	var waves []*record.Wave
	for planned, blocks := 0, (atLeast+perBlock-1)/perBlock; planned < blocks; planned += mostBlocks {
		wave, err := simulate.Wave(exp, len(waves), planned, min(mostBlocks, blocks-planned))
		if err != nil {
			return err
		}
		waves = append(waves, wave)
	}
	machine := simulate.Machine{Seed: 1, Noise: simulate.Noise{Block: 0.02, Arm: 0.003, Trial: 0.003, Sample: 0.01}, Seconds: simulate.ScanSeconds}
	objects, err := simulate.Objects(exp, waves, machine.Run(exp, waves...))
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
