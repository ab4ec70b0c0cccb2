package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/report/causes"
	"assay.dev/assay/operator/internal/suggest"
	"assay.dev/assay/operator/internal/why"
)

// Forms of assay why for other tools.
const (
	foldedForm = "folded"
	pprofForm  = "pprof"
	svgForm    = "svg"
)

// NewWhyCommand returns the command assay why.
func NewWhyCommand() *cobra.Command {
	var form, candidate string
	command := &cobra.Command{
		Use:   "why FOLDER",
		Short: "Print the causes of the differences in a ledger",
		Long: "Print the causes of the differences between the arms of a run, from the trials that assay bench --why recorded below the folder " +
			"of its ledger. They are computed again from these trials.\n\n" +
			"Other tools read -o pprof (a profile with the values of both arms and their difference), -o folded (stacks with two columns, in " +
			"nanoseconds per operation), -o svg (a differential flame graph without scripts) and -o json.",
		Example: "  assay why assay-ledger/bench-20261201-120000\n" +
			"  assay why assay-ledger/bench-20261201-120000 --candidate new -o svg > flame.svg",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printWhy(args[0], candidate, form, cmd.OutOrStdout())
		},
	}
	cli.AddOutput(command, &form, "text", "json", "yaml", foldedForm, pprofForm, svgForm)
	command.Flags().StringVar(&candidate, "candidate", "", "arm to explain (default: the only one with recorded trials)")
	return command
}

// largestTrials bounds the file with the trials of an explanation.
const largestTrials = 256 << 20

func printWhy(folder, candidate, form string, out io.Writer) error {
	explained, err := whyArm(folder, candidate)
	if err != nil {
		return cli.UsageError(err)
	}
	input, err := readWhyTrials(filepath.Join(folder, WhyFolder, explained, WhyTrialsFile))
	if err != nil {
		return err
	}
	stacks := causes.Stacks(input.Question, input.Trials)
	switch form {
	case foldedForm:
		return causes.Folded(out, stacks)
	case pprofForm:
		return causes.Pprof(out, input.Question, stacks)
	case svgForm:
		return causes.Flame(out, input.Question, stacks)
	}
	explanation := why.Explain(input.Question, input.Trials, input.Rungs)
	if done, err := cli.PrintStructured(out, form, explanation); done {
		return err
	}
	return causes.Text(out, explanation)
}

// whyArm returns the arm with recorded trials.
func whyArm(folder, candidate string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(folder, WhyFolder))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("folder %s has no recorded causes; run %s bench --why", folder, cli.Program)
	}
	if err != nil {
		return "", err
	}
	var arms []string
	for _, entry := range entries {
		if entry.IsDir() {
			arms = append(arms, entry.Name())
		}
	}
	switch {
	case candidate == "" && len(arms) == 1:
		return arms[0], nil
	case candidate == "":
		return "", fmt.Errorf("folder %s has the causes of %d arms; name one with --candidate: %s", folder, len(arms), strings.Join(arms, ", "))
	}
	for _, arm := range arms {
		if arm == candidate {
			return arm, nil
		}
	}
	return "", fmt.Errorf("invalid --candidate %q: %s", candidate, suggest.Allowed(candidate, arms))
}

func readWhyTrials(path string) (*WhyTrials, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	out := &WhyTrials{}
	if err := json.NewDecoder(io.LimitReader(file, largestTrials)).Decode(out); err != nil {
		return nil, fmt.Errorf("trials %s: %w", path, err)
	}
	return out, nil
}
