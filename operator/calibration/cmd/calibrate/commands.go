package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/experiment"
)

type commandsOptions struct {
	runs, simulated, parallel int
	budget                    time.Duration
	by                        string
	counts, root, binDir      string
}

func newCommandsCommand() *cobra.Command {
	var o commandsOptions
	command := &cobra.Command{
		Use: "commands", Short: "Compare commands whose difference is known with assay bench, beside a noisy neighbour, and print the figures",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			counts, err := o.measure(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, figure := range counts.Figures() {
				if err := figure.Write(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.runs, "runs", 20, "comparisons of commands that differ, and as many of equal ones")
	flags.IntVar(&o.simulated, "simulated", 2000, "simulated comparisons of equal commands")
	flags.IntVar(&o.parallel, "parallel", 1, "simulated comparisons at a time; the counts do not depend on it")
	flags.DurationVar(&o.budget, "budget", time.Minute, "budget of each comparison")
	flags.StringVar(&o.by, "by", bench.CPUTime, "deciding figure of the real comparisons, "+bench.WallTime+" or "+bench.CPUTime)
	flags.StringVar(&o.counts, "counts", "", "add the comparisons to the counts in this file, and print the figures of its sums")
	flags.StringVar(&o.root, "source", ".", "the project's folder, whose sources the counts belong to")
	flags.StringVar(&o.binDir, "bin-dir", "bin", "folder with assay, assay-runner, spin-kernel and assay-neighbour")
	return command
}

// measure adds comparisons to the counts. They are written after each one, so that an interrupted call loses none.
func (o *commandsOptions) measure(ctx context.Context, log io.Writer) (*calibrate.CommandCounts, error) {
	code, err := calibrate.CommandCode(o.root)
	if err != nil {
		return nil, err
	}
	counts := &calibrate.CommandCounts{Code: code, By: o.by}
	if o.counts != "" {
		if counts, err = calibrate.ReadCommandCounts(o.counts, code, o.by); err != nil {
			return nil, err
		}
	}
	keep := func() error {
		counts.Measured(machine())
		if o.counts == "" {
			return nil
		}
		return counts.Write(o.counts)
	}
	for i := range o.runs {
		slower := 1 - 2*(i%2) // The candidate takes longer in every second comparison.
		for _, pair := range []struct {
			pairs  *calibrate.Pairs
			slower int
		}{{&counts.Different, slower}, {&counts.Equal, 0}} {
			verdict, err := o.compare(ctx, pair.slower)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(log, "comparison %d of %d, difference %+d: %s\n", i+1, o.runs, pair.slower, verdict)
			pair.pairs.Add(verdict, pair.slower)
			if err := keep(); err != nil {
				return nil, err
			}
		}
	}
	if o.simulated > 0 {
		if err := counts.Simulate(o.simulated, o.parallel); err != nil {
			return nil, err
		}
	}
	return counts, keep()
}

// The work of a command of about 60 ms, and of one that does 5 % more.
const lessWork, moreWork = 30000, 31500

// compare compares two commands beside a neighbour that works in turns on all CPUs. Slower is the sign of their difference.
func (o *commandsOptions) compare(ctx context.Context, slower int) (experiment.Verdict, error) {
	folder, err := os.MkdirTemp("", "assay-commands-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	spins := func(work int) (string, error) {
		program, err := filepath.Abs(filepath.Join(o.binDir, "spin-kernel"))
		return program + " --iterations=1 --warmup-iterations=0 --work=" + strconv.Itoa(work), err
	}
	works := map[int][2]int{1: {lessWork, moreWork}, 0: {lessWork, lessWork}, -1: {moreWork, lessWork}}[slower]
	old, err := spins(works[0])
	if err != nil {
		return "", err
	}
	candidate, err := spins(works[1])
	if err != nil {
		return "", err
	}
	real := realOptions{binDir: o.binDir}
	stop, err := real.startNeighbour(ctx, "cpu", folder)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, filepath.Join(o.binDir, "assay"), "bench", old, candidate, "--name", "old,new", "--by", o.by,
		"--budget", o.budget.String(), "--cpus", "1", "--bin-dir", o.binDir, "--out", filepath.Join(folder, "ledger"), "--output", "json")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	runErr := command.Run()
	if _, err := stop(); err != nil {
		return "", err
	}
	if runErr != nil {
		return "", fmt.Errorf("assay bench: %w: %s", runErr, strings.TrimSpace(stderr.String()))
	}
	var answer struct {
		Verdict experiment.Verdict `json:"verdict"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		return "", fmt.Errorf("answer of assay bench: %w", err)
	}
	return answer.Verdict, nil
}
