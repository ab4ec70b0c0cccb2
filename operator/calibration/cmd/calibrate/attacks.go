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

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/experiment"
)

const (
	// victimSeconds and hostileSeconds are the reported times; the true ratio is twenty. Constant values may equal one step of a clock,
	// for which only differences above a factor of four are decided.
	victimSeconds, hostileSeconds = 0.00102347, 0.0204691
	// unprivileged is the user ID of both attacker and victim, because root could modify anything.
	unprivileged = 65532
	// patience is the timeout of a run. A hanging run counts as a successful attack.
	patience = 2 * time.Minute
)

// attackedRun compares a program that reports its duration with an attacking one that reports twenty times as much. Words in capitals are
// placeholders.
const attackedRun = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: attacked}
spec:
  template:
    image: hostile
    command: [assay-hostile, --attempts=FOLDER/ledger/attempts, --socket=FOLDER/ledger/socket, --program=FOLDER/victim/assay-hostile, --output=result.json]
    parity: None
    output: {format: AssayResult, path: result.json}
    parameters: [{name: value, type: Number}, {name: attack}]
    metrics: [{name: latency, unit: s, direction: LowerIsBetter, statistic: value}]
  arms:
  - {name: victim, baseline: true, parameters: {value: "VICTIM", attack: none}}
  - {name: hostile, parameters: {value: "HOSTILE", attack: ATTACK}}
  design: {blocks: {min: 3, max: 3}}
  environment: {onViolation: Warn}
  gates: [{name: not-slower, metric: latency, op: RatioAtMost, bound: "1.05"}]
`

func newAttacksCommand() *cobra.Command {
	return newCountCommand("attacks", "Print how many attacks of a hostile program change an attempt or a verdict, as a JSON line",
		"assay-hostile", "attacks changed an attempt or the verdict", attackAll)
}

// newCountCommand returns a command that prints a count as a figure and fails if it is not 0. It needs a program beside assay and
// assay-runner; of describes the counted events in the error.
func newCountCommand(use, short, program, of string,
	count func(ctx context.Context, binDir string, log io.Writer) (calibrate.Figure, error)) *cobra.Command {
	var binDir string
	command := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure, err := count(cmd.Context(), binDir, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := figure.Write(cmd.OutOrStdout()); err != nil || figure.Value == 0 {
				return err
			}
			return fmt.Errorf("%g of %d %s, and none may", figure.Value, figure.Samples, of)
		},
	}
	command.Flags().StringVar(&binDir, "bin-dir", "bin", "folder with assay, assay-runner and "+program)
	return command
}

// attackAll executes every attack once, after a run without an attack, which must find the truth.
func attackAll(ctx context.Context, binDir string, log io.Writer) (calibrate.Figure, error) {
	figure := calibrate.Figure{Figure: "verdict.forged.accepted", Unit: "attacks"}
	list, err := exec.CommandContext(ctx, filepath.Join(binDir, "assay-hostile"), "--value=0", "--list").Output()
	if err != nil {
		return figure, fmt.Errorf("list the attacks: %w", err)
	}
	names := strings.Fields(string(list))
	for _, name := range append([]string{"none"}, names...) {
		what, err := attackOnce(ctx, binDir, name)
		if err != nil {
			return figure, fmt.Errorf("attack %s: %w", name, err)
		}
		fmt.Fprintf(log, "%-16s %s\n", name, what)
		switch {
		case name == "none" && what != untouched:
			return figure, fmt.Errorf("the run without an attack failed: %s", what)
		case strings.HasPrefix(what, accepted):
			figure.Value++
		}
	}
	figure.Samples = len(names)
	figure.Low, figure.High = figure.Value, figure.Value
	return figure, nil
}

const (
	untouched = "the truth"
	accepted  = "accepted: "
)

// attackOnce returns the outcome of a run whose candidate attacks.
func attackOnce(ctx context.Context, binDir, name string) (string, error) {
	folder, err := os.MkdirTemp("", "assay-attack-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	text := strings.NewReplacer("FOLDER", folder, "ATTACK", name, "VICTIM", fmt.Sprint(victimSeconds), "HOSTILE",
		fmt.Sprint(hostileSeconds)).Replace(attackedRun)
	if err := errors.Join(
		os.WriteFile(filepath.Join(folder, "run.yaml"), []byte(text), 0o644),
		place(binDir, folder, "assay"), place(binDir, folder, "assay-runner"),
		place(binDir, filepath.Join(folder, "victim"), "assay-hostile"), place(binDir, filepath.Join(folder, "attacker"), "assay-hostile"),
	); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(folder, "assay"), "run", "--local", "run.yaml", "--bin-dir", folder, "--out",
		filepath.Join(folder, "ledger"),
		"--arm-binary", "victim="+filepath.Join(folder, "victim", "assay-hostile"), "--arm-binary",
		"hostile="+filepath.Join(folder, "attacker", "assay-hostile"))
	command.Dir = folder
	if os.Getuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
		if err := giveAway(folder); err != nil {
			return "", err
		}
	}
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return accepted + "the run hangs", nil
	}
	judged, readErr := judgement(ctx, filepath.Join(folder, "ledger"))
	if readErr != nil {
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		return fmt.Sprintf("refused: %s (%v)", lines[len(lines)-1], err), nil
	}
	return judged, nil
}

func place(from, to, name string) error {
	raw, err := os.ReadFile(filepath.Join(from, name))
	return errors.Join(err, os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, name), raw, 0o755))
}

func giveAway(folder string) error {
	return filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, unprivileged, unprivileged))
	})
}

// judgement compares a run's ledger with the truth. A missing or rejected attempt does not count as a forgery.
func judgement(ctx context.Context, folder string) (string, error) {
	result, attempts, err := readJudged(ctx, folder)
	if err != nil {
		return "", err
	}
	for _, attempt := range attempts {
		if attempt.Result == nil {
			continue
		}
		truth := victimSeconds
		if attempt.Arm == "hostile" {
			truth = hostileSeconds
		}
		if value := attempt.Result.Metrics["latency"].Value; value == nil || *value != truth {
			return accepted + "attempt " + attempt.ID + " is forged", nil
		}
	}
	switch result.Verdict {
	case experiment.VerdictNoGo:
		return untouched, nil
	case experiment.VerdictGo:
		return accepted + "the verdict is Go", nil
	default:
		return fmt.Sprintf("%s: %d failed, %d missing, %d invalid of %d trials", result.Verdict, result.Trials.Failed,
			result.Trials.Missing, result.Trials.Invalid, result.Trials.Planned), nil
	}
}
