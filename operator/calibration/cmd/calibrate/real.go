package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat/distuv"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

type realOptions struct {
	runs       int
	seed       int64
	workloads  []string
	slowdowns  []string
	neighbours []string
	root, out  string
	binDir     string
	check      bool
	update     string
	cluster    bool
	namespace  string
	image      string
	json       string
	// arms are the numbers of arms of additional spin rows; budget is the maximum number of blocks of adaptive runs.
	arms   []int
	budget int32
	// others are the rows of the file that are not measured in this call.
	others []calibrate.RealTally
}

func (o *realOptions) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.IntVar(&o.runs, "runs", 30, "runs of every row")
	flags.Int64Var(&o.seed, "seed", 1, "seed of the first run; every run has its own")
	flags.StringSliceVar(&o.workloads, "workload", []string{"spin", "pir"}, "programs to run: spin, pir")
	flags.StringSliceVar(&o.slowdowns, "slowdown", []string{"0", "1", "2", "5"}, "true slowdowns of spin, in per cent: 0, 1, 2, 5")
	flags.StringSliceVar(&o.neighbours, "neighbour", []string{"cpu", "memory", "disk"},
		"neighbours of a run with two identical arms: cpu, memory, disk, or none")
	flags.IntSliceVar(&o.arms, "arms", nil,
		"also run spin with this number of arms, from 2 to 16: known slowdowns and a null arm; may be repeated")
	flags.Int32Var(&o.budget, "budget-blocks", 0,
		"continue runs until the gate's half width is "+stopAt+", up to this number of blocks "+
			"(default: 10 blocks, and replacements of lost ones)")
	flags.StringVar(&o.root, "root", ".", "the project's folder")
	flags.StringVar(&o.binDir, "bin-dir", "bin", "folder with assay, assay-runner, the programs and assay-neighbour")
	flags.StringVar(&o.out, "out", "", "folder for the ledgers, kept (default: a temporary one, removed)")
	flags.BoolVar(&o.cluster, "cluster", false, "run on the cluster that KUBECONFIG leads to, with kubectl; neighbours are pods there")
	flags.StringVar(&o.namespace, "namespace", "default", "namespace of the runs on a cluster")
	flags.StringVar(&o.image, "neighbour-image", "assay.dev/assay-scan:0.1.0", "image with /assay-neighbour, on a cluster")
	flags.StringVar(&o.json, "json", "", "append finished runs to this file, and resume from its contents")
}

func newRealCommand() *cobra.Command {
	var o realOptions
	command := &cobra.Command{
		Use: "real", Short: "Run programs whose difference is known on this machine or a cluster, with and without a noisy neighbour",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tallies, err := o.measure(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			table := calibrate.RealTable(tallies) + calibrate.ArmsTable(tallies)
			fmt.Fprint(cmd.OutOrStdout(), table)
			// The table contains the number of runs of each row, because on a cluster they accumulate over several calls.
			where, section := "", "real"
			if o.cluster {
				where, section = " --cluster", "cluster"
			}
			heading := fmt.Sprintf("`calibrate real%s --seed %d`, %s", where, o.seed, measuredHere())
			if err := update(o.update, section, heading+table); err != nil {
				return err
			}
			if o.check {
				return missed(checkReal(tallies))
			}
			return nil
		},
	}
	o.flags(command)
	command.Flags().BoolVar(&o.check, "check", false, "fail if the rate of wrong verdicts certainly exceeds the target")
	command.Flags().StringVar(&o.update, "update", "", "also put the table into this document, between its markers")
	return command
}

// beyondDoubt is the significance level of a failed check. A higher one would fail often by chance; with ten runs, one is wrong in one
// check of ten at the target rate.
const beyondDoubt = 0.001

