// Package bench has the command that compares command lines.
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
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/scan"
	"assay.dev/assay/operator/internal/steps"
	"assay.dev/assay/operator/internal/suggest"
)

type benchOptions struct {
	runs.LocalOptions
	names, candidates, require []string
	benchmarks                 []string
	baseline, format, noise    string
	by                         string
	save                       string
	// typed is the command line that decides by the other figure.
	typed                string
	shell, cleanEnv      bool
	variables            []string
	budget               time.Duration
	blocks, warmup, cpus int
	figures              bench.Figures
	lists, ranges        []string
	counters             bool
	scanned              scanned
	// why asks for the causes of the differences, for which each candidate has whyBudget.
	why       bool
	whyBudget time.Duration
}

func NewBenchCommand() *cobra.Command {
	options := benchOptions{LocalOptions: runs.LocalOptions{Pin: true}}
	var form string
	command := &cobra.Command{
		Use:   "bench 'COMMAND' 'COMMAND'...",
		Short: "Compare command lines on this machine, in about a minute",
		Long: "Compare the time, CPU time and memory of command lines on this machine. The first command is the baseline. " +
			"Trials are interleaved, pinned to CPUs and judged by intervals, as in any run, with a ledger and a report. " +
			"--save writes the BenchmarkRun.\n\n" +
			"The deciding figure is fixed before the first trial: wall time, or CPU time with --by cpu. The other one is shown beside it. " +
			"Blocks are added until the interval is ±" + bench.Precision + " wide, or --budget is used up. This rule does not depend on the " +
			"verdict, so that a wrong one stays as rare as the confidence says.\n\n" +
			"A command is split into words like in a shell, and started without a shell. One block runs first to see whether a verdict fits " +
			"into --budget.\n\n" +
			"Commands inherit the environment of this shell. The ledger has the names of its variables, a digest, and the values of a few that " +
			"set how programs run, such as OMP_NUM_THREADS, GOGC and LC_ALL; no other value. --env sets and records a variable, and " +
			"--clean-env starts the commands without the others.\n\n" +
			"--format selects the output format of programs that report metrics. Test binaries of Go, Criterion, Google Benchmark, " +
			"divan and Catch2 without arguments are started with the arguments that run their benchmarks; --benchmark selects one.\n\n" +
			"A command that fails when it is tried is an error; with --require its failure is judged.\n\n" +
			"--prepare runs directly before every trial and --conclude directly after it, --setup once before the first trial and --cleanup once " +
			"after the last one. None of them is measured. One that fails is a broken setup: it ends the comparison, without an answer, and with " +
			"exit code " + fmt.Sprint(cli.ExitInconclusive) + ".\n\n" +
			"-L and -P scan parameters: {name} in commands and steps stands for each of the values. Two or more commands are compared at every " +
			"combination of values, and the values of one command with each other, the first one as the baseline. All trials are interleaved.\n\n" +
			"With --require: " + cli.ExitHelp(true) + " Without --require: " + cli.ExitHelp(false),
		Example: "  assay bench 'gzip -6 -c numbers.txt' 'gzip -9 -c numbers.txt'\n  assay bench --shell 'sort a | uniq' 'sort -u a'\n" +
			"  assay bench ./old ./new --require 'wallTime<=0.9x' --require 'peakMemory<=1.05x'\n" +
			"  assay bench --format Go --baseline ./old.test --candidate ./new.test --benchmark BenchmarkEncode\n" +
			"  assay bench ./old ./new --save run.yaml\n" +
			"  assay bench --by cpu ./old ./new\n" +
			"  assay bench --prepare 'rm -rf out' './old out' './new out'\n" +
			"  assay bench -L level=1,6,9 'gzip -{level} -c big.txt' 'pigz -{level} -c big.txt'\n" +
			"  assay bench -P threads=1:4 'xz -T{threads} -c big.txt'\n" +
			"  assay bench --clean-env --env OMP_NUM_THREADS=4 ./old ./new",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			options.typed = typed(cmd, args)
			return options.run(cmd.Context(), args, form, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	cli.AddOutput(command, &form, "text", "json", "yaml")
	flags.StringVar(&options.baseline, "baseline", "", "baseline command (default: the first argument)")
	flags.StringArrayVar(&options.candidates, "candidate", nil, "command to compare with the baseline; may be repeated")
	flags.StringSliceVar(&options.names, "name", nil,
		"display names, comma-separated, baseline first (default: the differing words)")
	flags.BoolVar(&options.shell, "shell", false, "run commands with /bin/sh -c, whose start time is included")
	flags.DurationVar(&options.budget, "budget", time.Minute, "time budget of the comparison")
	flags.StringVar(&options.by, "by", "", "deciding figure: "+bench.WallTime+", or "+bench.CPUTime+" for the CPU time of the command "+
		"(default: "+bench.WallTime+")")
	flags.IntVar(&options.blocks, "blocks", 0,
		"number of blocks, each with two trials per command (default: until the interval is ±"+bench.Precision+", within the budget)")
	flags.IntVar(&options.warmup, "warmup", 0, "warm-up trials of each command per block")
	flags.IntVar(&options.cpus, "cpus", max(1, runtime.NumCPU()-1),
		"number of CPUs for trials (default: one less than this machine has, at least 1)")
	flags.Lookup("cpus").DefValue = "0" // The help text has the default, so that the reference does not depend on the machine.
	flags.StringVar(&options.noise, "noise", string(assayv1alpha1.ViolationWarn), "policy for trials disturbed by other processes "+
		"on their CPUs: Warn uses them with a warning, Retry repeats them, Invalid rejects them")
	flags.StringArrayVar(&options.require, "require", nil, "requirement for every candidate, METRIC<=BOUND or METRIC>=BOUND; the suffix x "+
		"is a multiple of the baseline; may be repeated (default: faster than the baseline)")
	flags.StringVar(&options.format, "format", string(assayv1alpha1.NoOutput),
		"output format of the commands: Go, "+strings.Join(bench.FormatNames(), ", "))
	flags.StringArrayVar(&options.benchmarks, "benchmark", nil,
		"with --format: name of the benchmark in the output; repeated, that of each command, baseline first (default: the only one)")
	flags.StringVar(&options.figures.Metric, "metric", "",
		"with --format: metric in the output, such as allocs/op (default: the time of the format)")
	flags.BoolVar(&options.figures.HigherIsBetter, "higher-is-better", false, "with --format: higher values of the metric are better")
	flags.StringVar(&options.figures.Path, "figures", "",
		"with --format: output file of the commands (default: standard output)")
	flags.StringArrayVarP(&options.lists, "parameter-list", "L", nil,
		"parameter with its values, NAME=A,B,C, for {NAME} in commands and steps; may be repeated")
	flags.StringArrayVarP(&options.ranges, "parameter-scan", "P", nil,
		"parameter with a range of numbers, NAME=FROM:TO or NAME=FROM:TO:STEP, both ends included; may be repeated")
	options.Steps.AddFlags(flags, "")
	flags.BoolVar(&options.counters, "counters", false,
		"show page faults, context switches and the counters of the processor that this machine has beside the times; they decide nothing")
	flags.BoolVar(&options.why, "why", false, "after the judged trials, run further ones under instruments and name the causes of the "+
		"difference; they change no verdict")
	flags.DurationVar(&options.whyBudget, "why-budget", 30*time.Second, "with --why: time for each candidate")
	flags.StringArrayVar(&options.variables, "env", nil,
		"variable of the environment of all commands, NAME=VALUE, which is recorded; may be repeated")
	flags.BoolVar(&options.cleanEnv, "clean-env", false, "start commands with PATH, HOME, TMPDIR and --env alone, as runs from a file do "+
		"(default: also the variables of this shell)")
	flags.StringVar(&options.save, "save", "", "output file for the BenchmarkRun")
	flags.StringVar(&options.Out, "out", "", "folder for the ledger (default: assay-ledger/bench-TIME)")
	flags.StringArrayVar(&options.BinDirs, "bin-dir", nil, "folder with assay-runner; may be repeated (default: the folder of assay)")
	return command
}

func (o *benchOptions) run(ctx context.Context, args []string, form string, stdout, stderr io.Writer) error {
	question, err := o.question(args)
	if err != nil {
		return cli.UsageError(err)
	}
	if !o.cleanEnv {
		var rest []string
		if o.Inherited, rest = local.Inherit(os.Environ()); len(rest) > 0 {
			fmt.Fprintf(stderr, "warning: the commands do not inherit %d variables, the first %q: a name is text of at most 1,024 bytes\n",
				len(rest), rest[0])
		}
	}
	first, err := o.prepare(ctx, question, stderr)
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.save); o.save != "" && err == nil {
		return cli.FileExistsError(o.save)
	}
	return first.Around(ctx, stderr, func() error { return o.measure(ctx, question, form, stdout, stderr) })
}

// measure tries the commands, compares them and prints the answer.
func (o *benchOptions) measure(ctx context.Context, question *bench.Question, form string, stdout, stderr io.Writer) error {
	screen := runs.NewLiveLine(stderr)
	screen.Printf("trying each command (%s)", strings.Join(question.Names, ", "))
	took, err := o.tryOut(ctx, *question)
	screen.Clear()
	if err != nil {
		return err
	}
	if o.blocks == 0 {
		if err := bench.CheckBudget(o.budget, took); err != nil {
			return cli.UsageError(err)
		}
	}
	question.Budget = max(o.budget, bench.Room(cmp.Or(o.blocks, bench.LeastBlocks), took))
	here, err := o.prepare(ctx, question, io.Discard)
	if err != nil {
		return err
	}
	if o.blocks == 0 {
		here.Budget = o.budget - took
	}
	if o.save != "" {
		raw, err := bench.Document(here.Written)
		if err != nil {
			return err
		}
		if err := cli.CreateFile(o.save, raw, stderr); err != nil {
			return err
		}
		if o.Steps.Lines().Any() {
			fmt.Fprintf(stderr, "note: %s has no steps; give --setup, --prepare, --conclude and --cleanup to %s run --local again\n", o.save,
				cli.Program)
		}
		if o.Inherited != nil && len(o.Inherited.Recorded) > 0 {
			fmt.Fprintf(stderr, "note: a run from a file has a clean environment; %s of this shell is not in it (see --env)\n",
				strings.Join(o.Inherited.Recorded, ", "))
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
	err = here.PrintAnswer(result, form, o.answers(here, result, took)+o.environment(), stdout)
	if o.why && err == nil {
		err = o.explain(ctx, here, result, form, stdout, stderr)
	}
	if len(o.require) == 0 {
		return err
	}
	return errors.Join(err, cli.VerdictError(assayv1alpha1.Verdict(result.Verdict), missed(result)))
}

// missed explains a verdict: a broken setup, or the candidates that have the verdict.
func missed(result *analysis.Analysis) string {
	if result.SetupBroken != "" {
		return ": " + assayv1alpha1.ReasonSetupBroken + ": " + report.Printable(result.SetupBroken)
	}
	var parts []string
	for _, candidate := range result.Candidates {
		if candidate.Verdict == result.Verdict {
			parts = append(parts, candidate.Name+": "+report.Printable(candidate.Reason))
		}
	}
	return ": " + strings.Join(parts, "; ")
}

// question converts the options to a question.
func (o *benchOptions) question(args []string) (*bench.Question, error) {
	lines, err := bench.Commands(args, o.baseline, o.candidates)
	if err != nil {
		return nil, err
	}
	if err := o.scanned.read(o.lists, o.ranges, lines, o.Steps.Texts()); err != nil {
		return nil, err
	}
	policy, err := policyOf(o.noise)
	if err != nil {
		return nil, err
	}
	switch {
	case o.blocks < 0:
		return nil, fmt.Errorf("invalid --blocks %d; use a positive number, or 0 to fill the budget", o.blocks)
	case o.why && (o.format != string(assayv1alpha1.NoOutput) || len(o.scanned.axes) > 0 || o.whyBudget <= 0):
		return nil, errors.New("--why explains the time of commands without --format, -L and -P, with a positive --why-budget such as 30s")
	case o.budget <= 0:
		return nil, fmt.Errorf("invalid --budget %s; use a positive duration such as 1m", o.budget)
	}
	question := &bench.Question{
		Names: o.names, Figures: o.figures, Requirements: o.require, By: o.by, Blocks: o.blocks, Warmup: o.warmup,
		CPUs: o.cpus, Budget: o.budget, OnViolation: policy,
	}
	if question.Variables, err = bench.ParseVariables(o.variables); err != nil {
		return nil, err
	}
	if question.Figures.Format, err = bench.ParseFormat(o.format); err != nil {
		return nil, err
	}
	if question.Benchmarks = o.benchmarks; len(o.benchmarks) == 1 {
		question.Figures.Benchmark, question.Benchmarks = o.benchmarks[0], nil
	}
	var typed [][]string
	for _, line := range lines {
		words := strings.Fields(line)
		command := []string{"/bin/sh", "-c", line}
		if !o.shell {
			if words, err = bench.Words(line); err != nil {
				return nil, err
			}
			command = slices.Clone(words)
		}
		typed, question.Commands = append(typed, words), append(question.Commands, command)
	}
	var names []string
	if question.Commands, names, err = o.scanned.expand(question.Commands); err != nil {
		return nil, err
	}
	for _, command := range question.Commands {
		if command[0], err = o.program(command[0]); err != nil {
			return nil, fmt.Errorf("command %q: %w", strings.Join(command, " "), err)
		}
	}
	if len(o.scanned.axes) > 0 {
		if question.Commands, err = scan.Commands(question.Commands); err != nil {
			return nil, err
		}
	}
	if len(question.Names) == 0 {
		if question.Names = names; names == nil {
			question.Names = bench.Names(typed)
		}
	}
	return question, nil
}

// program returns the path of a command's program. One that is named by a path may be made by --setup, or be another one at each point.
func (o *benchOptions) program(name string) (string, error) {
	later := len(o.Steps.Lines()[steps.Setup]) > 0 || len(o.scanned.axes) > 0
	if later && strings.Contains(name, "/") {
		return filepath.Abs(name)
	}
	return programPath(name)
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

// programPath returns the path of a program in PATH or in the working directory.
func programPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		if !local.Executable(name) {
			return "", fmt.Errorf("program %q is not in PATH or in this folder; build it or use its path (shell built-ins need "+
				"--shell)", name)
		}
		path = name
	}
	return filepath.Abs(path)
}

// prepare converts the question to a local run.
func (o *benchOptions) prepare(ctx context.Context, question *bench.Question, log io.Writer) (*runs.LocalRun, error) {
	run, err := question.BenchmarkRun()
	if err != nil {
		return nil, cli.UsageError(err)
	}
	if len(o.scanned.axes) > 0 {
		if err := scan.Apply(run, o.scanned.axes); err != nil {
			return nil, cli.UsageError(err)
		}
	}
	if o.counters {
		missing, err := runs.Counters(ctx, o.BinDirs)
		if err != nil {
			return nil, err
		}
		has, lacks := splitCounters(missing)
		if nameCounters(run, has); lacks != "" {
			cli.PrintLine(log, "note: %s\n", lacks)
		}
	}
	explain := func(err error) error { return fmt.Errorf("the question: %w", err) }
	here, err := runs.PrepareLocal(&runs.RunFile{Run: run, Template: run.Spec.Template, Explain: explain}, o.LocalOptions, log)
	if err != nil {
		return nil, err
	}
	here.Written = run
	return here, o.Steps.For(here, o.shell, o.scanned.of)
}

// longestPilot limits each trial of the first block, and the block, where --budget is less. The block runs to its end, because the budget
// that is advised has to hold ten like it.
const longestPilot = 10 * time.Minute

// tryOut runs one block and returns its duration. Without requirements it returns an error if a command fails.
func (o *benchOptions) tryOut(ctx context.Context, question bench.Question) (time.Duration, error) {
	question.Budget = max(question.Budget, longestPilot)
	here, err := o.prepare(ctx, &question, io.Discard)
	if err != nil {
		return 0, err
	}
	if err := local.Hide(); err != nil {
		return 0, err
	}
	limit, cancel := context.WithTimeout(ctx, question.Budget)
	defer cancel()
	result, took, err := here.Pilot(limit, 1)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return 0, cli.UsageError(fmt.Errorf("one block of all commands has not ended after %s, and a verdict takes %d more: use commands that "+
			"do less, or give --budget %s", quantity.Duration(question.Budget, time.Second), bench.LeastBlocks, bench.Enough(question.Budget)))
	case err != nil:
		return 0, err
	}
	for _, attempt := range result.Evidence.Attempts {
		if len(question.Requirements) > 0 {
			break // The analysis judges failures.
		}
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

// environment describes the environment that the commands had.
func (o *benchOptions) environment() string {
	if o.Inherited == nil {
		return ""
	}
	var with []string
	for _, name := range o.Inherited.Recorded {
		with = append(with, name+"="+os.Getenv(name))
	}
	text := fmt.Sprintf("The commands inherited %s of this shell", quantity.Count(len(o.Inherited.Names), "variable"))
	if len(with) > 0 {
		text += ", with " + strings.Join(with, ", ")
	}
	return text + "; --clean-env leaves them out.\n"
}

// answers formats the answer for each candidate. Pilot is the duration of the first block, which is not part of the run.
func (o *benchOptions) answers(here *runs.LocalRun, result *analysis.Analysis, pilot time.Duration) string {
	more := func(blocks int) string {
		ran := pilot + time.Duration(here.Blocks())*here.Pace
		blocks = report.Further(here.Blocks(), blocks)
		text := "about " + quantity.Count(blocks, "more block") + " would decide"
		if o.blocks > 0 {
			return text + fmt.Sprintf(": --blocks %d", here.Blocks()+blocks)
		}
		return text + ": --budget " + bench.Further(max(ran, o.budget), blocks, here.Pace).String()
	}
	var out strings.Builder
	out.WriteByte('\n')
	for _, candidate := range here.Experiment.Candidates() {
		for _, line := range o.scanned.answers(here.Experiment, result, candidate, more, o.typed, o.counters) {
			fmt.Fprintln(&out, line)
		}
	}
	return out.String()
}

// typed returns the command line that asks the same question by the other figure, with the flags that were given.
func typed(cmd *cobra.Command, args []string) string {
	other := bench.CPUTime
	if by := cmd.Flags().Lookup("by").Value.String(); by == bench.CPUTime {
		other = bench.WallTime
	}
	words := []string{cli.Program, cmd.Name(), "--by", other}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case slices.Contains([]string{"by", "out", "save"}, flag.Name):
			case flag.Value.Type() == "bool":
				words = append(words, "--"+flag.Name)
			default:
				words = append(words, "--"+flag.Name, value)
			}
		}
	})
	words = append(words, args...)
	for i, word := range words {
		if quoted, err := syntax.Quote(word, syntax.LangPOSIX); err == nil {
			words[i] = quoted
		}
	}
	return strings.Join(words, " ")
}
