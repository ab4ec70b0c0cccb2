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

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// KilledFigure counts the verdicts Go of candidates of which a process is killed in every trial, or whose baseline is killed.
const KilledFigure = "verdict.killed.false_go"

// killedRun compares a program with one that reports a twentieth of its time and is killed. Words in capitals are placeholders.
const killedRun = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: killed}
spec:
  template:
    image: killed
    command: [assay-killed]
    parity: None
    trialTimeout: TIMEOUT
    output: {format: AssayResult}
    parameters: [{name: value, type: Number}, {name: way}]
    metrics: [{name: latency, unit: s, direction: LowerIsBetter, statistic: value}]
  arms:
  - {name: old, baseline: true, parameters: {value: "0.0204691", way: OLD}}
  - {name: new, parameters: {value: "0.00102347", way: NEW}}
  design: {blocks: {min: 3, max: 3}}
  environment: {onViolation: Warn}
  gates: [{name: not-slower, metric: latency, op: RatioAtMost, bound: "1.05"}]
`

// killedTimeout is the time limit of a trial: above the second of CPU time of the ways cpu-limit.
const killedTimeout = "4s"

func newKilledCommand() *cobra.Command {
	return newCountCommand("killed", "Print how many runs with killed processes end Go, as a JSON line", "assay-killed",
		"runs with killed processes ended Go", killAll)
}

// killing is a way to be killed, and the runner under which it is tried.
type killing struct{ name, runner string }

// killAll tries every way to be killed, as the candidate and as the baseline, after a run without one, which must end Go.
func killAll(ctx context.Context, binDir string, log io.Writer) (calibrate.Figure, error) {
	figure := calibrate.Figure{Figure: KilledFigure, Unit: "runs"}
	folder, err := os.MkdirTemp("", "assay-killed-")
	if err != nil {
		return figure, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ways, cleanup, err := killings(ctx, binDir, folder, log)
	defer cleanup()
	if err != nil {
		return figure, err
	}
	for i, way := range append([]killing{{"none", filepath.Join(binDir, "assay-runner")}}, ways...) {
		for _, arm := range []string{"new", "old"} {
			what, ended, err := killOnce(ctx, binDir, filepath.Join(folder, fmt.Sprintf("%d-%s", i, arm)), way, arm)
			if err != nil {
				return figure, fmt.Errorf("%s of arm %s: %w", way.name, arm, err)
			}
			fmt.Fprintf(log, "%-18s %s  %s\n", way.name, arm, what)
			switch {
			case way.name == "none" && ended != experiment.VerdictGo:
				return figure, fmt.Errorf("the run without a killed process failed: %s", what)
			case way.name == "none":
			case ended == experiment.VerdictGo:
				figure.Value++
				figure.Samples++
			default:
				figure.Samples++
			}
		}
	}
	const fewest = 20
	if figure.Samples < fewest {
		return figure, fmt.Errorf("%d runs with killed processes; at least %d are needed", figure.Samples, fewest)
	}
	figure.Low, figure.High = figure.Value, figure.Value
	return figure, nil
}

// killings lists the ways that this machine permits, and prints the reason for each other one. Ways that need a limit of a cgroup get a
// runner that enters one.
func killings(ctx context.Context, binDir, folder string, log io.Writer) (out []killing, cleanup func(), err error) {
	var cgroups []string
	cleanup = func() {
		for _, cgroup := range cgroups {
			_ = os.Remove(cgroup)
		}
	}
	list, err := exec.CommandContext(ctx, filepath.Join(binDir, "assay-killed"), "--value=0", "--list").Output()
	if err != nil {
		return nil, cleanup, fmt.Errorf("list the ways to be killed: %w", err)
	}
	runner, err := filepath.Abs(filepath.Join(binDir, "assay-runner"))
	if err != nil {
		return nil, cleanup, err
	}
	runners := map[string]string{"nothing": runner}
	for line := range strings.Lines(string(list)) {
		name, needs, _ := strings.Cut(strings.TrimSpace(line), " ")
		if runners[needs] == "" {
			cgroup, cgroupErr := makeCgroup(needs)
			if cgroupErr != nil {
				fmt.Fprintf(log, "%-18s skipped: %v\n", name, cgroupErr)
				continue
			}
			cgroups = append(cgroups, cgroup)
			runners[needs] = filepath.Join(folder, needs, "assay-runner")
			script := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", cgroup, runner)
			makeErr := os.MkdirAll(filepath.Dir(runners[needs]), 0o755)
			if err := errors.Join(makeErr, os.WriteFile(runners[needs], []byte(script), 0o755)); err != nil {
				return nil, cleanup, err
			}
		}
		out = append(out, killing{name, runners[needs]})
	}
	return out, cleanup, nil
}

// killOnce returns the outcome of a run in which one arm is killed, in words, and its verdict. A killed trial that counts as a success is
// an error.
func killOnce(ctx context.Context, binDir, folder string, way killing, arm string) (string, experiment.Verdict, error) {
	ways := map[string]string{"old": "none", "new": "none"}
	ways[arm] = way.name
	text := strings.NewReplacer("TIMEOUT", killedTimeout, "OLD", ways["old"], "NEW", ways["new"]).Replace(killedRun)
	run := filepath.Join(folder, "run.yaml")
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(run, []byte(text), 0o644)); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(binDir, "assay"), "gate", "--local", run, "--out", filepath.Join(folder, "ledger"),
		"--bin-dir", filepath.Dir(way.runner), "--bin-dir", binDir)
	output, err := command.CombinedOutput()
	result, attempts, readErr := readJudged(ctx, filepath.Join(folder, "ledger"))
	if readErr != nil {
		return "", "", fmt.Errorf("%w: %s", errors.Join(readErr, err), output)
	}
	if passed := err == nil; passed != (result.Verdict == experiment.VerdictGo) {
		return "", "", fmt.Errorf("the verdict is %s, and whether the gate passed is %v: %s", result.Verdict, passed, output)
	}
	first := ""
	for _, attempt := range attempts {
		if attempt.Arm != arm || way.name == "none" {
			continue
		}
		if attempt.Outcome == record.Succeeded {
			return "", "", fmt.Errorf("trial %s succeeded", attempt.Trial)
		}
		if first == "" {
			first = attempt.Message
		}
	}
	return fmt.Sprintf("%-12s %s", result.Verdict, first), result.Verdict, nil
}

// memoryLimit is above the needs of the runner and below the allocation of assay-killed, in bytes; pidLimit is in processes.
const memoryLimit, pidLimit = "268435456", "60"

// makeCgroup makes a cgroup with a limit of a controller, memory or pids, of version 1 or 2, and returns its folder.
func makeCgroup(controller string) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	point, v2 := "", false
	for line := range strings.Lines(string(mounts)) {
		words := strings.Fields(line)
		switch {
		case len(words) < 4:
		case words[2] == "cgroup" && strings.Contains(","+words[3]+",", ","+controller+","):
			point, v2 = words[1], false
		case words[2] == "cgroup2" && point == "":
			enabled, _ := os.ReadFile(filepath.Join(words[1], "cgroup.subtree_control"))
			if strings.Contains(" "+strings.TrimSpace(string(enabled))+" ", " "+controller+" ") {
				point, v2 = words[1], true
			}
		}
	}
	if point == "" {
		return "", fmt.Errorf("no cgroup hierarchy has the controller %s", controller)
	}
	folder := filepath.Join(point, fmt.Sprintf("assay-killed-%s-%d", controller, os.Getpid()))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	type file struct {
		name, value string
		optional    bool
	}
	files := []file{{"pids.max", pidLimit, false}}
	switch {
	case controller == "memory" && v2:
		files = []file{{"memory.max", memoryLimit, false}, {"memory.swap.max", "0", true}}
	case controller == "memory":
		files = []file{{"memory.limit_in_bytes", memoryLimit, false}, {"memory.memsw.limit_in_bytes", memoryLimit, true}}
	}
	for _, set := range files {
		if err := os.WriteFile(filepath.Join(folder, set.name), []byte(set.value), 0o644); err != nil && !set.optional {
			return "", errors.Join(err, os.Remove(folder))
		}
	}
	return folder, nil
}
