// Command house compares a checkout with an earlier commit: whether its analyses decide the same, and whether its programs are as fast. It
// prints one JSON line for each figure.
//
// Usage: house -old CHECKOUT [-new CHECKOUT] [-rounds N] verdicts|ratios
//
// verdicts runs `assay analyze` of both commits over the ledger archives that each of them tracks, and compares analysis.json without its
// texts. ratios runs programs of both commits alternately, and prints the new time over the old.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// figure is the line that each make target prints for a figure. An interval that was not computed is absent.
type figure struct {
	Figure  string   `json:"figure"`
	Value   float64  `json:"value"`
	Unit    string   `json:"unit"`
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	Samples int      `json:"samples"`
}

// tree is a checkout and the folder of its programs.
type tree struct{ root, bin string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "house: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	old := flags.String("old", "", "checkout of the earlier commit, with its programs in bin/")
	now := flags.String("new", ".", "checkout of the later commit, with its programs in bin/")
	rounds := flags.Int("rounds", 10, "how often ratios runs each program")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	trees := [2]tree{{*old, filepath.Join(*old, "bin")}, {*now, filepath.Join(*now, "bin")}}
	print := json.NewEncoder(out).Encode
	switch flags.Arg(0) {
	case "verdicts":
		changed, compared, err := compareVerdicts(ctx, trees, log)
		if err != nil {
			return err
		}
		return print(figure{Figure: "house.verdicts_changed", Value: float64(changed), Unit: "analyses", Samples: compared})
	case "ratios":
		for _, program := range programs {
			measured, err := ratio(ctx, trees, program, *rounds, log)
			if err != nil {
				return err
			}
			if err := print(measured); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("invalid command %q: allowed are verdicts and ratios", flags.Arg(0))
}

// compareVerdicts analyzes the archives that both trees track under the same path, and returns how many analyses differ and how many were
// compared. A tree analyzes its own copy, since the format may have changed in between.
func compareVerdicts(ctx context.Context, trees [2]tree, log io.Writer) (changed, compared int, err error) {
	list, err := exec.CommandContext(ctx, "git", "-C", trees[0].root, "ls-files", "*.tar.zst").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("list archives of %s: %w", trees[0].root, err)
	}
	for _, name := range strings.Fields(string(list)) {
		var analyses [2]string
		for i, t := range trees {
			archive, err := find(t.root, name)
			if err != nil {
				return changed, compared, err
			}
			if analyses[i], err = analyze(ctx, t, archive); err != nil {
				return changed, compared, fmt.Errorf("%s in %s: %w", name, t.root, err)
			}
		}
		compared++
		if analyses[0] != analyses[1] {
			changed++
			fmt.Fprintf(log, "%s: the analyses differ\n%s", name, firstDifference(analyses[0], analyses[1]))
		}
	}
	if compared == 0 {
		return 0, 0, errors.New("no archive was compared: the earlier commit tracks no *.tar.zst")
	}
	return changed, compared, nil
}

// find returns the archive of a tree that has a path, or the only one of its name if its folder has moved.
func find(root, name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(root, name))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	list, err := exec.Command("git", "-C", root, "ls-files", "*/"+filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)).Output()
	if moved := strings.Fields(string(list)); err == nil && len(moved) == 1 && moved[0] != name {
		return filepath.Abs(filepath.Join(root, moved[0]))
	}
	return "", fmt.Errorf("archive %s is not in %s: an archive may be converted, not removed", name, root)
}

func analyze(ctx context.Context, t tree, archive string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(t.bin, "assay"), "analyze", "--ledger", "file://"+archive)
	command.Stderr = os.Stderr
	raw, err := command.Output()
	if err != nil {
		return "", err
	}
	var analysis any
	if err := json.Unmarshal(raw, &analysis); err != nil {
		return "", err
	}
	plain, err := json.MarshalIndent(withoutTexts(analysis), "", " ")
	return string(plain), err
}

// withoutTexts replaces each string of several words, so that a rewritten message is no difference. Keys, numbers, enumerations and the
// lengths of lists stay.
func withoutTexts(value any) any {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, " ") {
			return "a text"
		}
	case []any:
		for i := range v {
			v[i] = withoutTexts(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withoutTexts(v[key])
		}
	}
	return value
}

func firstDifference(a, b string) string {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(left), len(right)) {
		if left[i] != right[i] {
			from, to := max(0, i-3), i+1
			return fmt.Sprintf("  line %d\n  old %s\n  new %s\n", i+1, strings.Join(left[from:to], " "), strings.Join(right[from:to], " "))
		}
	}
	return fmt.Sprintf("  %d lines against %d\n", len(left), len(right))
}

// program measures itself and prints a figure.
type program struct {
	name, figure string
	command      []string
}

var programs = []program{
	{"house.trial_overhead_ratio", "trial.overhead_ms", []string{"assay-runner", "bench"}},
	{"house.analyze_100k_ratio", "analyze.100k_attempts_s", []string{"calibrate", "figures", "--only", "analyze.100k_attempts_s"}},
	{"house.plan_ratio", "platform.plan_10k_ms", []string{"benchplatform", "pure"}},
	{"house.reconcile_ratio", "platform.decide_1000_waiting_s_per_10s", []string{"benchplatform", "pure"}},
}

// ratio runs a program of both trees alternately and returns the geometric mean of the paired ratios, new over old, with a 95 % interval
// of Student's t distribution on the logarithms.
func ratio(ctx context.Context, trees [2]tree, p program, rounds int, log io.Writer) (figure, error) {
	var logarithms []float64
	for round := range rounds {
		var values [2]float64
		for i := range trees {
			which := (i + round) % 2 // Each order in turn, so that drift cancels.
			value, err := measure(ctx, trees[which], p)
			if err != nil {
				return figure{}, err
			}
			values[which] = value
		}
		fmt.Fprintf(log, "%s: %.4g old, %.4g new\n", p.figure, values[0], values[1])
		logarithms = append(logarithms, math.Log(values[1]/values[0]))
	}
	mean, half := meanInterval(logarithms)
	low, high := math.Exp(mean-half), math.Exp(mean+half)
	return figure{p.name, math.Exp(mean), "ratio", &low, &high, rounds}, nil
}

func measure(ctx context.Context, t tree, p program) (float64, error) {
	command := exec.CommandContext(ctx, filepath.Join(t.bin, p.command[0]), p.command[1:]...)
	command.Dir, command.Stderr = t.root, os.Stderr
	raw, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", strings.Join(p.command, " "), err)
	}
	for line := range strings.Lines(string(raw)) {
		var printed figure
		if json.Unmarshal([]byte(line), &printed) == nil && printed.Figure == p.figure {
			return printed.Value, nil
		}
	}
	return 0, fmt.Errorf("%s of %s printed no figure %s", strings.Join(p.command, " "), t.root, p.figure)
}

// quantiles of Student's t distribution at 0.975, by degrees of freedom from 1.
var quantiles = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
	2.110, 2.101, 2.093}

func meanInterval(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, math.Inf(1)
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	quantile := 1.96
	if freedom := len(values) - 1; freedom <= len(quantiles) {
		quantile = quantiles[freedom-1]
	}
	return mean, quantile * math.Sqrt(squares/(n-1)/n)
}
