package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/operator/calibration/studies/refresh"
	"assay.dev/assay/operator/calibration/studies/state"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/store"
)

// localRuns are the runs of the studies that are measured on this machine, with the state of their results.
func localRuns(ctx context.Context, root, bin string) ([]refresh.Run, error) {
	files, err := filepath.Glob(filepath.Join(root, "workflows", "studies", "*", "run*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no run of a study below %s (%w)", root, err)
	}
	results, err := state.ReadResults(ctx, root, bin)
	if err != nil {
		return nil, err
	}
	published := map[string]state.Result{}
	for _, result := range results {
		published[result.Folder] = result
	}
	var out []refresh.Run
	for _, file := range files {
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		read, err := manifest.Read(file)
		if err != nil {
			return nil, err
		}
		run := refresh.Run{File: relative}
		for i := range read.Runs {
			run.Limit += read.Runs[i].Spec.Budget.WallClock.Duration
		}
		folder := filepath.Join(filepath.Dir(relative), "results", "local", strings.TrimSuffix(filepath.Base(relative), ".yaml"))
		if result, ok := published[folder]; ok {
			run.Published, run.Stale, run.Measured, run.Took = true, result.Stale, result.Measured, result.Took
		}
		out = append(out, run)
	}
	return out, nil
}

// measurer measures runs with the programs of a checkout.
type measurer struct {
	root, bin string
	notes     io.Writer
	now       func() time.Time
}

// measure runs a whole measurement into a new folder of out/studies and reads its verdict. The verdicts' exit codes are no errors.
func (m measurer) measure(ctx context.Context, run refresh.Run) (refresh.Measurement, error) {
	study := filepath.Base(filepath.Dir(run.File))
	name := study + "-" + strings.TrimSuffix(filepath.Base(run.File), ".yaml") + "-" + m.now().UTC().Format("20060102-150405")
	folder, err := filepath.Abs(filepath.Join(m.root, "out", "studies", name))
	if err != nil {
		return refresh.Measurement{}, err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return refresh.Measurement{}, err
	}
	err = m.execute(ctx, filepath.Join(m.bin, "assay"), "run", "--local", run.File, "--bin-dir", m.bin, "--bin-dir", "out/builds",
		"--out", folder)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != cli.ExitInconclusive && exit.ExitCode() != cli.ExitNoGo) {
		return refresh.Measurement{}, err
	}
	opened, err := store.Open(ctx, store.FolderURL(folder), store.Options{})
	if err != nil {
		return refresh.Measurement{}, err
	}
	_, judged, err := ledger.ReadJudged(ctx, opened)
	if err != nil {
		return refresh.Measurement{}, err
	}
	if judged == nil {
		return refresh.Measurement{}, fmt.Errorf("the ledger %s has no analysis", folder)
	}
	return refresh.Measurement{Ledger: folder, Verdict: judged.Verdict}, nil
}

// publish stores a measurement beside its study and in the study's page.
func (m measurer) publish(ctx context.Context, run refresh.Run, measured refresh.Measurement) error {
	return m.execute(ctx, "hack/studies.sh", "--store", measured.Ledger, run.File)
}

// execute runs a program in the root, with its output on the notes. A canceled context terminates it.
func (m measurer) execute(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir, command.Stdout, command.Stderr = m.root, m.notes, m.notes
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute // A run ends its trial and releases its lease.
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", program, arguments[0], err)
	}
	return nil
}

// refreshStudies measures the runs that are not current within a budget, or lists them if nothing is to be measured.
func refreshStudies(ctx context.Context, root, bin string, budget time.Duration, list bool, to, notes io.Writer) error {
	runs, err := localRuns(ctx, root, bin)
	if err != nil {
		return err
	}
	if list {
		for _, run := range refresh.Stalest(runs) {
			fmt.Fprintln(to, run.File)
		}
		return nil
	}
	if bin == "" {
		return errors.New("invalid --bin-dir: it is empty; name the folder with the programs of the current build")
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	measure := measurer{root: root, bin: bin, notes: notes, now: time.Now}
	session := refresh.Session{
		Budget: budget, Now: time.Now, Measure: measure.measure, Publish: measure.publish,
		Note: func(format string, args ...any) { fmt.Fprintf(notes, "studies: "+format+"\n", args...) },
	}
	sum, err := session.Refresh(ctx, runs)
	fmt.Fprintf(to, "%d published, %d not valid, %d failed, %d left for another session, %d current\n", sum.Published, sum.Invalid, sum.Failed,
		sum.Left, sum.Current)
	return err
}
