// Package runs has the commands that create, execute, list and follow runs.
package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/store"
)

type LocalOptions struct {
	Templates []string
	BinDirs   []string
	Arms      []string
	Out       string
	Pin       bool
	// Inherited are the variables of this process's environment that trials get; nil gives them the variables of the run only.
	Inherited *record.Inherited
	// Steps are the commands around trials.
	Steps StepOptions
}

// NewRunCommand returns the command assay run.
func NewRunCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var options LocalOptions
	var point seriesOptions
	var what Creation
	var here, follow bool
	var form string
	command := &cobra.Command{
		Use:   "run FILE",
		Short: "Run the experiment in FILE, on the cluster or on this machine",
		Long: "Run the experiment in FILE. On a cluster the run is created, after the checks of the operator; with --watch it is " +
			"followed until it ends.\n\n" +
			"With --local it runs on this machine without a cluster, with the same plan, runner, analysis and report, and a folder as the " +
			"ledger.\n\n" +
			"With --series the run adds a point to a history. It measures --revision, its predecessor and the anchor of the series in the " +
			"same blocks, and records their ratios. The file has one arm, head, with {revision} in a parameter; alternatively --programs " +
			"names the program of a revision.\n\n" +
			cli.ExitHelp(false) + " With --series the exit code is 3 for a gap in the series, and 4 for a run that alerts.",
		Example: "  assay run --local workflows/studies/pir-batch-scan/run.yaml\n  assay run run.yaml --watch\n  assay run -f run.yaml " +
			"--generate-name -o name\n" +
			"  kubectl get benchmarkrun old -o yaml | assay run -f - --name new",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteManifests,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if what.File, err = cli.ManifestArgument(args, what.File); err != nil {
				return err
			}
			if err := point.check(here); err != nil {
				return cli.UsageError(err)
			}
			if err := options.Steps.Check(here, point.name == ""); err != nil {
				return cli.UsageError(err)
			}
			if here {
				if follow || what.Name != "" || what.Generate {
					return cli.UsageError(errors.New("--watch, --name and --generate-name cannot be combined with --local"))
				}
				if point.name != "" {
					return runSeries(cmd.Context(), connection, what.File, form, options, point, cmd.OutOrStdout(), cmd.ErrOrStderr())
				}
				local, result, err := RunManifest(cmd.Context(), connection, what.File, options, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				return local.PrintResult(result, form, cmd.OutOrStdout())
			}
			cluster, err := cli.Connect(connection)
			if err != nil {
				return fmt.Errorf("%w; without a cluster: %s run --local %s", err, cli.Program, what.File)
			}
			run, err := what.Create(cmd.Context(), cluster, *connection.Namespace)
			if err != nil {
				return err
			}
			return printCreated(cmd.Context(), cluster, run, form, follow, cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	what.AddFlags(command)
	cli.AddOutput(command, &form, "text", "name", "json", "yaml")
	flags.BoolVarP(&follow, "watch", "w", false, "follow the run until it ends")
	options.AddFlags(command, &here)
	point.addFlags(flags)
	return command
}

// AddFlags adds --local and the options of local runs. here receives --local.
func (options *LocalOptions) AddFlags(command *cobra.Command, here *bool) {
	flags := command.Flags()
	flags.BoolVar(here, "local", false, "run on this machine, without a cluster")
	options.AddSources(flags, "with --local: ")
	options.Steps.AddFlags(flags, "with --local: ")
	flags.BoolVar(&options.Pin, "pin", true, "with --local: pin blocks to spec.placement.cpus CPUs")
	bindArmBinary(flags, &options.Arms)
	flags.StringVar(&options.Out, "out", "", "with --local: folder for the ledger (default: assay-ledger/NAME-TIME)")
}

// bindArmBinary adds --arm-binary, which replaces the images of arms by local programs.
func bindArmBinary(flags *pflag.FlagSet, into *[]string) {
	flags.StringArrayVar(into, "arm-binary", nil,
		"ARM=PATH, the local program of an arm with an image, or ARM/BUILD=PATH for one of its builds; may be repeated")
}

// AddSources adds the flags for templates and programs of local runs. when prefixes their help texts.
func (options *LocalOptions) AddSources(flags *pflag.FlagSet, when string) {
	flags.StringArrayVar(&options.Templates, "templates", nil,
		when+"file or folder with BenchmarkTemplates; may be repeated (default: the shipped templates, then those of the cluster)")
	flags.StringArrayVar(&options.BinDirs, "bin-dir", nil,
		when+"folder with assay-runner and the workloads' programs; may be repeated (default: the folder of assay)")
}

// printCreated prints the created run, and follows it if requested.
func printCreated(ctx context.Context, cluster *cli.Cluster, run *assayv1alpha1.BenchmarkRun, form string, follow bool,
	out io.Writer) error {
	if follow && (form == "text" || form == "json") {
		if form == "text" {
			fmt.Fprintf(out, "BenchmarkRun %s/%s created\n", run.Namespace, run.Name)
		}
		return watchToTheEnd(ctx, cluster, run.Name, form, out)
	}
	if follow {
		return cli.UsageError(fmt.Errorf("BenchmarkRun %s/%s was created; --watch requires -o text or json", run.Namespace, run.Name))
	}
	if form == "name" {
		_, err := fmt.Fprintf(out, "benchmarkrun.assay.dev/%s\n", run.Name)
		return err
	}
	return cli.PrintAnswer(out, form, run, "BenchmarkRun %s/%s created; follow it with %s watch %s\n", run.Namespace, run.Name, cli.Program,
		run.Name)
}

// RunManifest runs the experiment in a file on this machine and returns its analysis.
func RunManifest(ctx context.Context, connection *genericclioptions.ConfigFlags, file string, options LocalOptions,
	stderr io.Writer) (*LocalRun, *analysis.Analysis, error) {
	question, err := ReadRunFile(ctx, connection, file, options.Templates)
	if err != nil {
		return nil, nil, err
	}
	here, err := PrepareLocal(question, options, stderr)
	if err != nil {
		return nil, nil, err
	}
	screen := NewLiveLine(stderr)
	if screen.terminal != nil {
		here.Executor.Log, here.AfterBlock = screen, screen.printBlocks
	}
	if err := options.Steps.For(here, false, func(int) map[string]string { return nil }); err != nil {
		return nil, nil, err
	}
	var result *analysis.Analysis
	err = here.Around(ctx, stderr, func() (err error) {
		result, err = here.Run(ctx)
		return err
	})
	screen.Clear()
	return here, result, err
}

// PrepareLocal validates a run and locates its runner and programs on this machine.
func PrepareLocal(question *RunFile, options LocalOptions, log io.Writer) (*LocalRun, error) {
	frozen, err := question.Freeze()
	if err != nil {
		return nil, err
	}
	for _, warning := range experiment.EnvironmentWarnings(frozen.Plan.Requires.Require) {
		fmt.Fprintln(log, "warning: "+warning)
	}
	binDirs, err := ProgramFolders(options.BinDirs)
	if err != nil {
		return nil, err
	}
	armPrograms, err := local.ParseArmPrograms(options.Arms)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	runner, err := findRunner(binDirs)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(cmp.Or(options.Out, filepath.Join("assay-ledger", frozen.Run.Name+"-"+time.Now().Format("20060102-150405"))))
	if err != nil {
		return nil, err
	}
	cpus := 0
	if options.Pin {
		cpus = int(frozen.Plan.Placement.CPUs)
	}
	return &LocalRun{
		Experiment: frozen, programs: local.Programs{Folders: binDirs, Arms: armPrograms}, inherited: options.Inherited,
		Executor: &local.Executor{
			Runner: runner, Folder: folder, Name: "local-" + frozen.Run.UID[:8], CPUs: cpus, Log: log,
			Counters: slices.ContainsFunc(frozen.Metrics(), func(m *experiment.Metric) bool { return record.IsCounted(m.Name) }),
		},
	}, nil
}

// PrintResult prints the analysis and the paths of report and ledger.
func (r *LocalRun) PrintResult(result *analysis.Analysis, form string, stdout io.Writer) error {
	done, err := cli.PrintStructured(stdout, form, result)
	if !done {
		err = r.printFound(result, stdout)
	}
	return err
}

// printFound prints the analysis for people.
func (r *LocalRun) printFound(result *analysis.Analysis, stdout io.Writer) error {
	fmt.Fprintln(stdout)
	if err := report.Terminal(stdout, r.Experiment, result); err != nil {
		return err
	}
	if r.shortfall != "" {
		fmt.Fprintf(stdout, "note: %s\n", r.shortfall)
	}
	_, err := fmt.Fprintf(stdout, "\nreport  %s\nledger  %s\n", r.ObjectPath(ledger.HTMLKey(result.Wave)), r.Executor.Folder)
	return err
}

// PrintAnswer prints an answer with at most nine lines beside it, or the analysis in another form.
func (r *LocalRun) PrintAnswer(result *analysis.Analysis, form, answer string, stdout io.Writer) error {
	if done, err := cli.PrintStructured(stdout, form, result); done {
		return err
	}
	fmt.Fprint(stdout, answer)
	for _, line := range report.Brief(r.Experiment, result) {
		fmt.Fprintln(stdout, line)
	}
	if r.shortfall != "" {
		fmt.Fprintf(stdout, "note: %s\n", r.shortfall)
	}
	_, err := fmt.Fprintf(stdout, "report  %s\nledger  %s\n", r.ObjectPath(ledger.HTMLKey(result.Wave)), r.Executor.Folder)
	return err
}

// ObjectPath returns the path of an object of the ledger.
func (r *LocalRun) ObjectPath(key string) string {
	return filepath.Join(r.Executor.Folder, filepath.FromSlash(key))
}

// findRunner locates assay-runner, by default beside this program.
func findRunner(folders []string) (string, error) {
	const name = "assay-runner"
	if err := local.Supported(); err != nil {
		return "", cli.UsageError(err)
	}
	path, err := local.FindProgram(name, folders)
	if err != nil {
		return "", cli.UsageError(fmt.Errorf("the trial runner %s is not in %s or PATH; install it beside %s, or name its "+
			"folder with --bin-dir (make build builds both)",
			name, strings.Join(folders, ", "), cli.Program))
	}
	return path, nil
}

// Counters returns the counted quantities of this machine, as local.Counters does.
func Counters(ctx context.Context, binDirs []string) (map[string]string, error) {
	folders, err := ProgramFolders(binDirs)
	if err != nil {
		return nil, err
	}
	runner, err := findRunner(folders)
	if err != nil {
		return nil, err
	}
	return local.Counters(ctx, runner)
}

// RunFile is a run with its template, as read from a file.
type RunFile struct {
	Run      *assayv1alpha1.BenchmarkRun
	Template *assayv1alpha1.BenchmarkTemplateSpec
	file     string
	// UID identifies the run; "" for a new one.
	UID string
	// Explain adds the position in the file to validation errors.
	Explain func(error) error
}

// Freeze validates the run. Its errors are usage errors.
func (a *RunFile) Freeze() (*experiment.Experiment, error) {
	identity := record.Run{Namespace: "local", Name: a.Run.Name, UID: cmp.Or(a.UID, uuid.NewString())}
	frozen, err := experiment.Freeze(identity, a.Run.Spec, *a.Template)
	if err != nil {
		return nil, cli.UsageError(a.Explain(err))
	}
	return frozen, nil
}

// WithRun returns a copy with another run.
func (a *RunFile) WithRun(run *assayv1alpha1.BenchmarkRun) *RunFile {
	out := *a
	out.Run = run
	return &out
}

// Invalid returns a usage error about the run.
func (a *RunFile) Invalid(text string, args ...any) error {
	return cli.UsageError(fmt.Errorf("BenchmarkRun %s in %s: "+text, append([]any{a.Run.Name, a.file}, args...)...))
}

// ReadRunFile reads a file with one run and finds its template in the file, in other files, among the shipped ones or on the cluster.
func ReadRunFile(ctx context.Context, connection *genericclioptions.ConfigFlags, file string, templates []string) (*RunFile, error) {
	set, err := cli.ReadManifest(file, templates...)
	if err != nil {
		return nil, err
	}
	if len(templates) == 0 {
		if err := set.AddShipped(); err != nil {
			return nil, err
		}
	}
	run := &set.Runs[0]
	// The ledger needs a name, and only the API server expands generateName.
	if run.Name = cmp.Or(run.Name, strings.TrimRight(run.GenerateName, "-.")); run.Name == "" {
		return nil, cli.UsageError(fmt.Errorf("%s: metadata.name is missing; set it", file))
	}
	out := &RunFile{Run: run, file: file, Explain: func(err error) error { return set.Explain(run, err) }}
	if out.Template, err = set.Template(run); err == nil {
		return out, nil
	}
	if run.Spec.TemplateRef != nil && run.Spec.Template == nil {
		if existing, clusterErr := templateOnCluster(ctx, connection, run); clusterErr == nil {
			out.Template = existing
			return out, nil
		}
	}
	return nil, cli.UsageError(err)
}

// ProgramFolders returns the given folders, or by default the folder of this program.
func ProgramFolders(given []string) ([]string, error) {
	if len(given) > 0 {
		return given, nil
	}
	self, err := os.Executable()
	return []string{filepath.Dir(self)}, err
}

// startLedger creates the ledger with its experiment. It returns a usage error if the folder holds another ledger.
func startLedger(ctx context.Context, executor *local.Executor, frozen *experiment.Experiment) (store.Store, error) {
	folder := executor.Folder
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	s, err := store.OpenFolder(ctx, folder)
	if err != nil {
		return nil, err
	}
	raw, err := ledger.JSON(frozen)
	if err != nil {
		return nil, err
	}
	err = executor.Plan(ctx, s, ledger.ExperimentKey, raw)
	if errors.Is(err, store.ErrExists) {
		err = cli.UsageError(fmt.Errorf("folder %s holds the ledger of another run; choose another with --out", folder))
	}
	return s, err
}
