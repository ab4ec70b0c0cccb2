package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/calibration/rehearse"
	"assay.dev/assay/operator/internal/history/detect"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/quantity"
)

// historyOptions sets the number of simulations.
type historyOptions struct {
	years, bisections, parallel int
	peerYears                   int
	seed                        uint64
	otava, update               string
	labelled                    string
	onlyLabelled                bool
}

func newHistoryCommand() *cobra.Command {
	var o historyOptions
	command := &cobra.Command{
		Use: "history", Short: "Rehearse years of nights whose truth is known, and print the figures of histories, one JSON line each",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.OutOrStdout(), cmd.ErrOrStderr()) },
	}
	flags := command.Flags()
	flags.IntVar(&o.years, "years", 100, "years of every kind")
	flags.IntVar(&o.bisections, "bisections", 200, "bisections of every kind")
	flags.IntVar(&o.peerYears, "peer-years", 100, "years of every kind that the peer is shown")
	flags.IntVar(&o.parallel, "parallel", 2, "years at a time; the counts do not depend on it")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of all random numbers")
	flags.StringVar(&o.otava, "otava", "", "a Python with apache-otava, which finds the changes of the same years with hack/otava_changes.py")
	flags.StringVar(&o.labelled, "labelled", "", "folder with other labelled series than those in the tree: labels.csv and data/*.csv")
	flags.BoolVar(&o.onlyLabelled, "only-labelled", false, "print only the figures of the labelled series")
	flags.StringVar(&o.update, "update", "", "also put the tables into this document, between its markers")
	return command
}

// peerYears are the kinds shown to a peer: no change, occasional spikes, one change, and a combination.
var peerYears = []string{"layout", "spikes", rehearse.StepName, rehearse.MixedName}

func (o *historyOptions) run(out, log io.Writer) error {
	labelledFigures, labelledTable, err := o.judgeLabelled(log)
	if err != nil {
		return err
	}
	if o.onlyLabelled {
		return errors.Join(calibrate.Print(out, labelledFigures...), update(o.update, "history labelled", labelledTable))
	}
	unpaired := o.watchUnpaired(log)
	var tallies []rehearse.Tally
	shown := map[string][]rehearse.Shown{}
	for _, year := range rehearse.Years() {
		started := time.Now()
		tallies = append(tallies, rehearse.Watch(year, o.years, o.parallel, o.seed, func(i int, changed []int, ratios, bare []float64) {
			if i < o.peerYears {
				shown[year.Name+", ratios"] = append(shown[year.Name+", ratios"], rehearse.Shown{Changed: changed, Values: ratios})
				shown[year.Name+", bare values"] = append(shown[year.Name+", bare values"], rehearse.Shown{Changed: changed, Values: bare})
			}
		}))
		fmt.Fprintf(log, "%s: %d years in %s\n", year.Name, o.years, quantity.Duration(time.Since(started), time.Millisecond))
	}
	figures := historyFigures(tallies)
	text := fmt.Sprintf("`calibrate history --years %d --seed %d`.\n\n", o.years, o.seed) + rehearse.Table(tallies)
	compared, table, err := o.peer(shown, tallies, log)
	if err != nil {
		return err
	}
	bisected, bisections := o.bisect(log)
	size, err := siteSize(o.seed)
	if err != nil {
		return err
	}
	figures = slices.Concat(figures, labelledFigures, compared, bisected, []calibrate.Figure{detectCost(o.parallel, o.seed), size})
	if err := calibrate.Print(out, figures...); err != nil {
		return err
	}
	for _, section := range []struct{ name, content string }{
		{"history", text}, {"history unpaired", unpaired}, {"history labelled", labelledTable}, {"history peer", table},
		{"bisections", bisections},
	} {
		// A section without new content retains its last table.
		if section.content == "" {
			continue
		}
		if err := update(o.update, section.name, section.content); err != nil {
			return err
		}
	}
	return nil
}

// historyFigures returns the figures of the worst kind of year without a change, and of the year with one of 2 %.
func historyFigures(tallies []rehearse.Tally) []calibrate.Figure {
	var out []calibrate.Figure
	worst := calibrate.Figure{Figure: "history.false_alerts_per_100_series_years", Unit: "1", Value: -1}
	count, years := 0, 0
	for _, y := range tallies {
		if value, low, high := rehearse.PerCentury(y.False, y.Years); value > worst.Value {
			worst.Value, worst.Low, worst.High, worst.Samples, worst.Note = value, low, high, y.Years, "the worst kind of year, "+y.Year.Name
		}
		count, years = count+y.False, years+y.Years
		if y.Year.Name != rehearse.StepName {
			continue
		}
		out = append(out, calibrate.NewShare(y.Found, y.Changes).Figure("history.recall.2pct"))
		out = append(out, mean("history.delay_runs.2pct", "runs", y.Delay,
			"mean number of runs from the change to its alert, the confirming run included")...)
	}
	value, low, high := rehearse.PerCentury(count, years)
	return append(out, worst, calibrate.Figure{
		Figure: "history.false_alerts_per_100_series_years.all_kinds", Value: value, Unit: "1", Low: low, High: high, Samples: years,
	})
}

