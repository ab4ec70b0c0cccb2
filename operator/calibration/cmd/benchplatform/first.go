package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
)

func newFirstCommand() *cobra.Command {
	times := 5
	command := &cobra.Command{
		Use: "first DIST", Short: "Time to install a release's command from its files, and from there to a first verdict",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			figures, err := firstMinute(cmd.Context(), args[0], times, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return calibrate.Print(cmd.OutOrStdout(), figures...)
		},
	}
	command.Flags().IntVar(&times, "times", times, "number of repetitions")
	return command
}

// firstMinute repeats the steps of a new user: install the command with the release's script, and compare two programs as in the README.
func firstMinute(ctx context.Context, dist string, times int, log io.Writer) ([]calibrate.Figure, error) {
	if times < 1 {
		return nil, fmt.Errorf("invalid --times %d: at least 1 is needed", times)
	}
	dist, err := filepath.Abs(dist)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "assay-first-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	text := filepath.Join(folder, "numbers.txt")
	if err := os.WriteFile(text, numbers(), 0o644); err != nil {
		return nil, err
	}
	var installs, verdicts []float64
	for i := range times {
		prefix := filepath.Join(folder, strconv.Itoa(i))
		install := exec.CommandContext(ctx, "sh", filepath.Join(dist, "install.sh"))
		install.Env = append(os.Environ(), "PREFIX="+prefix, "ASSAY_DOWNLOADS="+dist)
		seconds, err := timed(install, log)
		if err != nil {
			return nil, fmt.Errorf("install the release in %s (make release writes one): %w", dist, err)
		}
		installs = append(installs, seconds)

		question := exec.CommandContext(ctx, filepath.Join(prefix, "bin", "assay"), "bench", "gzip -6 -c "+text, "gzip -9 -c "+text)
		question.Dir = folder
		if seconds, err = timed(question, log); err != nil {
			return nil, fmt.Errorf("the first comparison has no verdict: %w", err)
		}
		verdicts = append(verdicts, seconds)
	}
	return []calibrate.Figure{
		calibrate.MedianFigure("first.install_s", "s", installs, "from the files of a release on this machine's disk"),
		calibrate.MedianFigure("first.verdict_s", "s", verdicts, "assay bench of two programs without options"),
	}, nil
}

// numbers returns the output of `seq 300000`, whose compression takes a measurable time.
func numbers() []byte {
	var text bytes.Buffer
	for i := 1; i <= 300000; i++ {
		fmt.Fprintln(&text, i)
	}
	return text.Bytes()
}

// timed runs a command and returns its duration in seconds.
func timed(command *exec.Cmd, log io.Writer) (float64, error) {
	command.Stdout, command.Stderr = log, log
	start := time.Now()
	err := command.Run()
	return time.Since(start).Seconds(), err
}

func newDemoCommand() *cobra.Command {
	var cold, warm string
	command := &cobra.Command{
		Use: "demo --cold LOG --warm LOG", Short: "Times of make demo and its parts, from its output", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var figures []calibrate.Figure
			for _, one := range []struct {
				file string
				read func([]part) []calibrate.Figure
			}{{cold, coldFigures}, {warm, warmFigures}} {
				log, err := os.ReadFile(one.file)
				if err != nil {
					return err
				}
				parts, err := readDemo(string(log))
				if err != nil {
					return fmt.Errorf("invalid log %s: %w", one.file, err)
				}
				figures = append(figures, one.read(parts)...)
			}
			return calibrate.Print(cmd.OutOrStdout(), figures...)
		},
	}
	command.Flags().StringVar(&cold, "cold", "", "output of a demo without compiled components")
	command.Flags().StringVar(&warm, "warm", "", "output of the next demo")
	_ = command.MarkFlagRequired("cold")
	_ = command.MarkFlagRequired("warm")
	return command
}

// part is a step of the demo, or a component compiled in a step. The last entry marks the end, and has no duration.
type part struct {
	name      string
	component bool
	seconds   float64
	// at is the start of the step, in seconds since the start of the demo.
	at float64
}

var (
	// Printed by hack/lib.sh at the start of each step.
	stepLine = regexp.MustCompile(`^== (.+?)(?: \([^()]*\))?  \((\d+):(\d\d) elapsed\)$`)
	// Printed by bin/cluster after compiling a component.
	componentLine = regexp.MustCompile(`^build (\S+) +\S+ +(\d+) s$`)
)

// readDemo parses the output of a complete demo.
func readDemo(log string) ([]part, error) {
	var steps, components []part
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		if match := stepLine.FindStringSubmatch(line); match != nil {
			minutes, _ := strconv.Atoi(match[2])
			seconds, _ := strconv.Atoi(match[3])
			at := float64(60*minutes + seconds)
			if last := len(steps) - 1; last >= 0 {
				steps[last].seconds = at - steps[last].at
			}
			steps = append(steps, part{name: match[1], at: at})
		} else if match := componentLine.FindStringSubmatch(line); match != nil {
			seconds, _ := strconv.ParseFloat(match[2], 64)
			components = append(components, part{name: match[1], component: true, seconds: seconds})
		}
	}
	if len(steps) < 2 || steps[len(steps)-1].name != "Done" {
		return nil, errors.New("the demo did not complete")
	}
	return append(components, steps...), nil
}

func coldFigures(parts []part) []calibrate.Figure {
	var figures []calibrate.Figure
	for _, one := range parts[:len(parts)-1] {
		name, note := "demo.cold_min."+slug(one.name), "a step"
		if one.component {
			name, note = "demo.cold_min.build-"+slug(one.name), "a component, within a step"
		}
		figures = append(figures, calibrate.MedianFigure(name, "min", []float64{one.seconds / 60}, note))
	}
	whole := []float64{parts[len(parts)-1].at / 60}
	return append(figures, calibrate.MedianFigure("demo.cold_min", "min", whole, "nothing compiled; modules and crates downloaded"))
}

func warmFigures(parts []part) []calibrate.Figure {
	whole := []float64{parts[len(parts)-1].at}
	return []calibrate.Figure{calibrate.MedianFigure("demo.warm_s", "s", whole, "everything compiled, no cluster running")}
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

func slug(name string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
}
