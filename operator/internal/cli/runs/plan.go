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
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/recompute"
	"assay.dev/assay/operator/internal/record"
)

// Planned is the structured output of assay plan. Times that were not measured are absent.
type Planned struct {
	Run string `json:"run"`
	// Search reports whether points are the candidate loads of a search. The other fields then describe its first wave.
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
	// BlockSeconds is the duration of a block on this machine, with --measure only.
	BlockSeconds *float64 `json:"blockSeconds,omitempty"`
	MinSeconds   *float64 `json:"minSeconds,omitempty"`
	// Pilot is the number of blocks of the pilot, and Precision its estimate for each gate on a time.
	Pilot     int                 `json:"pilotBlocks,omitempty"`
	Precision []explain.Precision `json:"precision,omitempty"`
	// Lost lists trials of the pilot without a usable result. The run would lose such trials too.
	Lost  []lostTrials `json:"lost,omitempty"`
	Gates []string     `json:"gates,omitempty"`
	// Hints propose other gates, where those of the run have a known limit.
	Hints []string `json:"hints,omitempty"`
}

// lostTrials counts trials of an arm that are lost for the same reason. Arm is empty for objects that are not trials, such as an unreadable
// file.
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
		Short: "Check the experiment in FILE and estimate its size and duration",
		Long: "Check the experiment in FILE as the operator would, and show how many points, blocks and trials it has. " +
			"With --measure a pilot of a few blocks on this machine estimates the duration, and the blocks that every gate needs for " +
			"the precision in design.stop, or else for a decision at the effect of the pilot. The pilot is not part of the run. The exit code " +
			"is 1 if trials of the pilot fail or have unusable results.",
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
			// The first step of the actual plan. Later steps depend on its results.
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
		"run a pilot on this machine to estimate the duration and the blocks that every gate needs")
	flags.IntVar(&pilot, "pilot-blocks", 5, "blocks of the pilot; at least 3 for an estimate of the spread, 10 for a good one")
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
		if experiment.RoleOf(arm) == experiment.RoleBaseline {
			name += " (baseline)"
		}
		out.Arms = append(out.Arms, name)
	}
	for _, gate := range frozen.Plan.Gates {
		out.Gates = append(out.Gates, gate.Name+": "+analysis.Asked(frozen, gate.Condition))
	}
	all := frozen.Completions()
	if i := slices.IndexFunc(all, func(c experiment.Completion) bool { return c.Implicit }); i >= 0 {
		out.Gates = append(out.Gates, fmt.Sprintf("%s: %s (implicit, for every arm)", experiment.CompletesGate,
			analysis.Asked(frozen, all[i].Gate.Condition)))
	}
	out.Hints = frozen.Hints()
	return out
}

func printPlan(out io.Writer, p Planned) {
	kind := "points"
	if p.Search {
		kind = "loads to search"
	}
	cli.PrintLine(out, "%s: %d %s x %d arms (%s)\n", p.Run, p.Points, kind, len(p.Arms), strings.Join(p.Arms, ", "))
	if p.Search {
		cli.PrintLine(out, "search   the first wave has %d blocks; every load has at most %d blocks\n", p.MinBlocks, p.MaxBlocks)
	} else {
		cli.PrintLine(out, "blocks   %d to %d, %d trials each\n", p.MinBlocks, p.MaxBlocks, p.TrialsPerBlock)
	}
	if p.Confirming > 0 {
		cli.PrintLine(out, "confirm  a Go or NoGo is repeated on %d fresh blocks\n", p.Confirming)
	}
	cli.PrintLine(out, "trials   %d to %d (budget %d)\n", p.MinTrials, p.MaxTrials, p.TrialBudget)
	if p.BlockSeconds != nil {
		cli.PrintLine(out, "time     about %s for %d blocks at %s each, estimated from %d blocks (budget %s)\n",
			seconds(*p.MinSeconds), p.MinBlocks, seconds(*p.BlockSeconds), p.Pilot, p.WallClock)
	} else {
		cli.PrintLine(out, "time     not measured; --measure runs a pilot (budget %s)\n", p.WallClock)
	}
	for _, lost := range p.Lost {
		cli.PrintLine(out, "lost     %s\n", lost)
	}
	for _, gate := range p.Gates {
		cli.PrintLine(out, "gate     %s\n", gate)
	}
	for _, hint := range p.Hints {
		cli.PrintLine(out, "hint     %s\n", hint)
	}
	for _, precision := range p.Precision {
		cli.PrintLine(out, "needs    %s\n", p.needs(precision))
	}
}

// needs formats the number of blocks that the requested precision of a gate requires.
func (p *Planned) needs(of explain.Precision) string {
	name := of.Gate + " of " + of.Candidate + cli.AtPoint(of.Point)
	if of.HalfWidth == nil {
		return name + ": unknown, because the pilot yields no interval"
	}
	aim := "a decision at the observed effect"
	if of.Wanted != nil {
		aim = "a half width of " + quantity.Percent(*of.Wanted, 3)
	}
	text := fmt.Sprintf("%s: half width %s after %d blocks; ", name, quantity.Percent(*of.HalfWidth, 3), of.Blocks)
	if of.Needed == nil {
		return text + "no number of blocks yields " + aim
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

// measure runs a pilot and sets the measured fields.
func (p *Planned) measure(ctx context.Context, question *RunFile, blocks int, options LocalOptions) error {
	if blocks < 1 {
		return cli.UsageError(fmt.Errorf("invalid --pilot-blocks %d: at least 1 is required", blocks))
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

// String formats the lost trials for people.
func (l lostTrials) String() string {
	if l.Arm == "" {
		return l.Reason
	}
	return fmt.Sprintf("%s of arm %s%s: %s", quantity.Count(l.Trials, "trial"), l.Arm, cli.AtPoint(l.Point), l.Reason)
}

// failure returns the error for a plan whose pilot lost trials.
func (p *Planned) failure() error {
	if len(p.Lost) == 0 {
		return nil
	}
	return cli.WithCode(cli.ExitError, fmt.Errorf("trials of the pilot were lost: %s", p.Lost[0]))
}

// lostTrialsOf returns the trials that the analysis rejected. Trials beyond a noise limit are omitted, because a run repeats them.
func lostTrialsOf(result *recompute.Analyzed) []lostTrials {
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
