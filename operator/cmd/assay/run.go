package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/store"
)

type localOptions struct {
	templates []string
	binDirs   []string
	arms      []string
	out       string
	pin       bool
}

func newRunCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var options localOptions
	var point seriesOptions
	var what creation
	var here, follow bool
	var form string
	command := &cobra.Command{
		Use:   "run FILE",
		Short: "Run the experiment in FILE, on the cluster or on this machine",
		Long: "Run the experiment in FILE. On a cluster the run is created, after checking what the operator would refuse; with --watch it is " +
			"followed to its end.\n\n" +
			"With --local it runs on this machine: the same plan, runner, analysis and report, with a folder as the ledger, and no cluster.\n\n" +
			"With --series the run is a point of a history: --revision, its predecessor and the anchor of the series are measured in the same " +
			"blocks, and what is kept is their ratio. The file has one arm, head, with {revision} in a parameter, or --programs says where the " +
			"program of a revision lies.\n\n" +
			exitHelp(false),
		Example: "  assay run --local workflows/studies/pir-batch-scan/run.yaml\n  assay run run.yaml --watch\n  assay run -f run.yaml " +
			"--generate-name -o name\n" +
			"  kubectl get benchmarkrun old -o yaml | assay run -f - --name new",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeManifests,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if what.file, err = manifestOf(args, what.file); err != nil {
				return err
			}
			if err := point.check(here); err != nil {
				return &exitCode{exitUsage, err}
			}
			if here {
				if follow || what.name != "" || what.generate {
					return &exitCode{exitUsage, errors.New("--watch, --name and --generate-name are for runs on a cluster: leave them out with --local")}
				}
				if point.name != "" {
					return runSeries(cmd.Context(), connection, what.file, form, options, point, cmd.OutOrStdout(), cmd.ErrOrStderr())
				}
				local, result, err := runManifest(cmd.Context(), connection, what.file, options, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				return local.printResult(result, form, "", cmd.OutOrStdout())
			}
			cluster, err := connect(connection)
			if err != nil {
				return fmt.Errorf("%w; without a cluster: %s run --local %s", err, program, what.file)
			}
			run, err := what.create(cmd.Context(), cluster, *connection.Namespace)
			if err != nil {
				return err
			}
			return printCreated(cmd.Context(), cluster, run, form, follow, cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	what.addFlags(command)
	addOutput(command, &form, "text", "name", "json", "yaml")
	flags.BoolVarP(&follow, "watch", "w", false, "follow the run to its end")
	options.addFlags(command, &here)
	point.addFlags(flags)
	return command
}

// addFlags gives a command --local, and what goes with it.
func (options *localOptions) addFlags(command *cobra.Command, here *bool) {
	flags := command.Flags()
	flags.BoolVar(here, "local", false, "run on this machine, without a cluster")
	options.addSources(flags, "with --local: ")
	flags.BoolVar(&options.pin, "pin", true, "with --local: pin blocks to spec.placement.cpus CPUs")
	bindArmBinary(flags, &options.arms)
	flags.StringVar(&options.out, "out", "", "with --local: folder for the ledger (default: assay-ledger/NAME-TIME)")
}

// bindArmBinary adds the flag with which arms that have images get their programs on this machine.
func bindArmBinary(flags *pflag.FlagSet, into *[]string) {
	flags.StringArrayVar(into, "arm-binary", nil,
		"ARM=PATH, the program of an arm that has an image of its own, or ARM/BUILD=PATH of one of its builds; may be repeated")
}

// addSources gives a command the flags that say where a run on this machine finds what it needs. When begins what each is for.
func (options *localOptions) addSources(flags *pflag.FlagSet, when string) {
	flags.StringArrayVar(&options.templates, "templates", nil,
		when+"file or folder with BenchmarkTemplates; may be repeated (default: those that Assay ships, then the cluster's)")
	flags.StringArrayVar(&options.binDirs, "bin-dir", nil,
		when+"folder with assay-runner and the workloads' programs; may be repeated (default: the folder of assay itself)")
}

// printCreated prints that a run was created, and follows it if requested.
func printCreated(ctx context.Context, cluster *cluster, run *assayv1alpha1.BenchmarkRun, form string, follow bool, out io.Writer) error {
	if follow && (form == "text" || form == "json") {
		if form == "text" {
			fmt.Fprintf(out, "BenchmarkRun %s/%s created\n", run.Namespace, run.Name)
		}
		return watchToTheEnd(ctx, cluster, run.Name, form, out)
	}
	if follow {
		return &exitCode{exitUsage, fmt.Errorf("BenchmarkRun %s/%s was created; --watch goes with -o text or json", run.Namespace, run.Name)}
	}
	if form == "name" {
		_, err := fmt.Fprintf(out, "benchmarkrun.assay.dev/%s\n", run.Name)
		return err
	}
	return printAnswer(out, form, run, "BenchmarkRun %s/%s created; %s watch %s follows it\n", run.Namespace, run.Name, program, run.Name)
}

// runManifest runs the experiment in a file on this machine.
func runManifest(ctx context.Context, connection *genericclioptions.ConfigFlags, file string, options localOptions,
	stderr io.Writer) (*localRun, *analysis.Analysis, error) {
	question, err := readRun(ctx, connection, file, options.templates)
	if err != nil {
		return nil, nil, err
	}
	here, err := prepareLocal(question, options, stderr)
	if err != nil {
		return nil, nil, err
	}
	screen := newLive(stderr)
	if screen.terminal != nil {
		here.executor.Log, here.after = screen, screen.blocks
	}
	result, err := here.run(ctx)
	screen.clear()
	return here, result, err
}

// prepareLocal checks a run, and finds what it needs on this machine.
func prepareLocal(question *asked, options localOptions, log io.Writer) (*localRun, error) {
	frozen, err := question.freeze()
	if err != nil {
		return nil, err
	}
	for _, warning := range experiment.EnvironmentWarnings(frozen.Plan.Requires.Require) {
		fmt.Fprintln(log, "warning: "+warning)
	}
	binDirs, err := binFolders(options.binDirs)
	if err != nil {
		return nil, err
	}
	armPrograms, err := local.ParseArmPrograms(options.arms)
	if err != nil {
		return nil, &exitCode{exitUsage, err}
	}
	runner, err := findRunner(binDirs)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(cmp.Or(options.out, filepath.Join("assay-ledger", frozen.Run.Name+"-"+time.Now().Format("20060102-150405"))))
	if err != nil {
		return nil, err
	}
	cpus := 0
	if options.pin {
		cpus = int(frozen.Plan.Placement.CPUs)
	}
	return &localRun{
		experiment: frozen, programs: local.Programs{Folders: binDirs, Arms: armPrograms},
		executor: &local.Executor{Runner: runner, Folder: folder, Name: "local-" + frozen.Run.UID[:8], CPUs: cpus, Log: log},
	}, nil
}

// printResult prints what a run on this machine found, with a summary below its verdict, and where it lies.
func (r *localRun) printResult(result *analysis.Analysis, form, summary string, stdout io.Writer) error {
	done, err := printStructured(stdout, form, result)
	if !done {
		err = r.printFound(result, summary, stdout)
	}
	return errors.Join(err, verdictError(assayv1alpha1.Verdict(result.Verdict), len(r.experiment.Plan.Gates) > 0))
}

// printFound prints it for people.
func (r *localRun) printFound(result *analysis.Analysis, summary string, stdout io.Writer) error {
	fmt.Fprintln(stdout)
	if err := report.Terminal(stdout, r.experiment, result); err != nil {
		return err
	}
	fmt.Fprint(stdout, summary)
	if r.note != "" {
		fmt.Fprintf(stdout, "note: %s\n", r.note)
	}
	_, err := fmt.Fprintf(stdout, "\nreport  %s\nledger  %s\n", r.file(ledger.HTMLKey(result.Wave)), r.executor.Folder)
	return err
}

// file is where an object of the ledger lies.
func (r *localRun) file(key string) string {
	return filepath.Join(r.executor.Folder, filepath.FromSlash(key))
}

// findRunner finds what executes trials: it is built beside this program.
func findRunner(folders []string) (string, error) {
	const name = "assay-runner"
	if err := local.Supported(); err != nil {
		return "", &exitCode{exitUsage, err}
	}
	path, err := local.FindProgram(name, folders)
	if err != nil {
		return "", &exitCode{exitUsage, fmt.Errorf("%s, which executes the trials, is neither in %s nor in PATH: put it beside %s, or name its "+
			"folder with --bin-dir (in a checkout make build makes both)",
			name, strings.Join(folders, ", "), program)}
	}
	return path, nil
}

// asked is a run as it was asked for, with its template.
type asked struct {
	run      *assayv1alpha1.BenchmarkRun
	template *assayv1alpha1.BenchmarkTemplateSpec
	file     string
	// explain shows where what is wrong with the run was written.
	explain func(error) error
}

// freeze checks the run. What is wrong with it is wrong input.
func (a *asked) freeze() (*experiment.Experiment, error) {
	identity := record.Run{Namespace: "local", Name: a.run.Name, UID: uuid.NewString()}
	frozen, err := experiment.Freeze(identity, a.run.Spec, *a.template)
	if err != nil {
		return nil, &exitCode{exitUsage, a.explain(err)}
	}
	return frozen, nil
}

// with is the same of another run.
func (a *asked) with(run *assayv1alpha1.BenchmarkRun) *asked {
	out := *a
	out.run = run
	return &out
}

// wrong is what keeps the run in the file from being taken.
func (a *asked) wrong(text string, args ...any) error {
	return &exitCode{exitUsage, fmt.Errorf("BenchmarkRun %s in %s: "+text, append([]any{a.run.Name, a.file}, args...)...)}
}

// readRun reads the run in a file with its template: from the file, from other files, or from the cluster if there is one.
func readRun(ctx context.Context, connection *genericclioptions.ConfigFlags, file string, templates []string) (*asked, error) {
	set, err := readOne(file, templates...)
	if err != nil {
		return nil, err
	}
	if len(templates) == 0 {
		if err := set.AddShipped(); err != nil {
			return nil, err
		}
	}
	run := &set.Runs[0]
	// A ledger is of a run with a name, and nobody but the API server generates one.
	if run.Name = cmp.Or(run.Name, strings.TrimRight(run.GenerateName, "-.")); run.Name == "" {
		return nil, &exitCode{exitUsage, fmt.Errorf("%s: metadata.name is missing: write one", file)}
	}
	out := &asked{run: run, file: file, explain: func(err error) error { return set.Explain(run, err) }}
	if out.template, err = set.Template(run); err == nil {
		return out, nil
	}
	if run.Spec.TemplateRef != nil && run.Spec.Template == nil {
		if existing, clusterErr := templateOnCluster(ctx, connection, run); clusterErr == nil {
			out.template = existing
			return out, nil
		}
	}
	return nil, &exitCode{exitUsage, err}
}

func binFolders(given []string) ([]string, error) {
	if len(given) > 0 {
		return given, nil
	}
	self, err := os.Executable()
	return []string{filepath.Dir(self)}, err
}

// startLedger makes the run's ledger with its experiment. A folder that holds another run's is left alone.
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
		err = &exitCode{exitUsage, fmt.Errorf("folder %s holds the ledger of another run: name another with --out", folder)}
	}
	return s, err
}
