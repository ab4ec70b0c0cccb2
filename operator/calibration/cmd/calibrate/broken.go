package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/outcome"
)

// brokenWay is a way in which no trial of an arm gives a result, by the program or by the kernel.
type brokenWay struct {
	name string
	// program replaces the shell, with this content; empty for the shell.
	program string
	// script is that of the shell.
	script string
	// table is set where the output is a table instead of a result.
	table bool
	// differs is set where the arm reports another thing than one that works. The two are then not compared, so that the run is Invalid.
	differs bool
}

const (
	goodResult = `{"schema": "assay.dev/result/v1alpha1", "workload": {"name": "w", "version": "1"}, ` +
		`"metrics": {"time": {"unit": "s", "value": 0.0012}}}`
	goodTable = `echo seconds; echo 0.0012`
)

// printing returns a script that prints a changed result.
func printing(old, new string) string {
	return "printf '%s' '" + strings.Replace(goodResult, old, new, 1) + "'"
}

// brokenWays are the ways to break an experiment, and to be killed.
func brokenWays() []brokenWay {
	out := []brokenWay{
		{name: "empty output", script: "true"},
		{name: "output on standard error", script: printing("", "") + " >&2"},
		{name: "text instead of a result", script: "echo it took 1 s"},
		{name: "result cut in the middle", script: "printf '%s' '" + goodResult[:60] + "'"},
		{name: "two results", script: printing("", "") + "; " + printing("", "")},
		{name: "wrong unit", script: printing(`"s"`, `"ms"`), differs: true},
		{name: "wrong metric", script: printing(`"time"`, `"latency"`), differs: true},
		{name: "negative time", script: printing("0.0012", "-0.0012")},
		{name: "number that is a text", script: printing("0.0012", `"fast"`)},
		{name: "number beyond meaning", script: printing("0.0012", "1e300")},
		{name: "too much output", script: "head -c 9000000 /dev/zero"},
		{name: "wrong column", script: "echo minutes; echo 1", table: true},
		{name: "no row", script: "echo seconds", table: true},
		{name: "text in the column", script: "echo seconds; echo fast", table: true},
		{name: "missing input", script: "exec cat /no/such/input"},
		{name: "missing program in the shell", script: "no-such-program"},
		{name: "invalid option", script: "exec ls --no-such-option"},
		{name: "another exit code", script: printing("", "") + "; exit 3"},
		{name: "missing interpreter", program: "#!/no/such/interpreter\n"},
		{name: "no program for this machine", program: "\x7fELF of another machine"},
	}
	for _, signal := range []string{"KILL", "SEGV", "ABRT", "SYS", "BUS", "FPE", "ILL", "TERM", "PIPE", "XCPU", "TRAP"} {
		out = append(out, brokenWay{name: "killed by SIG" + signal, script: "kill -" + signal + " $$; sleep 1"})
	}
	return append(out, brokenWay{name: "killed for the size of a file", script: "ulimit -f 0; exec dd if=/dev/zero of=file bs=65536 count=1"})
}

// brokenRun has two arms that run a script each.
const brokenRun = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: broken}
spec:
  template:
    image: localhost/none
    command: [$(program), -c, $(script)]
    parity: None
    output: {format: FORMAT}
    parameters: [{name: program}, {name: script}]
    metrics: [{name: time, unit: s, direction: LowerIsBetter, statistic: valueFROM}]
  arms:
  - {name: old, baseline: true, parameters: {program: OLDPROGRAM, script: OLDSCRIPT}}
  - {name: new, parameters: {program: NEWPROGRAM, script: NEWSCRIPT}}
  design: {blocks: {min: 3, max: 3}}
  placement: {cpus: 1, exclusive: None}
  environment: {onViolation: Warn}
  gates: [{name: not-slower, metric: time, op: RatioAtMost, bound: "1.05"}]