// checkReal compares the rate of false verdicts over all rows with the target.
func checkReal(tallies []calibrate.RealTally) []string {
	wrong, runs := 0, 0
	for _, t := range tallies {
		wrong, runs = wrong+t.Wrong(), runs+len(t.Runs)
	}
	target := distuv.Binomial{N: float64(runs), P: calibrate.MaxFalseRate}
	if wrong > 0 && target.Survival(float64(wrong)-0.5) < beyondDoubt {
		return []string{fmt.Sprintf("wrong verdicts: %s of %d runs; the target is at most %g", calibrate.NewShare(wrong, runs), runs,
			calibrate.MaxFalseRate)}
	}
	return nil
}

// fileOf returns the file of a row's runs.
func fileOf(row *calibrate.RealTally) string {
	if row.Effect > 0 {
		return fmt.Sprintf("spin-slower-%g.yaml", 100*row.Effect)
	}
	return row.Workload + "-same.yaml"
}

// rows returns the rows of the table to measure, without runs.
func (o *realOptions) rows() ([]calibrate.RealTally, error) {
	var out []calibrate.RealTally
	for _, workload := range o.workloads {
		switch workload {
		case "pir":
			out = append(out, calibrate.RealTally{Workload: workload, Budget: o.budget})
		case "spin":
			for _, slowdown := range o.slowdowns {
				percent, err := strconv.Atoi(slowdown)
				if err != nil || !slices.Contains([]int{0, 1, 2, 5}, percent) {
					return nil, fmt.Errorf("invalid --slowdown %q: allowed are 0, 1, 2 and 5", slowdown)
				}
				out = append(out, calibrate.RealTally{Workload: workload, Effect: float64(percent) / 100, Budget: o.budget})
			}
			for _, arms := range o.arms {
				out = append(out, calibrate.RealTally{Workload: workload, Arms: arms, Budget: o.budget})
			}
		default:
			return nil, fmt.Errorf("invalid --workload %q: allowed are spin and pir", workload)
		}
		for _, neighbour := range o.neighbours {
			switch neighbour {
			case "none":
			case "cpu", "memory", "disk":
				out = append(out, calibrate.RealTally{Workload: workload, Neighbour: neighbour, Budget: o.budget})
			default:
				return nil, fmt.Errorf("invalid --neighbour %q: allowed are cpu, memory, disk and none", neighbour)
			}
		}
	}
	return out, nil
}

