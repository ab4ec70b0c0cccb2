package runs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/ledgers"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Planned is what assay plan shows. Times that nobody measured are absent.
type Planned struct {
	Run string `json:"run"`
	// Search reports whether points are the loads that may be tried, of which a search tries a few; the first wave is what is shown.
	Search         bool     `json:"search,omitempty"`
	Points         int      `json:"points"`
	Arms           []string `json:"arms"`
	TrialsPerBlock int      `json:"trialsPerBlock"`
	MinBlocks      int      `json:"minBlocks"`
	MaxBlocks      int      `json:"maxBlocks"`
	Confirming     int      `json:"confirmingBlocks,omitempty"`
	MinTrials      int      `json:"minTrials"`
	MaxTrials      int      `json:"maxTrials"`
	TrialBudget    int      `json:"trialBudget"`
	WallClock      string   `json:"wallClockBudget"`
	// BlockSeconds is how long a block took on this machine; only with --measure.
	BlockSeconds *float64 `json:"blockSeconds,omitempty"`
	MinSeconds   *float64 `json:"minSeconds,omitempty"`
	// Pilot is how many blocks ran for it, and Precision what they say of every gate on times.
	Pilot     int                 `json:"pilotBlocks,omitempty"`
	Precision []explain.Precision `json:"precision,omitempty"`
	// Lost are trials of the pilot that no figure could be had of, as in the run.
	Lost  []lostTrials `json:"lost,omitempty"`
	Gates []string     `json:"gates,omitempty"`
}

// lostTrials are trials of an arm that are lost for the same reason. What is no trial, such as a file that cannot be read, has no arm.
type lostTrials struct {
	Arm    string `json:"arm,omitempty"`
	Point  string `json:"point,omitempty"`
	Reason string `json:"reason"`
	Trials int    `json:"trials"`
}

func NewPlanCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	options := LocalOptions{Pin: true}
	var form, file string
	var measure bool
	var pilot int
	command := &cobra.Command{
		Use:   "plan FILE",
		Short: "Check the experiment in FILE and show what it would run, and how long that takes",
		Long: "Check the experiment in FILE as the operator would, and show how many points, blocks and trials it has. " +
			"Its duration has to be measured: --measure runs a pilot of a few blocks on this machine and estimates how many blocks and minutes " +
			"every gate needs " +
			"for the precision that design.stop asks for, or without it for a decision at the effect that the pilot found. The pilot is not part " +
			"of the run. Trials of it that fail, or report what cannot be used, are named, and the exit code is 1.",
		Example:           "  assay plan workflows/studies/pir-batch-scan/run.yaml --measure\n  assay plan -f run.yaml -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteManifests,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if file, err = cli.ManifestArgument(args, file); err != nil {
				return err
			}
			question, err := ReadRunFile(cmd.Context(), connection, file, options.Templates)
			if err != nil {
				return err
			}
			frozen, err := question.Freeze()
			if err != nil {
				return err
			}
			// The first step of the real plan: what follows depends on what it measures.
			first := design.Begin(frozen)
			wave, err := first.Lay(first.Next(), []design.Lane{{}}, nil)
			if err != nil {
				return cli.UsageError(err)
			}
			summary := summarize(frozen, wave)
			if measure {
				if err := summary.measure(cmd.Context(), question, pilot, options); err != nil {
					return err
				}
			}
			if done, err := cli.PrintStructured(cmd.OutOrStdout(), form, summary); done {
				return cmp.Or(err, summary.failure())
			}
			printPlan(cmd.OutOrStdout(), summary)
			return summary.failure()
		},
	}
	flags := command.Flags()
	cli.AddOutput(command, &form, "text", "json", "yaml")
	flags.StringVarP(&file, "filename", "f", "", "file with one BenchmarkRun; - is standard input")
	_ = command.RegisterFlagCompletionFunc("filename", cli.CompleteManifests)
	flags.BoolVar(&measure, "measure", false,
		"run a pilot on this machine to estimate how long the run takes, and how many blocks every gate needs")
	flags.IntVar(&pilot, "pilot-blocks", 5, "blocks of the pilot; 3 are the fewest that give an estimate of the spread, 10 give a good one")
	options.AddSources(flags, "")
	bindArmBinary(flags, &options.Arms)
	return command
}

func summarize(frozen *experiment.Experiment, first *record.Wave) Planned {
	blocks, budget := frozen.Plan.Design.Blocks, frozen.Plan.Budget
	perBlock := first.Blocks[0].Trials()
	confirming := ptr.Deref(frozen.Plan.Design.Confirm, experiment.Confirm{}).Blocks
	out := Planned{
		Search: frozen.Plan.Search != nil, Confirming: confirming,
		Run: frozen.Run.Name, Points: len(frozen.Points), TrialsPerBlock: perBlock,
		MinBlocks: len(first.Blocks), MaxBlocks: blocks.Max,
		MinTrials: first.Trials(), MaxTrials: min(perBlock*(blocks.Max+confirming), budget.Trials),
		TrialBudget: budget.Trials, WallClock: budget.WallClock.Duration.String(),
	}
	if out.Search {
		out.MaxTrials = budget.Trials
	}
	for _, arm := range frozen.Arms {
		name := arm.Name
		if arm.Baseline {
			name += " (baseline)"
		}
		out.Arms = append(out.Arms, name)
	}
	for _, gate := range frozen.Plan.Gates {
		out.Gates = append(out.Gates, gate.Name+": "+analysis.Asked(frozen, gate.Condition))
	}
	all := frozen.Completions()
	if i := slices.IndexFunc(all, func(c experiment.Completion) bool { return c.Implicit }); i >= 0 {
		out.Gates = append(out.Gates, fmt.Sprintf("%s: %s (implicit, of every arm)", experiment.CompletesGate,
			analysis.Asked(frozen, all[i].Gate.Condition)))
	}
	return out
}