`

func newBrokenCommand() *cobra.Command {
	var binDir string
	command := &cobra.Command{
		Use: "broken", Short: "Print how many broken experiments end NoGo, as a JSON line", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure, err := breakAll(cmd.Context(), binDir, cmd.ErrOrStderr())
			return errors.Join(figure.Write(cmd.OutOrStdout()), err)
		},
	}
	command.Flags().StringVar(&binDir, "bin-dir", "bin", "folder with assay and assay-runner")
	return command
}

// breakAll breaks both arms, the baseline and the candidate in every way, and compares the outcome of assay gate with the table of
// outcomes. The figure counts the runs that are NoGo although the baseline cannot be measured.
func breakAll(ctx context.Context, binDir string, log io.Writer) (calibrate.Figure, error) {
	figure := calibrate.Figure{Figure: "verdict.broken.false_nogo", Unit: "runs"}
	binDir, err := filepath.Abs(binDir)
	if err != nil {
		return figure, err
	}
	var wrong []error
	for _, way := range brokenWays() {
		for _, arms := range []string{"old new", "old", "new"} {
			answer, err := breakOnce(ctx, binDir, way, arms)
			if err != nil {
				return figure, fmt.Errorf("%s of %s: %w", way.name, arms, err)
			}
			fmt.Fprintf(log, "%-32s %-8s %d %s: %s\n", way.name, arms, answer.ExitCode, answer.Verdict, answer.Reason)
			want, verdict := outcome.CodeUndecided, experiment.VerdictInvalid
			if arms == "new" && !way.differs {
				want, verdict = outcome.CodeMissed, experiment.VerdictNoGo
			}
			if arms != "new" {
				figure.Samples++
				if answer.ExitCode == outcome.CodeMissed {
					figure.Value++
				}
			}
			if answer.ExitCode != want || string(answer.Verdict) != string(verdict) {
				wrong = append(wrong, fmt.Errorf("%s of %s: exit code %d and verdict %s, want %d and %s: %s", way.name, arms, answer.ExitCode,
					answer.Verdict, want, verdict, answer.Reason))
			}
		}
	}
	figure.Low, figure.High = figure.Value, figure.Value
	return figure, errors.Join(wrong...)
}

// breakOnce returns the answer of assay gate for a run whose named arms are broken.
func breakOnce(ctx context.Context, binDir string, way brokenWay, arms string) (*cli.GateAnswer, error) {
	folder, err := os.MkdirTemp("", "assay-broken-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program := "/bin/sh"
	if way.program != "" {
		program = filepath.Join(folder, "program")
		if err := os.WriteFile(program, []byte(way.program), 0o755); err != nil {
			return nil, err
		}
	}
	good, format, from := printing("", ""), "AssayResult", ""
	if way.table {
		good, format, from = goodTable, "CSV", ", from: {field: seconds, unit: s}"
	}
	replace := []string{"FORMAT", format, "FROM", from}
	for arm, prefix := range map[string]string{"old": "OLD", "new": "NEW"} {
		with, script := "/bin/sh", good
		if strings.Contains(arms, arm) {
			with, script = program, way.script
		}
		replace = append(replace, prefix+"PROGRAM", strconv.Quote(with), prefix+"SCRIPT", strconv.Quote(script))
	}
	file, save := filepath.Join(folder, "run.yaml"), filepath.Join(folder, "gate.json")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(replace...).Replace(brokenRun)), 0o600); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(binDir, "assay"), "gate", "--local", file, "--bin-dir", binDir, "--save", save, "--out",
		filepath.Join(folder, "ledger"))
	command.Dir = folder
	output, runErr := command.CombinedOutput()
	raw, err := os.ReadFile(save)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %s", runErr, err, output)
	}
	answer := &cli.GateAnswer{}
	if err := json.Unmarshal(raw, answer); err != nil {
		return nil, err
	}
	if code := command.ProcessState.ExitCode(); code != answer.ExitCode {
		return nil, fmt.Errorf("the process exited with %d and its answer has %d: %s", code, answer.ExitCode, output)
	}
	return answer, nil
}