// mean returns the figure of a mean, or none for fewer than two values, because their limits are unknown.
func mean(name, unit string, of rehearse.Mean, note string) []calibrate.Figure {
	if of.Of < 2 {
		return nil
	}
	value, low, high := of.Limits()
	return []calibrate.Figure{{Figure: name, Value: value, Unit: unit, Low: low, High: high, Samples: of.Of, Note: note}}
}

// peerProgram returns the command of the peer; nil without one.
func (o *historyOptions) peerProgram() []string {
	if o.otava == "" {
		return nil
	}
	return []string{o.otava, "hack/otava_changes.py"}
}

// peer runs Otava on the same years. Without Otava it prints a message and returns no figure.
func (o *historyOptions) peer(
	shown map[string][]rehearse.Shown, tallies []rehearse.Tally, log io.Writer,
) ([]calibrate.Figure, string, error) {
	if o.otava == "" {
		fmt.Fprintln(log, "otava: skipped; --otava names a Python that has it (pip install apache-otava==0.8.0, in a venv)")
		return nil, "", nil
	}
	if _, err := exec.LookPath(o.otava); err != nil {
		return nil, "", fmt.Errorf("--otava: %w", err)
	}
	rows := map[string][]rehearse.Point{}
	var order []string
	for _, name := range peerYears {
		for _, kind := range []string{", ratios", ", bare values"} {
			started := time.Now()
			points, err := rehearse.AskPeerYears(o.peerProgram(), shown[name+kind])
			if err != nil {
				return nil, "", err
			}
			rows[name+kind], order = points, append(order, name+kind)
			fmt.Fprintf(log, "otava, %s: %d years in %s\n", name+kind, len(shown[name+kind]),
				quantity.Duration(time.Since(started), time.Millisecond))
		}
	}
	figures := []calibrate.Figure{}
	for _, y := range tallies {
		if y.Year.Name != rehearse.MixedName || y.Changes == 0 {
			continue
		}
		theirs := rehearse.AtRecall(rows[y.Year.Name+", ratios"], float64(y.Found)/float64(y.Changes))
		ratio, low, high, ok := rehearse.RatioOfRates(y.False+y.Misdated, y.Years, theirs.False, theirs.Years)
		if !ok {
			fmt.Fprintf(log, "otava: no false date at equal recall in %d years: there is nothing to compare with\n", theirs.Years)
			continue
		}
		others, _, _ := rehearse.PerCentury(theirs.False, theirs.Years)
		figures = append(figures, calibrate.Figure{
			Figure: "history.otava.false_alert_ratio", Value: ratio, Unit: "1", Low: low, High: high, Samples: y.Years,
			Note: fmt.Sprintf("on the ratios of %s: %d of %d changes told here; Otava at p %s finds %d of %d with %s false dates per 100 years",
				y.Year.Name, y.Found, y.Changes, theirs.Threshold, theirs.Matched, theirs.Changes, quantity.Decimals(others, 0)),
		})
	}
	return figures, rehearse.PeerTable("Otava 0.8.0", rows, order), nil
}

// detectCost measures the time to judge the newest point of 1,000 series of 1,000 points, and to date their changes.
func detectCost(workers int, seed uint64) calibrate.Figure {
	const series, points = 1000, 1000
	all := make([][]detect.Observation, series)
	for i := range all {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		for range points {
			all[i] = append(all[i], detect.Observation{Y: 0.004 * random.NormFloat64(), SE: 0.003 * (0.8 + 0.4*random.Float64()), DF: 9})
		}
	}
	policy := watch.Default()
	took := make([]float64, 5)
	for i := range took {
		began := time.Now()
		rehearse.Parallel(len(all), workers, func(i int) {
			_ = policy.Online.Newest(all[i], 0)
			_ = policy.Offline.Changes(all[i])
		})
		took[i] = time.Since(began).Seconds()
	}
	return calibrate.MedianFigure("history.detect_1k_series_s", "s", took, fmt.Sprintf("median, least and most; %d series at a time", workers))
}
