package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

type benchOptions struct {
	runs.LocalOptions
	names, candidates, require []string
	baseline, format, noise    string
	save                       string
	shell                      bool
	budget                     time.Duration
	blocks, warmup, cpus       int
	figures                    bench.Figures
}

func NewBenchCommand() *cobra.Command {
	options := benchOptions{LocalOptions: runs.LocalOptions{Pin: true}}
	var form string
	command := &cobra.Command{
		Use:   "bench 'COMMAND' 'COMMAND'...",
		Short: "Compare command lines on this machine, in about a minute",
		Long: "Compare command lines on this machine: the first is the baseline, and for each other one assay reports whether it is faster, " +
			"and what CPU time and memory it takes. " +
			"It is an experiment like any other, without a file: trials are interleaved, pinned to CPUs and judged by intervals, and there is a " +
			"ledger with a report; " +
			"--save writes the BenchmarkRun.\n\n" +
			"A command is split into words as a shell splits it, and started without one. One block of trials runs first, to estimate how many " +
			"fit into --budget.\n\n" +
			"For programs that report figures of their own, --format names the form. A test binary of Go, Criterion, Google Benchmark, " +
			"divan or Catch2 that is named without arguments gets the arguments " +
			"that run its benchmarks; --benchmark selects one.\n\n" +
			"Exit codes: 0 it is certain which is faster, or that every --require holds or does not; 3 it is not (Inconclusive or Invalid); 2 the " +
			"commands or flags are wrong; 1 it failed.",
		Example: "  assay bench 'gzip -6 -c numbers.txt' 'gzip -9 -c numbers.txt'\n  assay bench --shell 'sort a | uniq' 'sort -u a'\n" +
			"  assay bench ./old ./new --require 'wallTime<=0.9x' --require 'peakMemory<=1.05x'\n" +
			"  assay bench --format Go --baseline ./old.test --candidate ./new.test --benchmark BenchmarkEncode\n" +
			"  assay bench ./old ./new --save run.yaml",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return options.run(cmd.Context(), args, form, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	cli.AddOutput(command, &form, "text", "json", "yaml")
	flags.StringVar(&options.baseline, "baseline", "", "the command that the others are compared with, in place of the first argument")
	flags.StringArrayVar(&options.candidates, "candidate", nil, "a command that is compared with the baseline; may be repeated")
	flags.StringSliceVar(&options.names, "name", nil,
		"names of the commands, the baseline's first, as OLD,NEW (default: what differs between them)")
	flags.BoolVar(&options.shell, "shell", false, "run every command by /bin/sh -c; its start is part of what is measured")
	flags.DurationVar(&options.budget, "budget", time.Minute, "how long the comparison may take")
	flags.IntVar(&options.blocks, "blocks", 0,
		"blocks to run in place of as many as fit into the budget; every block has two trials of each command")
	flags.IntVar(&options.warmup, "warmup", 0, "trials of each command at the beginning of every block that do not count")
	flags.IntVar(&options.cpus, "cpus", max(1, runtime.NumCPU()-1),
		"CPUs that the trials are pinned to (default: all of this machine but one, at least 1)")
	flags.Lookup("cpus").DefValue = "0" // The text names it: the reference is the same on every machine.
	flags.StringVar(&options.noise, "noise", string(assayv1alpha1.ViolationWarn), "what happens to trials during which others used their "+
		"CPUs: Warn uses them with a warning, Retry runs others in their place, Invalid leaves them out")
	flags.StringArrayVar(&options.require, "require", nil, "what has to hold of every candidate, as METRIC<=BOUND or METRIC>=BOUND, with an "+
		"x for a multiple of the baseline's; may be repeated (default: it is faster)")
	flags.StringVar(&options.format, "format", string(assayv1alpha1.NoOutput),
		"form of the figures that the commands report: Go, "+strings.Join(bench.FormatNames(), ", "))
	flags.StringVar(&options.figures.Benchmark, "benchmark", "",
		"with --format: the benchmark, as the tool writes its name (default: the only one)")
	flags.StringVar(&options.figures.Metric, "metric", "",
		"with --format: the figure, in the tool's words, such as allocs/op (default: the tool's usual time)")
	flags.BoolVar(&options.figures.HigherIsBetter, "higher-is-better", false, "with --format: more of the figure is better")
	flags.StringVar(&options.figures.Path, "figures", "",
		"with --format: file that the commands write their figures to (default: standard output)")
	flags.StringVar(&options.save, "save", "", "file to write the BenchmarkRun to, for assay run")
	flags.StringVar(&options.Out, "out", "", "folder for the ledger (default: assay-ledger/bench-TIME)")
	flags.StringArrayVar(&options.BinDirs, "bin-dir", nil, "folder with assay-runner; may be repeated (default: the folder of assay itself)")
	return command
}

func (o *benchOptions) run(ctx context.Context, args []string, form string, stdout, stderr io.Writer) error {
	question, err := o.question(args)
	if err != nil {
		return cli.UsageError(err)
	}
	here, err := o.prepare(question, stderr)
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.save); o.save != "" && err == nil {
		return cli.FileExistsError(o.save)
	}
	screen := runs.NewLiveLine(stderr)
	screen.Printf("trying each command (%s)", strings.Join(question.Names, ", "))
	took, err := tryOut(ctx, here, question)
	screen.Clear()
	if err != nil {
		return err
	}
	if o.blocks == 0 {
		if question.Blocks, err = bench.Blocks(o.budget, took); err != nil {
			return cli.UsageError(err)
		}
	} else {
		question.Budget = max(o.budget, bench.Room(o.blocks, took))
	}
	if here, err = o.prepare(question, io.Discard); err != nil {
		return err
	}
	if o.save != "" {
		raw, err := question.Document()
		if err != nil {
			return err
		}
		if err := cli.CreateFile(o.save, raw, stderr); err != nil {
			return err
		}
	}
	var log strings.Builder
	here.Executor.Log = &log
	here.AfterBlock = screen.PrintEstimates(here)
	result, err := here.Run(ctx)
	screen.Clear()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log.String())
	}
	return here.PrintResult(result, form, sentences(here, result), stdout)
}

