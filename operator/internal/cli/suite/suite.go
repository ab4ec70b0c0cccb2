// Package suite has the command that compares two builds on all their benchmarks.
package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/checkout"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/discover"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/recompute"
	"assay.dev/assay/operator/internal/report/suites"
	"assay.dev/assay/operator/internal/suggest"
	"assay.dev/assay/operator/internal/suite"
)

type options struct {
	runs.LocalOptions
	tool, filter, require    string
	files                    []string
	build, repository        string
	confidence               float64
	budget, buildTime        time.Duration
	cpus                     int
	output, format, save     string
	wanted                   *regexp.Regexp
	bound                    float64
	stdout, stderr           io.Writer
	chosen                   suite.Tool
	onlyOld, onlyNew, broken []string
}

// NewSuiteCommand returns the command assay suite.
func NewSuiteCommand() *cobra.Command {
	o := options{LocalOptions: runs.LocalOptions{Pin: true}}
	var names []string
	for _, tool := range suite.Tools() {
		names = append(names, tool.Name)
	}
	command := &cobra.Command{
		Use:   "suite OLD NEW",
		Short: "Compare two builds on all their benchmarks, on this machine, within one time budget",
		Long: "Compare two builds on all the benchmarks that both have, on this machine. OLD and NEW are programs, folders with programs, or " +
			"with --build two revisions of a git checkout.\n\n" +
			"Every benchmark runs in separate processes, in blocks that have the trials of both builds, and in an order that is drawn for each " +
			"block. All benchmarks get " + strconv.Itoa(suite.FirstLook()) + " blocks. The rest of --budget goes to those that the fewest further " +
			"blocks would decide. A benchmark that fails loses only itself.\n\n" +
			"The answer is one table sorted by change and one geometric mean. With --confidence no benchmark of equal speed is called slower or " +
			"faster, however many there are and however often they are looked at.\n\n" +
			"With --require: " + cli.ExitHelp(true) + " Without --require: " + cli.ExitHelp(false),
		Example: "  assay suite old/join.test new/join.test\n" +
			"  assay suite --build 'go test -c -o bench.test .' main HEAD --budget 10m -o comment.md\n" +
			"  assay suite --tool Criterion old/find new/find --require 1.05x",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stdout, o.stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := o.check(names); err != nil {
				return cli.UsageError(err)
			}
			return o.run(cmd.Context(), args)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.tool, "tool", "Go", "benchmark tool of the programs: "+strings.Join(names, ", "))
	flags.StringSliceVar(&o.files, "file", nil, "program below OLD and NEW with benchmarks; may be repeated (default: the usual names of the "+
		"tool, such as *.test)")
	flags.StringVar(&o.filter, "filter", "", "regular expression that the names of benchmarks must match")
	flags.StringVar(&o.build, "build", "", "shell command that builds a revision, run in a worktree of it; OLD and NEW are revisions then")
	flags.StringVar(&o.repository, "repository", ".", "with --build: folder of the git checkout")
	flags.DurationVar(&o.buildTime, "build-time", time.Hour, "with --build: timeout of a build")
	flags.DurationVar(&o.budget, "budget", 10*time.Minute, "time budget of the measurements")
	const confidence = 0.99
	flags.Float64Var(&o.confidence, "confidence", confidence, "probability that no benchmark of equal speed is called slower or faster")
	flags.StringVar(&o.require, "require", "", "bound of the ratio of every benchmark, such as 1.05x for times that grow by at most 5 % "+
		"(default: none, nothing is judged)")
	flags.IntVar(&o.cpus, "cpus", max(1, runtime.NumCPU()-1),
		"number of CPUs for trials (default: one less than this machine has, at least 1)")
	flags.Lookup("cpus").DefValue = "0" // The help text has the default, so that the reference does not depend on the machine.
	cli.AddDestination(command, &o.output, &o.format, "table", "md", "json")
	flags.StringVar(&o.save, "save", "", "output file for the BenchmarkRun, which measures all benchmarks in the same number of blocks")
	flags.StringVar(&o.Out, "out", "", "folder for the ledger (default: assay-ledger/suite-TIME)")
	flags.StringArrayVar(&o.BinDirs, "bin-dir", nil, "folder with assay-runner; may be repeated (default: the folder of assay)")
	return command
}

