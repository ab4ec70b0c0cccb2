package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
)

type suitesOptions struct {
	runs, mixed, parallel int
	counts, root          string
}

func newSuitesCommand() *cobra.Command {
	var o suitesOptions
	command := &cobra.Command{
		Use: "suites", Short: "Simulate suites whose differences are known, and the same benchmarks alone, and print the figures",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			counts, err := o.measure(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, figure := range counts.Figures() {
				if err := figure.Write(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.runs, "runs", 2000, "simulated suites of equal builds")
	flags.IntVar(&o.mixed, "mixed", 5, "simulated suites of each mix of differences, each with 100 benchmarks alone")
	flags.IntVar(&o.parallel, "parallel", 1, "simulations at a time; the counts do not depend on it")
	flags.StringVar(&o.counts, "counts", "", "add the suites to the counts in this file, and print the figures of its sums")
	flags.StringVar(&o.root, "source", ".", "the project's folder, whose sources the counts belong to")
	return command
}

// measure adds suites to the counts. They are written after each part, so that an interrupted call loses little.
func (o *suitesOptions) measure(log io.Writer) (*calibrate.SuiteCounts, error) {
	code, err := calibrate.SuiteCode(o.root)
	if err != nil {
		return nil, err
	}
	counts := &calibrate.SuiteCounts{Code: code}
	if o.counts != "" {
		if counts, err = calibrate.ReadSuiteCounts(o.counts, code); err != nil {
			return nil, err
		}
	}
	keep := func(err error) error {
		if err != nil || o.counts == "" {
			return err
		}
		return counts.Write(o.counts)
	}
	for i := range o.mixed {
		for _, mix := range []calibrate.SuiteMix{calibrate.MostlyEqual, calibrate.Quarters} {
			if err := keep(counts.Mix(mix, o.parallel)); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(log, "%d of %d suites of each mix\n", i+1, o.mixed)
	}
	const part = 100
	for done := 0; done < o.runs; done += part {
		if err := keep(counts.Simulate(min(part, o.runs-done), o.parallel)); err != nil {
			return nil, err
		}
		fmt.Fprintf(log, "%d of %d suites of equal builds: %d with a false difference so far\n", min(done+part, o.runs), o.runs,
			counts.Equal.Wrong)
	}
	return counts, nil
}
