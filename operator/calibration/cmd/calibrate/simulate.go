package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/quantity"
)

type simulateOptions struct {
	runs, parallel int
	seed           uint64
	scenarios      []string
	check          bool
	update         string
	counts, root   string
}

func (o *simulateOptions) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.IntVar(&o.runs, "runs", 2000, "runs of every scenario and effect")
	flags.IntVar(&o.parallel, "parallel", 1, "runs at a time; the counts do not depend on it")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of all random numbers")
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "only these scenarios (default: all)")
	flags.StringVar(&o.counts, "counts", "", "add the runs, with the next seed, to the counts in this file, and show its sums")
	flags.StringVar(&o.root, "source", ".", "the project's folder, whose sources the counts belong to")
}

func newSimulateCommand() *cobra.Command {
	var o simulateOptions
	command := &cobra.Command{
		Use: "simulate", Short: "Judge simulated runs whose truth is known, through the real planner and analysis", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tallies, err := o.simulate(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			table := calibrate.Table(tallies)
			fmt.Fprint(cmd.OutOrStdout(), table)
			heading := fmt.Sprintf("`calibrate simulate --runs %d --seed %d`, %s", o.runs, o.seed, measuredHere())
			if o.counts != "" {
				heading = fmt.Sprintf("The sums of [%s](%[1]s), %s", filepath.Base(o.counts), measuredHere())
			}
			if err := update(o.update, "simulated", heading+table+"\n"+calibrate.Legend(tallies)); err != nil {
				return err
			}
			if o.check {
				return missed(calibrate.Check(calibrate.Figures(tallies)))
			}
			return nil
		},
	}
	o.flags(command)
	command.Flags().BoolVar(&o.check, "check", false, "fail if a target is missed for certain")
	command.Flags().StringVar(&o.update, "update", "", "also put the table into this document, between its markers")
	return command
}

// simulate runs the requested scenarios.
func (o *simulateOptions) simulate(log io.Writer) ([]calibrate.Tally, error) {
	known := fixture.Scenarios()
	names := experiment.NamesOf(known, func(s fixture.Scenario) string { return s.Name })
	for _, name := range o.scenarios {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("invalid --scenario %q: allowed are %s", name, strings.Join(names, ", "))
		}
	}
	if o.counts != "" {
		counts, err := o.read()
		if err != nil {
			return nil, err
		}
		o.seed = counts.NextSeed()
	}
	var out []calibrate.Tally
	for _, scenario := range known {
		if len(o.scenarios) > 0 && !slices.Contains(o.scenarios, scenario.Name) {
			continue
		}
		started := time.Now()
		tallies, err := calibrate.Simulate(scenario, o.runs, o.seed, o.parallel)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(log, "%s: %d runs in %s\n", scenario.Name, o.runs*len(tallies), quantity.Duration(time.Since(started), time.Millisecond))
		out = append(out, tallies...)
		if err := o.accumulate(tallies); err != nil {
			return nil, err
		}
	}
	if o.counts == "" {
		return out, nil
	}
	counts, err := o.read()
	if err != nil {
		return nil, err
	}
	return counts.Tallies(), nil
}

// accumulate adds the runs of one scenario to the file of the counts, so that none is lost when the next fails.
func (o *simulateOptions) accumulate(tallies []calibrate.Tally) error {
	if o.counts == "" {
		return nil
	}
	counts, err := o.read()
	if err != nil {
		return err
	}
	counts.Add(machine(), o.seed, tallies)
	return counts.Write(o.counts)
}

func (o *simulateOptions) read() (*calibrate.Counts, error) {
	code, err := calibrate.CodeDigest(o.root)
	if err != nil {
		return nil, err
	}
	return calibrate.ReadCounts(o.counts, code)
}

func missed(targets []string) error {
	if len(targets) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(targets, "; "))
	}
	return nil
}

// update replaces a section of a document, if path is not empty.
func update(path, name, content string) error {
	if path == "" {
		return nil
	}
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := calibrate.Replace(string(document), name, content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}