func (o *realOptions) measure(ctx context.Context, log io.Writer) ([]calibrate.RealTally, error) {
	rows, err := o.rows()
	if err != nil {
		return nil, err
	}
	folder := o.out
	if folder == "" {
		if folder, err = os.MkdirTemp("", "calibrate-"); err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(folder) }()
	}
	out, err := o.resume(rows)
	if err != nil {
		return nil, err
	}
	// Rounds interleave the rows, so that a drift of the machine affects all of them.
	for run := range o.runs {
		for i := range out {
			row := &out[i]
			if len(row.Runs) > run {
				continue
			}
			where := filepath.Join(folder, fmt.Sprintf("%02d-%03d", i, run))
			done, err := o.run(ctx, row, o.seed+int64(run), where)
			if err != nil {
				return nil, fmt.Errorf("%s, run %d: %w", fileOf(row), run, err)
			}
			fmt.Fprintf(log, "%s %s run %d of %d: %s, %s\n", fileOf(row), row.Neighbour, run+1, o.runs, done.Verdict,
				analysis.Describe(done.Ratio))
			row.Runs = append(row.Runs, done)
			if err := o.save(out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// run executes one experiment with the public commands.
func (o *realOptions) run(ctx context.Context, row *calibrate.RealTally, seed int64, where string) (calibrate.RealRun, error) {
	templates := filepath.Join(o.root, "charts/assay/files/benchmarktemplates")
	set, err := manifest.Read(filepath.Join(o.root, "workflows/calibration", fileOf(row)))
	if err != nil {
		return calibrate.RealRun{}, err
	}
	run := set.Runs[0]
	run.Spec.Design.Seed = seed
	truth := map[string]float64{}
	for _, arm := range run.Spec.Arms {
		if !arm.Baseline {
			truth[arm.Name] = row.Effect
		}
	}
	if row.Arms > 0 {
		if truth, err = manyArms(&run, row.Arms); err != nil {
			return calibrate.RealRun{}, err
		}
	}
	if o.budget > 0 {
		adaptive(&run, o.budget)
	}
	if o.cluster {
		return o.onCluster(ctx, row, &run, truth)
	}
	raw, err := yaml.Marshal(run)
	if err != nil {
		return calibrate.RealRun{}, err
	}
	if err := os.MkdirAll(where, 0o755); err != nil {
		return calibrate.RealRun{}, err
	}
	file, folder := filepath.Join(where, "run.yaml"), filepath.Join(where, "ledger")
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		return calibrate.RealRun{}, err
	}
	stopNeighbour, err := o.startNeighbour(ctx, row.Neighbour, where)
	if err != nil {
		return calibrate.RealRun{}, err
	}
	started := time.Now()
	command := exec.CommandContext(ctx, filepath.Join(o.binDir, "assay"), "run", "--local", file, "--templates", templates, "--bin-dir",
		o.binDir, "--out", folder)
	output, err := command.CombinedOutput()
	busy, neighbourErr := stopNeighbour()
	if raw, err := json.Marshal(neighboured{row.Neighbour, busy}); err != nil {
		return calibrate.RealRun{}, err
	} else if err := os.WriteFile(filepath.Join(where, busyFile), raw, 0o644); err != nil {
		return calibrate.RealRun{}, err
	}
	seconds := time.Since(started).Seconds()
	// An undecided verdict also gives an exit code; only the analysis counts.
	result, attempts, readErr := readJudged(ctx, folder)
	if readErr != nil {
		return calibrate.RealRun{}, errors.Join(readErr, err, fmt.Errorf("assay printed: %s", bytes.TrimSpace(output)))
	}
	done := calibrate.Conclude(result, attempts, truth, busy)
	done.Seconds = seconds
	return done, neighbourErr
}

// readJudged reads analysis and attempts from the ledger of a run in a folder.
func readJudged(ctx context.Context, folder string) (*analysis.Analysis, []record.Attempt, error) {
	store, err := store.OpenFolder(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	_, result, err := ledger.ReadJudged(ctx, store)
	if err == nil && result == nil {
		err = errors.New("the run ended before any trial was judged")
	}
	if err != nil {
		return nil, nil, err
	}
	attempts, _, err := ledger.ReadAttempts(ctx, store, -1)
	return result, attempts, err
}

// The neighbour alternates between work and pauses, so that a run has quiet and disturbed trials.
const (
	neighbourRests = 2 * time.Second
	neighbourWorks = 2 // Seconds.
)

// startNeighbour starts an intermittent neighbour. The returned function stops it and returns its active times.
func (o *realOptions) startNeighbour(ctx context.Context, kind, where string) (func() ([]calibrate.Busy, error), error) {
	if kind == "" {
		return func() ([]calibrate.Busy, error) { return nil, nil }, nil
	}
	program := filepath.Join(o.binDir, "assay-neighbour")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("%w: build it with make build-calibration, or pass --neighbour none", err)
	}
	cpus, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var busy []calibrate.Busy
	var failed error
	var working sync.WaitGroup
	working.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(neighbourRests):
			}
			command := exec.CommandContext(ctx, program, "--kind", kind, "--cpus", strings.TrimSpace(string(cpus)),
				"--seconds", strconv.Itoa(neighbourWorks), "--bytes", strconv.Itoa(64<<20), "--folder", where)
			span := calibrate.Busy{From: time.Now()}
			output, err := command.CombinedOutput()
			span.To = time.Now()
			if err != nil && ctx.Err() == nil {
				failed = fmt.Errorf("assay-neighbour: %w: %s", err, bytes.TrimSpace(output))
				return
			}
			busy = append(busy, span)
		}
	})
	return func() ([]calibrate.Busy, error) {
		cancel()
		working.Wait()
		return busy, failed
	}, nil
}
