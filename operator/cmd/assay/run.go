package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/local"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
)

type localOptions struct {
	templates []string
	binDirs   []string
	out       string
	pin       bool
}

func newRunCommand() *cobra.Command {
	var options localOptions
	var here bool
	command := &cobra.Command{
		Use:   "run --local FILE",
		Short: "Run the experiment in FILE on this machine and print its verdict",
		Long: "Run the experiment in FILE on this machine: the same plan, runner, analysis and report as on a cluster, with a folder as the ledger.\n\n" +
			"To run it on a cluster, use kubectl apply -f FILE and assay watch NAME.",
		Example: "  assay run --local workflows/studies/pir-batch-scan/run.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !here {
				return &exitCode{exitUsage, errors.New("assay run works on this machine only: add --local, or use kubectl apply -f " + args[0] + " and assay watch NAME")}
			}
			return runLocal(cmd.Context(), args[0], options, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.BoolVar(&here, "local", false, "run on this machine, without a cluster")
	flags.StringArrayVar(&options.templates, "templates", nil, "file or folder with BenchmarkTemplates; may be repeated (default: charts/assay/files/benchmarktemplates, if there)")
	flags.StringArrayVar(&options.binDirs, "bin-dir", nil, "folder with assay-runner and the workloads' programs; may be repeated (default: the folder of assay itself)")
	flags.StringVar(&options.out, "out", "", "folder for the ledger (default: assay-ledger/NAME-TIME)")
	flags.BoolVar(&options.pin, "pin", true, "pin blocks to as many CPUs as spec.placement.cpus says")
	return command
}

func runLocal(ctx context.Context, file string, options localOptions, stdout, stderr io.Writer) error {
	run, template, err := readRun(file, options.templates)
	if err != nil {
		return &exitCode{exitUsage, err}
	}
	started := time.Now()
	identity := record.Run{Namespace: "local", Name: run.Name, UID: uuid.NewString()}
	frozen, err := experiment.Freeze(identity, run.Spec, *template)
	if err != nil {
		return &exitCode{exitUsage, fmt.Errorf("BenchmarkRun %s in %s: %w", run.Name, file, err)}
	}

	binDirs, err := binFolders(options.binDirs)
	if err != nil {
		return err
	}
	runner, err := local.FindProgram("assay-runner", binDirs)
	if err != nil {
		return &exitCode{exitUsage, err}
	}
	folder := options.out
	if folder == "" {
		folder = filepath.Join("assay-ledger", run.Name+"-"+started.Format("20060102-150405"))
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	cpus := 0
	if options.pin {
		cpus = int(frozen.Spec.Placement.CPUs)
	}
	here := &localRun{
		experiment: frozen, binDirs: binDirs, log: stderr,
		executor: &local.Executor{Runner: runner, Folder: folder, Name: "local-" + identity.UID[:8], CPUs: cpus, Log: stderr},
	}
	result, err := here.run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	if err := report.Terminal(stdout, frozen, result); err != nil {
		return err
	}
	if here.note != "" {
		fmt.Fprintf(stdout, "note: %s\n", here.note)
	}
	fmt.Fprintf(stdout, "\nledger  %s\nreport  %s\ntable   %s\n", folder,
		filepath.Join(folder, filepath.FromSlash(ledger.ReportKey(result.Wave))), filepath.Join(folder, filepath.FromSlash(ledger.TableKey(result.Wave))))
	return verdictError(result.Verdict, len(frozen.Spec.Gates) > 0)
}

// verdictError is nil when the run answered its question.
func verdictError(verdict assayv1alpha1.Verdict, hasGates bool) error {
	switch {
	case verdict == assayv1alpha1.VerdictGo || verdict == assayv1alpha1.VerdictNoGo:
		return nil
	case verdict == "" && !hasGates:
		return nil
	case verdict == "":
		return &exitCode{exitInconclusive, errors.New("the run has gates and reached no verdict")}
	default:
		return &exitCode{exitInconclusive, fmt.Errorf("the verdict is %s", verdict)}
	}
}

func readRun(file string, templates []string) (*assayv1alpha1.BenchmarkRun, *assayv1alpha1.BenchmarkTemplateSpec, error) {
	if len(templates) == 0 {
		if _, err := os.Stat("charts/assay/files/benchmarktemplates"); err == nil {
			templates = []string{"charts/assay/files/benchmarktemplates"}
		}
	}
	set, err := manifest.Read(append([]string{file}, templates...)...)
	if err != nil {
		return nil, nil, err
	}
	if len(set.Runs) != 1 {
		return nil, nil, fmt.Errorf("%s holds %d BenchmarkRuns: it must hold one", file, len(set.Runs))
	}
	template, err := set.Template(&set.Runs[0])
	return &set.Runs[0], template, err
}

func binFolders(given []string) ([]string, error) {
	if len(given) > 0 {
		return given, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{filepath.Dir(self)}, nil
}

// startLedger makes the run's ledger with its experiment. A folder that holds another run's is left alone.
func startLedger(ctx context.Context, folder string, frozen *experiment.Experiment) (ledger.Store, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	store, err := ledger.Open(ctx, ledger.FolderURL(folder), ledger.Options{})
	if err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(frozen, "", " ")
	if err != nil {
		return nil, err
	}
	if err := store.Create(ctx, ledger.ExperimentKey, append(raw, '\n')); errors.Is(err, ledger.ErrExists) {
		return nil, &exitCode{exitUsage, fmt.Errorf("folder %s holds the ledger of another run: name another with --out", folder)}
	} else if err != nil {
		return nil, err
	}
	return store, nil
}

// judge analyses the ledger up to a wave and writes analysis, report and table beside the attempts.
func judge(ctx context.Context, store ledger.Store, wave int) (*analysis.Analysis, error) {
	result, err := analyzeLedger(ctx, store, wave)
	if err != nil {
		return nil, err
	}
	return result.analysis, result.write(ctx, store)
}