// question is what the command line asks.
func (o *benchOptions) question(args []string) (*bench.Question, error) {
	lines, err := bench.Commands(args, o.baseline, o.candidates)
	if err != nil {
		return nil, err
	}
	policy, err := policyOf(o.noise)
	if err != nil {
		return nil, err
	}
	switch {
	case o.blocks < 0:
		return nil, fmt.Errorf("invalid --blocks %d: write how many, or 0 for as many as fit into the budget", o.blocks)
	case o.budget <= 0:
		return nil, fmt.Errorf("invalid --budget %s: write a time above 0 such as 1m", o.budget)
	}
	question := &bench.Question{
		Names: o.names, Figures: o.figures, Requirements: o.require, Blocks: cmp.Or(o.blocks, bench.LeastBlocks), Warmup: o.warmup,
		CPUs: o.cpus, Budget: o.budget, OnViolation: policy,
	}
	if question.Figures.Format, err = bench.ParseFormat(o.format); err != nil {
		return nil, err
	}
	var typed [][]string
	for _, line := range lines {
		if o.shell {
			typed = append(typed, strings.Fields(line))
			question.Commands = append(question.Commands, []string{"/bin/sh", "-c", line})
			continue
		}
		words, err := bench.Words(line)
		if err != nil {
			return nil, err
		}
		path, err := programPath(words[0])
		if err != nil {
			return nil, fmt.Errorf("command %q: %w", line, err)
		}
		typed = append(typed, words)
		question.Commands = append(question.Commands, append([]string{path}, words[1:]...))
	}
	if len(question.Names) == 0 {
		question.Names = bench.Names(typed)
	}
	return question, nil
}

func policyOf(text string) (assayv1alpha1.ViolationPolicy, error) {
	known := []assayv1alpha1.ViolationPolicy{assayv1alpha1.ViolationWarn, assayv1alpha1.ViolationRetry, assayv1alpha1.ViolationInvalid}
	for _, policy := range known {
		if strings.EqualFold(text, string(policy)) {
			return policy, nil
		}
	}
	return "", fmt.Errorf("invalid --noise %q: %s", text, suggest.Allowed(text, known))
}

// programPath is where the program of a command is: what a shell would start, or a program in this folder.
func programPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		if !local.Executable(name) {
			return "", fmt.Errorf("program %q is neither in PATH nor a program in this folder: build it, or write its path (what a shell has "+
				"itself needs --shell)", name)
		}
		path = name
	}
	return filepath.Abs(path)
}

// prepare is the run as assay run --local would do it.
func (o *benchOptions) prepare(question *bench.Question, log io.Writer) (*runs.LocalRun, error) {
	run, err := question.BenchmarkRun()
	if err != nil {
		return nil, cli.UsageError(err)
	}
	explain := func(err error) error { return fmt.Errorf("the question: %w", err) }
	return runs.PrepareLocal(&runs.RunFile{Run: run, Template: run.Spec.Template, Explain: explain}, o.LocalOptions, log)
}

// tryOut runs a block, measures how long it takes, and reports a command that does not work.
func tryOut(ctx context.Context, here *runs.LocalRun, question *bench.Question) (time.Duration, error) {
	if err := local.Hide(); err != nil {
		return 0, err
	}
	budget, cancel := context.WithTimeout(ctx, question.Budget)
	defer cancel()
	result, took, err := here.Pilot(budget, 1)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return 0, cli.UsageError(fmt.Errorf("the program is too slow for --budget %s: two trials of each command took longer, and a "+
			"verdict takes %d times as many: give more, at least --budget %s",
			question.Budget, bench.LeastBlocks+1, bench.Enough(question.Budget)))
	case err != nil:
		return 0, err
	}
	for _, attempt := range result.Evidence.Attempts {
		if attempt.Outcome == record.Succeeded {
			continue
		}
		text := strings.TrimSpace(attempt.Message)
		if tail := strings.TrimSpace(attempt.StderrTail); tail != "" {
			text += "; it wrote to standard error:\n" + tail
		}
		if question.Figures.Format != assayv1alpha1.NoOutput {
			text += "; here from.benchmark is --benchmark, and from.field is --metric"
		}
		return 0, cli.UsageError(fmt.Errorf("command %q (%s): a trial %s: %s", strings.Join(attempt.Argv, " "), attempt.Arm,
			strings.ToLower(string(attempt.Outcome)), text))
	}
	return took, nil
}

// sentences are the answers in words.
func sentences(here *runs.LocalRun, result *analysis.Analysis) string {
	var out strings.Builder
	out.WriteByte('\n')
	for _, candidate := range here.Experiment.Candidates() {
		fmt.Fprintln(&out, bench.Sentence(here.Experiment, result, candidate))
	}
	return out.String()
}
