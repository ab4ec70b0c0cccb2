package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
)

// figureOptions sets the number of runs for each figure. The defaults take about 45 minutes on two CPUs.
type figureOptions struct {
	simulated simulateOptions
	real      realOptions
	selfNoise int
	// powerRuns within powerBlocks blocks each, and armsRuns.
	powerRuns, armsRuns int
	powerBlocks         int32
}

// figureStep produces some figures. Their names are known in advance, so that a step without requested figures is skipped.
type figureStep struct {
	figures []string
	run     func(ctx context.Context, log io.Writer) ([]calibrate.Figure, error)
}

func (o *figureOptions) steps() []figureStep {
	return []figureStep{
		{calibrate.SimulatedFigures,
			func(_ context.Context, log io.Writer) ([]calibrate.Figure, error) {
				tallies, err := o.simulated.simulate(log)
				return calibrate.Figures(tallies), err
			}},
		{[]string{calibrate.SelfNoiseFigure}, func(context.Context, io.Writer) ([]calibrate.Figure, error) {
			share, err := calibrate.AttackBySelfNoise(o.selfNoise, o.simulated.seed)
			return []calibrate.Figure{share.Figure(calibrate.SelfNoiseFigure)}, err
		}},
		{[]string{calibrate.CensoredFigure}, func(_ context.Context, log io.Writer) ([]calibrate.Figure, error) {
			share, err := calibrate.Censored(o.simulated.runs, o.simulated.seed, func(what string) { fmt.Fprintln(log, what) })
			return []calibrate.Figure{share.Figure(calibrate.CensoredFigure)}, err
		}},
		{[]string{"verdict.neighbour.flagged"}, func(ctx context.Context, log io.Writer) ([]calibrate.Figure, error) {
			r := o.real
			r.slowdowns = nil
			measured, err := r.measure(ctx, log)
			share, ok := calibrate.Flagged(measured)
			if err != nil || !ok {
				return nil, err
			}
			return []calibrate.Figure{share.Figure("verdict.neighbour.flagged")}, nil
		}},
		{[]string{calibrate.RealPowerFigure}, func(ctx context.Context, log io.Writer) ([]calibrate.Figure, error) {
			r := o.quiet(calibrate.RealPowerFigure, o.powerRuns)
			r.slowdowns, r.budget = []string{"2"}, o.powerBlocks
			measured, err := r.measure(ctx, log)
			if err != nil {
				return nil, err
			}
			return []calibrate.Figure{calibrate.RealPower(measured[0])}, nil
		}},
		{[]string{calibrate.UsedShareFigure, calibrate.OverAllFigure}, func(ctx context.Context, log io.Writer) ([]calibrate.Figure, error) {
			r := o.quiet(calibrate.UsedShareFigure, o.armsRuns)
			r.arms = []int{6}
			measured, err := r.measure(ctx, log)
			if err != nil {
				return nil, err
			}
			return calibrate.RealArms(measured[0]), nil
		}},
		o.cost("10k", 10_000, 5),
		o.cost("100k", 100_000, 3),
	}
}

// cost measures the analysis of the given number of attempts repeatedly.
func (o *figureOptions) cost(words string, attempts, times int) figureStep {
	names := []string{"analyze." + words + "_attempts_s", "analyze." + words + "_mib"}
	return figureStep{names, func(ctx context.Context, _ io.Writer) ([]calibrate.Figure, error) {
		return analyzeCost(ctx, o.real.binDir, words, attempts, times)
	}}
}

// quiet returns the options for runs of spin without neighbours, for a figure.
func (o *figureOptions) quiet(figure string, runs int) realOptions {
	out := realOptions{root: o.real.root, binDir: o.real.binDir, seed: o.real.seed, runs: runs, workloads: []string{"spin"}}
	if o.real.out != "" {
		out.out = filepath.Join(o.real.out, figure)
	}
	return out
}

// chosen returns the steps that produce a requested figure, or all of them by default.
func chosen(steps []figureStep, only []string) ([]figureStep, error) {
	if len(only) == 0 {
		return steps, nil
	}
	var names []string
	var out []figureStep
	for _, step := range steps {
		names = append(names, step.figures...)
		if slices.ContainsFunc(step.figures, func(name string) bool { return slices.Contains(only, name) }) {
			out = append(out, step)
		}
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("invalid --only %q: allowed are %s", name, strings.Join(names, ", "))
		}
	}
	return out, nil
}

func newFiguresCommand() *cobra.Command {
	var o figureOptions
	var only []string
	command := &cobra.Command{
		Use: "figures", Short: "Print the figures of verdicts, one JSON line each", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			steps, err := chosen(o.steps(), only)
			if err != nil {
				return err
			}
			for _, step := range steps {
				figures, err := step.run(cmd.Context(), cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				figures = slices.DeleteFunc(figures, func(f calibrate.Figure) bool { return len(only) > 0 && !slices.Contains(only, f.Figure) })
				if err := calibrate.Print(cmd.OutOrStdout(), figures...); err != nil {
					return err
				}
			}
			return nil
		},
	}
	o.simulated.flags(command)
	flags := command.Flags()
	flags.StringSliceVar(&only, "only", nil, "only these figures (default: all)")
	flags.IntVar(&o.selfNoise, "selfnoise-runs", 10000, "simulated runs of candidates that disturb their own trials")
	flags.IntVar(&o.powerRuns, "power-runs", 30, "real runs of a candidate that is 2 % slower")
	flags.Int32Var(&o.powerBlocks, "power-blocks", 200, "maximum number of blocks of each")
	flags.IntVar(&o.armsRuns, "arms-runs", 5, "real runs with six arms")
	flags.IntVar(&o.real.runs, "real-runs", 5, "runs beside every neighbour")
	flags.StringSliceVar(&o.real.workloads, "workload", []string{"spin"}, "programs to run beside a neighbour")
	flags.StringSliceVar(&o.real.neighbours, "neighbour", []string{"cpu", "memory"}, "neighbours: cpu, memory, disk, or none")
	flags.StringVar(&o.real.root, "root", ".", "the project's folder")
	flags.StringVar(&o.real.binDir, "bin-dir", "bin", "folder with assay, assay-runner, the programs and assay-neighbour")
	flags.StringVar(&o.real.out, "out", "", "folder for the ledgers of runs on a quiet machine, kept (default: a temporary one, removed)")
	o.real.seed = 1
	return command
}
