// Command calibratewhy compares programs whose difference has a known cause with assay bench --why, and prints how often the first cause is
// the right kind, and how often equal programs have a cause. Its arguments are folders: of the programs, and for ledgers.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/why"
)

// known are the kinds of the program known, with the figure that they change.
var known = []struct {
	name  string
	by    string
	kinds []why.Kind
}{
	{"computation", "cpu", []why.Kind{why.MoreComputation}},
	{"system-calls", "cpu", []why.Kind{why.SystemCalls}},
	{"page-faults", "cpu", []why.Kind{why.PageFaults}},
	{"allocation", "cpu", []why.Kind{why.Allocation}},
	{"copying", "cpu", []why.Kind{why.Copying}},
	{"sleep", "wall", []why.Kind{why.Sleep}},
	// The peer is a process of the trial, so that its own wait is visible behind the wait for it.
	{"peer", "wall", []why.Kind{why.Peer, why.Sleep}},
}

// figure is one line of the output.
type figure struct {
	Figure  string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Samples int     `json:"samples"`
}

func main() {
	bin := flag.String("bin", "bin", "folder with assay, assay-runner and known")
	out := flag.String("out", "out/why", "folder for ledgers, which must not exist")
	nulls := flag.Int("nulls", 4, "number of comparisons of equal programs")
	flag.Parse()
	if err := calibrate(*bin, *out, *nulls, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "calibratewhy:", err)
		os.Exit(1)
	}
}

func calibrate(bin, out string, nulls int, stdout, stderr io.Writer) error {
	right, named := 0, map[why.Kind]bool{}
	for _, of := range known {
		got, err := explain(bin, filepath.Join(out, of.name), of.name, of.by, stderr)
		if err != nil {
			return err
		}
		if len(got.Causes) > 0 && slices.Contains(of.kinds, got.Causes[0].Kind) {
			right++
			named[got.Causes[0].Kind] = true
		}
		fmt.Fprintf(stderr, "%s: %s\n", of.name, got.Sentence)
	}
	wrong := 0
	for i := range nulls {
		got, err := explain(bin, filepath.Join(out, fmt.Sprint("null-", i)), "base", []string{"cpu", "wall"}[i%2], stderr)
		if err != nil {
			return err
		}
		if len(got.Causes) > 0 {
			wrong++
		}
		fmt.Fprintf(stderr, "equal programs: %s\n", got.Sentence)
	}
	var failed []error
	report := func(name string, count, of int) {
		low, high := stats.ShareLimits(count, of, 0.95)
		line := figure{name, float64(count) / float64(max(1, of)), "1", low, high, of}
		failed = append(failed, json.NewEncoder(stdout).Encode(line))
	}
	report("why.known.correct_rate", right, len(known))
	report("why.null.false_cause_rate", wrong, nulls)
	kinds := float64(len(named))
	failed = append(failed, json.NewEncoder(stdout).Encode(figure{"why.known.kinds_named", kinds, "kinds", kinds, kinds, len(known)}))
	return errors.Join(failed...)
}

// explain compares the program of a kind with its base.
func explain(bin, out, kind, by string, stderr io.Writer) (*why.Explanation, error) {
	program := filepath.Join(bin, "known")
	command := exec.Command(filepath.Join(bin, "assay"), "bench", program+" base", program+" "+kind, "--name", "base,candidate",
		"--blocks", "6", "--by", by, "--why", "--bin-dir", bin, "--out", out)
	command.Stderr = stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	raw, err := os.ReadFile(filepath.Join(out, runs.WhyFolder, "candidate", runs.WhyExplanationFile))
	if err != nil {
		return nil, err
	}
	got := &why.Explanation{}
	return got, json.Unmarshal(raw, got)
}