func printPlan(out io.Writer, p Planned) {
	what := "points"
	if p.Search {
		what = "loads to search"
	}
	cli.PrintLine(out, "%s: %d %s x %d arms (%s)\n", p.Run, p.Points, what, len(p.Arms), strings.Join(p.Arms, ", "))
	if p.Search {
		cli.PrintLine(out, "search   the first wave has %d blocks; every load tried has %d blocks at most\n", p.MinBlocks, p.MaxBlocks)
	} else {
		cli.PrintLine(out, "blocks   %d to %d, %d trials each\n", p.MinBlocks, p.MaxBlocks, p.TrialsPerBlock)
	}
	if p.Confirming > 0 {
		cli.PrintLine(out, "confirm  a Go or NoGo is repeated on %d fresh blocks\n", p.Confirming)
	}
	cli.PrintLine(out, "trials   %d to %d (budget %d)\n", p.MinTrials, p.MaxTrials, p.TrialBudget)
	if p.BlockSeconds != nil {
		cli.PrintLine(out, "time     about %s for %d blocks at %s each, as %d took here (budget %s)\n",
			seconds(*p.MinSeconds), p.MinBlocks, seconds(*p.BlockSeconds), p.Pilot, p.WallClock)
	} else {
		cli.PrintLine(out, "time     not measured: --measure runs a pilot here (budget %s)\n", p.WallClock)
	}
	for _, lost := range p.Lost {
		cli.PrintLine(out, "lost     %s\n", lost)
	}
	for _, gate := range p.Gates {
		cli.PrintLine(out, "gate     %s\n", gate)
	}
	for _, precision := range p.Precision {
		cli.PrintLine(out, "needs    %s\n", p.needs(precision))
	}
}

// needs is what a gate's wanted precision takes.
func (p *Planned) needs(of explain.Precision) string {
	name := of.Gate + " of " + of.Candidate + cli.AtPoint(of.Point)
	if of.HalfWidth == nil {
		return name + ": not known, as the pilot gives it no interval"
	}
	aim := "a decision at the effect found"
	if of.Wanted != nil {
		aim = "a half width of " + quantity.Percent(*of.Wanted, 3)
	}
	text := fmt.Sprintf("%s: half width %s after %d blocks; ", name, quantity.Percent(*of.HalfWidth, 3), of.Blocks)
	if of.Needed == nil {
		return text + "no number of blocks would give " + aim
	}
	text += fmt.Sprintf("about %d blocks for %s", *of.Needed, aim)
	if p.BlockSeconds != nil {
		text += fmt.Sprintf(", %s", seconds(*p.BlockSeconds*float64(*of.Needed)))
	}
	if *of.Needed > p.MaxBlocks {
		text += fmt.Sprintf("; blocks.max is %d", p.MaxBlocks)
	}
	return text
}

func seconds(s float64) string {
	return quantity.Duration(time.Duration(s*float64(time.Second)), 100*time.Millisecond)
}

// measure runs a pilot.
func (p *Planned) measure(ctx context.Context, question *RunFile, blocks int, options LocalOptions) error {
	if blocks < 1 {
		return cli.UsageError(fmt.Errorf("invalid --pilot-blocks %d: a pilot has at least 1 block", blocks))
	}
	here, err := PrepareLocal(question, options, io.Discard)
	if err != nil {
		return err
	}
	result, took, err := here.Pilot(ctx, blocks)
	if err != nil {
		return err
	}
	perBlock := took.Seconds() / float64(blocks)
	least := perBlock * float64(p.MinBlocks)
	p.Pilot, p.BlockSeconds, p.MinSeconds, p.Precision = blocks, &perBlock, &least, explain.Precisions(here.Experiment, result.Analysis.Gates)
	p.Lost = lostTrialsOf(result)
	return nil
}

// String is a line for people.
func (l lostTrials) String() string {
	if l.Arm == "" {
		return l.Reason
	}
	return fmt.Sprintf("%s of arm %s%s: %s", quantity.Count(l.Trials, "trial"), l.Arm, cli.AtPoint(l.Point), l.Reason)
}

// failure is how a plan ends whose pilot lost trials.
func (p *Planned) failure() error {
	if len(p.Lost) == 0 {
		return nil
	}
	return cli.WithCode(cli.ExitError, fmt.Errorf("the run would lose trials, as its pilot did: %s", p.Lost[0]))
}

// lostTrialsOf are the trials that the analysis could not use, but for those beyond a noise limit: that is this machine's, and a run
// repeats them.
func lostTrialsOf(result *ledgers.Analyzed) []lostTrials {
	attempts := map[string]record.Attempt{}
	for _, attempt := range result.Evidence.Attempts {
		attempts[attempt.ID] = attempt
	}
	var out []lostTrials
	for _, excluded := range selection.Select(result.Experiment, result.Evidence, result.Analysis.Wave).Rejected {
		if excluded.Kind == selection.Noisy {
			continue
		}
		of := attempts[excluded.Attempt]
		same := func(l lostTrials) bool { return l.Arm == of.Arm && l.Point == of.Point && l.Reason == excluded.Reason }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].Trials++
		} else {
			out = append(out, lostTrials{of.Arm, of.Point, excluded.Reason, 1})
		}
	}
	return out
}