// bound is the form of --require.
var bound = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)x$`)

func (o *options) check(names []string) (err error) {
	var known bool
	if o.chosen, known = suite.FindTool(o.tool); !known {
		return fmt.Errorf("invalid --tool %q: %s", o.tool, suggest.Allowed(o.tool, names))
	}
	if o.wanted, err = regexp.Compile(o.filter); err != nil {
		return fmt.Errorf("invalid --filter %q: %w", o.filter, err)
	}
	if o.require != "" {
		parts := bound.FindStringSubmatch(o.require)
		if parts == nil {
			return fmt.Errorf("invalid --require %q: write a multiple of the old build's figure, such as 1.05x", o.require)
		}
		if o.bound, err = quantity.Number(parts[1]); err != nil || o.bound <= 0 {
			return fmt.Errorf("invalid --require %q: use a multiple above 0, such as 1.05x", o.require)
		}
	}
	for _, file := range o.files {
		if !filepath.IsLocal(file) {
			return fmt.Errorf("invalid --file %q: use a path below OLD and NEW, such as pkg/join.test", file)
		}
	}
	switch {
	case o.budget <= 0:
		return fmt.Errorf("invalid --budget %s; use a positive duration such as 10m", o.budget)
	case o.buildTime <= 0:
		return fmt.Errorf("invalid --build-time %s; use a positive duration such as 1h", o.buildTime)
	case !(o.confidence >= 0.5 && o.confidence < 1):
		return fmt.Errorf("invalid --confidence %g; use a number from 0.5 to below 1, such as 0.99", o.confidence)
	}
	if o.save != "" {
		if _, err := os.Stat(o.save); err == nil {
			return cli.FileExistsError(o.save)
		}
	}
	return nil
}

func (o *options) run(ctx context.Context, args []string) error {
	destination, err := cli.ParseDestination(o.output, o.format, "table", "md", "json")
	if err != nil {
		return err
	}
	if o.build != "" {
		folder, err := os.MkdirTemp("", "assay-suite-")
		if err != nil {
			return err
		}
		repository := checkout.Repository{Folder: o.repository}
		defer o.clean(context.WithoutCancel(ctx), repository, folder)
		if args, err = o.builds(ctx, repository, folder, args); err != nil {
			return err
		}
	}
	asked, err := o.ask(ctx, args)
	if err != nil {
		return err
	}
	if o.save != "" {
		raw, err := asked.Document()
		if err != nil {
			return cli.UsageError(err)
		}
		if err := cli.CreateFile(o.save, raw, o.stderr); err != nil {
			return err
		}
	}
	result, here, err := o.measure(ctx, asked)
	if err != nil {
		return err
	}
	if err := o.write(destination, result, here); err != nil {
		return err
	}
	if o.bound == 0 {
		return nil
	}
	return cli.VerdictError(assayv1alpha1.Verdict(result.Verdict), ": "+result.Reason)
}

// builds builds the two revisions in worktrees below a folder, and returns the folders of the builds.
func (o *options) builds(ctx context.Context, repository checkout.Repository, folder string, revisions []string) ([]string, error) {
	var out []string
	for i, revision := range revisions {
		if strings.HasPrefix(revision, "-") {
			return nil, cli.UsageError(fmt.Errorf("invalid revision %q: a name of a commit does not begin with -", revision))
		}
		at, log := filepath.Join(folder, []string{suite.Old, suite.New}[i]), &strings.Builder{}
		cli.PrintLine(o.stderr, "building %s\n", revision)
		switch err := repository.Build(ctx, revision, at, o.build, o.buildTime, log); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("build %s: %w\n%s", revision, err, log.String())
		}
		out = append(out, at)
	}
	return out, nil
}

// clean removes the worktrees of the builds.
func (o *options) clean(ctx context.Context, repository checkout.Repository, folder string) {
	for _, name := range []string{suite.Old, suite.New} {
		if err := repository.Remove(ctx, filepath.Join(folder, name)); err != nil {
			cli.PrintLine(o.stderr, "warning: remove the build %s: %s\n", filepath.Join(folder, name), err.Error())
		}
	}
	_ = os.RemoveAll(folder)
}

// place is a build: its folder, and the name of its program if it is one.
type place struct{ folder, file string }

func placeOf(path string) (place, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return place{}, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return place{}, fmt.Errorf("%s does not exist: name a program or a folder; for revisions of a checkout give --build", path)
	case err != nil:
		return place{}, err
	case info.IsDir():
		return place{folder: path}, nil
	}
	return place{filepath.Dir(path), filepath.Base(path)}, nil
}

// ask lists the benchmarks of both builds, and asks about those that both have.
func (o *options) ask(ctx context.Context, paths []string) (*suite.Suite, error) {
	var places [2]place
	for i, path := range paths {
		var err error
		if places[i], err = placeOf(path); err != nil {
			return nil, cli.UsageError(err)
		}
	}
	if (places[0].file == "") != (places[1].file == "") {
		return nil, cli.UsageError(errors.New("one build is a folder and the other a program: name two programs, or two folders"))
	}
	single := places[0].file != ""
	if single && len(o.files) > 0 {
		return nil, cli.UsageError(errors.New("--file names programs below two folders, and OLD and NEW are programs: leave it out"))
	}
	var found [2]*discover.Found
	for i := range places {
		files := o.files
		if single {
			files = []string{places[i].file}
		}
		var err error
		if found[i], err = discover.In(ctx, o.chosen, places[i].folder, files...); err != nil {
			return nil, cli.UsageError(err)
		}
		for _, name := range slices.Sorted(maps.Keys(found[i].Failed)) {
			o.broken = append(o.broken, fmt.Sprintf("%s (%s build: %s)", name, []string{suite.Old, suite.New}[i], found[i].Failed[name]))
		}
		if single {
			found[i] = found[i].As(places[0].file) // The arms name the programs.
		}
	}
	asked := &suite.Suite{
		Tool: o.chosen, Folders: [2]string{places[0].folder, places[1].folder}, CPUs: o.cpus, Budget: o.budget,
		Error: 1 - o.confidence, Bound: o.bound,
	}
	if single && places[0].file != places[1].file {
		asked.Files = [2]string{places[0].file, places[1].file}
	}
	asked.Members, o.onlyOld, o.onlyNew = o.shared(found[0], found[1])
	if len(asked.Members) == 0 && len(o.broken) > 0 {
		return nil, cli.UsageError(fmt.Errorf("no benchmark can be measured: %s", strings.Join(o.broken, "; ")))
	}
	return asked, nil
}

// shared returns the members of both builds that --filter selects, and the labels of those of one build. A benchmark that failed in one
// build when it was listed is a member, which fails in its trials.
func (o *options) shared(old, candidate *discover.Found) (both []suite.Member, onlyOld, onlyNew []string) {
	label := func(m suite.Member) string { return m.File + " " + m.Name }
	for _, member := range old.Members {
		switch {
		case !o.wanted.MatchString(member.Name):
		case candidate.Has(member):
			both = append(both, member)
		default:
			onlyOld = append(onlyOld, label(member))
		}
	}
	for _, member := range candidate.Members {
		switch {
		case !o.wanted.MatchString(member.Name), slices.Contains(old.Members, member):
		case old.Has(member):
			both = append(both, member)
		default:
			onlyNew = append(onlyNew, label(member))
		}
	}
	return both, onlyOld, onlyNew
}

// planner plans the waves of a suite on this machine.
type planner struct{ course *suite.Course }

func (p *planner) Observe(found *recompute.Analyzed) {
	p.course.Observe(found.Analysis, &found.Evidence)
}

func (p *planner) Next(course *design.Course, used, left time.Duration) design.Step {
	room := 0
	if done := suite.Size(course.Experiment, course.Waves); done > 0 {
		room = int(float64(left) / float64(used) * float64(done))
	}
	return p.course.Next(room)
}

// measure measures the suite on this machine.
func (o *options) measure(ctx context.Context, asked *suite.Suite) (*suite.Result, *runs.LocalRun, error) {
	here, err := o.prepare(asked, o.stderr)
	if err != nil {
		return nil, nil, err
	}
	if err := local.Hide(); err != nil {
		return nil, nil, err
	}
	screen := runs.NewLiveLine(o.stderr)
	screen.Printf("trying each of %s", quantity.Count(len(asked.Members), "benchmark"))
	_, took, err := here.Pilot(ctx, 1)
	screen.Clear()
	if err != nil {
		return nil, nil, err
	}
	if err := suite.CheckBudget(len(asked.Members), o.budget, took); err != nil {
		return nil, nil, cli.UsageError(err)
	}
	var log strings.Builder
	here.Executor.Log, here.Budget = &log, o.budget-took
	here.AfterBlock = func(_ context.Context, done, total int, remaining time.Duration) {
		screen.Printf("%s: block %d of %d of this wave, %s left for it", quantity.Count(len(asked.Members), "benchmark"), done, total,
			quantity.Seconds(remaining))
	}
	plan := &planner{course: suite.NewCourse(here.Experiment, asked.Error)}
	here.Planner = plan
	_, err = here.Run(ctx)
	screen.Clear()
	if err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, log.String())
	}
	result := plan.course.Result(asked.Members)
	result.OnlyOld, result.OnlyNew, result.Broken, result.Shortfall = o.onlyOld, o.onlyNew, o.broken, here.Shortfall()
	if o.bound > 0 {
		result.Judge(o.bound)
	}
	return result, here, nil
}

// prepare converts the suite to a local run. Trials inherit the environment, as those of assay bench.
func (o *options) prepare(asked *suite.Suite, log io.Writer) (*runs.LocalRun, error) {
	run, err := asked.BenchmarkRun()
	if err != nil {
		return nil, cli.UsageError(err)
	}
	var rest []string
	if o.Inherited, rest = local.Inherit(os.Environ()); len(rest) > 0 {
		cli.PrintLine(log, "warning: the benchmarks do not inherit %d variables, the first %s\n", len(rest), rest[0])
	}
	// Waves end with the budget of the planner; the limit of the run only ends trials that hang.
	run.Spec.Budget.WallClock.Duration = 2*o.budget + time.Minute
	explain := func(err error) error { return fmt.Errorf("the suite: %w", err) }
	return runs.PrepareLocal(&runs.RunFile{Run: run, Template: run.Spec.Template, Explain: explain}, o.LocalOptions, log)
}

// resultKey is the answer in the ledger.
const resultKey = "suite.json"

// write writes the answer to the destination, and beside the ledger.
func (o *options) write(destination cli.Destination, result *suite.Result, here *runs.LocalRun) error {
	raw, err := ledger.JSON(result)
	if err != nil {
		return err
	}
	if _, err := cli.WriteFileAtomically(here.Executor.Folder+"."+resultKey, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	var out strings.Builder
	switch destination.Form {
	case "json":
		out.Write(append(raw, '\n'))
	case "md":
		out.Write(suites.Markdown(result))
	default:
		if err := suites.Terminal(&out, result); err != nil {
			return err
		}
		fmt.Fprintf(&out, "ledger  %s\n", here.Executor.Folder)
	}
	return destination.Write(o.stdout, o.stderr, []byte(out.String()))
}
