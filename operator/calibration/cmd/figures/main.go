// Command figures measures the figures of a kernel. It executes the runs of a file with `assay run --local`, and prints the figures from
// their analyses, one line of JSON each.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/figures"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "figures: "+err.Error())
		os.Exit(1)
	}
}

// options contains paths.
type options struct {
	binDir, out string
	only        []string
	// publish is the document whose table of figures is updated.
	publish string
}

func newCommand() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "figures FILE",
		Short: "Measure the figures of a kernel, one line of JSON each",
		Long: "Measure the figures that FILE names. Each of its runs is executed on this machine by assay run --local, so nothing else may run " +
			"meanwhile. A figure without an estimate is named on standard error, and the exit code is 1.",
		Example:       "  figures workflows/figures/pir.yaml",
		Args:          cobra.ExactArgs(1),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.measure(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.binDir, "bin-dir", "bin", "folder with assay, assay-runner and the kernels")
	flags.StringVar(&o.out, "out", filepath.Join("out", "figures"), "folder for the ledgers, kept")
	flags.StringSliceVar(&o.only, "only", nil, "names of run files to execute, such as batch.yaml (default: all)")
	flags.StringVar(&o.publish, "publish", "", "also put the figures into this document, between its markers")
	return command
}

func (o *options) measure(ctx context.Context, file string, stdout, stderr io.Writer) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	set, err := figures.Parse(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	runs, err := o.asked(file, set)
	if err != nil {
		return err
	}
	if o.publish != "" { // Detect a document without markers before an hour of measuring.
		if err := o.put(file, nil); err != nil {
			return err
		}
	}
	var missing []string
	for _, run := range runs {
		path := filepath.Join(filepath.Dir(file), run.File)
		name := strings.ReplaceAll(strings.TrimSuffix(run.File, ".yaml"), "/", "-")
		folder := filepath.Join(o.out, name+"-"+time.Now().UTC().Format("20060102-150405"))
		if err := o.execute(ctx, path, folder, stderr); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		exp, result, err := judged(ctx, folder)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := run.Check(exp); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		// Write at once, so that a failure of a later run does not lose figures.
		measured, without := run.Of(exp, result)
		var rows []figures.Measured
		for _, figure := range measured {
			if err := figure.Write(stdout); err != nil {
				return err
			}
			rows = append(rows, figures.Measured{Figure: figure, When: time.Now().UTC().Format(time.DateOnly), Where: figures.Machine(result)})
		}
		missing = append(missing, without...)
		if o.publish != "" {
			if err := o.put(file, rows); err != nil {
				return err
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no estimate with an interval of %s: see the reports below %s", strings.Join(missing, ", "), o.out)
	}
	return nil
}

// put updates the table in the document. Rows of runs that were not executed are unchanged.
func (o *options) put(file string, rows []figures.Measured) error {
	raw, err := os.ReadFile(o.publish)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".yaml")
	document, err := figures.Publish(string(raw), name, rows)
	if err != nil {
		return fmt.Errorf("--publish %s: %w", o.publish, err)
	}
	data, err := figures.Data(document, name)
	if err != nil {
		return fmt.Errorf("--publish %s: %w", o.publish, err)
	}
	// The data come first, because make generate makes the table of the document from them.
	stored := filepath.Join(filepath.Dir(file), figures.Published, name+".csv")
	if err := os.MkdirAll(filepath.Dir(stored), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(stored, data, 0o644); err != nil {
		return err
	}
	return os.WriteFile(o.publish, []byte(document), 0o644)
}

// asked returns the runs of a set that are to be executed.
func (o *options) asked(file string, set *figures.Set) ([]figures.Run, error) {
	if len(o.only) == 0 {
		return set.Runs, nil
	}
	var out []figures.Run
	for _, name := range o.only {
		before := len(out)
		for _, run := range set.Runs {
			if filepath.Base(run.File) == name {
				out = append(out, run)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("invalid --only %q: %s names no run file of that name", name, file)
		}
	}
	return out, nil
}

// execute runs an experiment with the public command. Its output goes to standard error.
func (o *options) execute(ctx context.Context, file, folder string, stderr io.Writer) error {
	command := exec.CommandContext(ctx, filepath.Join(o.binDir, "assay"), "run", "--local", file, "--bin-dir", o.binDir, "--out", folder)
	command.Stdout, command.Stderr = stderr, stderr
	// On SIGINT the run ends its trials and analyzes the present ones.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	return command.Run()
}

// judged reads the run in a folder with its newest analysis.
func judged(ctx context.Context, folder string) (*experiment.Experiment, *analysis.Analysis, error) {
	store, err := store.OpenFolder(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	exp, result, err := ledger.ReadJudged(ctx, store)
	if err == nil && result == nil {
		err = fmt.Errorf("%s holds no analysis", folder)
	}
	return exp, result, err
}
