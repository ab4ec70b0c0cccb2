package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/local"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// planned is what assay plan tells. Times that nobody measured are absent.
type planned struct {
	Run string `json:"run"`
	// Search tells that points are the loads that may be tried, of which a search tries a few; the first wave is what is told.
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
	// BlockSeconds is how long one block took on this machine; only with --measure.
	BlockSeconds *float64 `json:"blockSeconds,omitempty"`
	MinSeconds   *float64 `json:"minSeconds,omitempty"`
	Gates        []string `json:"gates,omitempty"`
}

func newPlanCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var templates, binDirs, arms []string
	var form, file string
	var measure bool
	command := &cobra.Command{
		Use:   "plan FILE",
		Short: "Check the experiment in FILE and tell what it would run, and how long that takes",
		Long: "Check the experiment in FILE as the operator would, and tell how many points, blocks and trials it has. " +
			"How long it takes is only known by trying: --measure runs one block on this machine.",
		Example:           "  assay plan workflows/studies/pir-batch-scan/run.yaml --measure\n  assay plan -f run.yaml -o json",
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeManifests,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := checkForm(form, "text", "json", "yaml"); err != nil {
				return err
			}
			if file, err = manifestOf(args, file); err != nil {
				return err
			}
			run, template, err := readRun(cmd.Context(), connection, file, templates)
			if err != nil {
				return &exitCode{exitUsage, err}
			}
			frozen, err := experiment.Freeze(record.Run{Namespace: "local", Name: run.Name, UID: uuid.NewString()}, run.Spec, *template)
			if err != nil {
				return &exitCode{exitUsage, fmt.Errorf("BenchmarkRun %s in %s: %w", run.Name, file, err)}
			}
			// The first step of the real plan: what follows depends on what it measures.
			first := plan.Next(frozen, nil, plan.Findings{})
			wave, err := plan.BuildFitting(frozen, 0, 0, first, []plan.Lane{{}}, nil)
			if err != nil {
				return &exitCode{exitUsage, err}
			}
			told := tell(frozen, wave)
			if measure {
				wave.Blocks = wave.Blocks[:1]
				seconds, err := measureBlock(cmd.Context(), frozen, wave, binDirs, arms)
				if err != nil {
					return err
				}
				least := seconds * float64(told.MinBlocks)
				told.BlockSeconds, told.MinSeconds = &seconds, &least
			}
			if done, err := printStructured(cmd.OutOrStdout(), form, told); done {
				return err
			}
			printPlan(cmd.OutOrStdout(), told)
			return nil
		},
	}
	flags := command.Flags()
	addOutput(command, &form, "text", "json", "yaml")
	flags.StringVarP(&file, "filename", "f", "", "file with one BenchmarkRun; - is standard input")
	_ = command.RegisterFlagCompletionFunc("filename", completeManifests)
	flags.BoolVar(&measure, "measure", false, "run one block on this machine to tell how long the run takes")
	flags.StringArrayVar(&templates, "templates", nil, "file or folder with BenchmarkTemplates; may be repeated (default: charts/assay/files/benchmarktemplates, if there; else the cluster's)")
	bindArmBinary(flags, &arms)
	flags.StringArrayVar(&binDirs, "bin-dir", nil, "folder with assay-runner and the workloads' programs; may be repeated (default: the folder of assay itself)")
	return command
}

func tell(frozen *experiment.Experiment, first *record.Wave) planned {
	design, budget := frozen.Spec.Design, frozen.Spec.Budget
	perBlock := first.Blocks[0].Trials()
	out := planned{
		Search: frozen.Spec.Search != nil, Confirming: confirming(frozen),
		Run: frozen.Run.Name, Points: len(frozen.Points), TrialsPerBlock: perBlock,
		MinBlocks: len(first.Blocks), MaxBlocks: int(design.Blocks.Max),
		MinTrials: trialsOf(first), MaxTrials: min(perBlock*(int(design.Blocks.Max)+confirming(frozen)), int(budget.Trials)),
		TrialBudget: int(budget.Trials), WallClock: budget.WallClock.Duration.String(),
	}
	if out.Search {
		out.MaxTrials = int(budget.Trials)
	}
	for _, arm := range frozen.Arms {
		name := arm.Name
		if arm.Baseline {
			name += " (baseline)"
		}
		out.Arms = append(out.Arms, name)
	}
	for _, gate := range frozen.Spec.Gates {
		text := string(gate.Op)
		if gate.Metric != "" {
			text = strings.TrimSpace(fmt.Sprintf("%s %s %s %s", gate.Metric, gate.Statistic, gate.Op, gate.Bound))
		}
		if gate.Op == assayv1alpha1.Completes {
			text = fmt.Sprintf("%s %s", gate.Op, cmp.Or(gate.Bound, "1"))
		}
		out.Gates = append(out.Gates, gate.Name+": "+text)
	}
	if slices.ContainsFunc(frozen.Completions(), func(c experiment.Completion) bool { return c.Implicit }) {
		out.Gates = append(out.Gates, fmt.Sprintf("%s: %s 1 of every arm (implicit)", experiment.CompletesGate, assayv1alpha1.Completes))
	}
	return out
}

// confirming is how many blocks repeat the verdict.
func confirming(frozen *experiment.Experiment) int {
	if frozen.Spec.Design.Confirm == nil {
		return 0
	}
	return int(frozen.Spec.Design.Confirm.Blocks)
}

func trialsOf(wave *record.Wave) int {
	trials := 0
	for _, block := range wave.Blocks {
		trials += block.Trials()
	}
	return trials
}

func printPlan(out io.Writer, p planned) {
	what := "points"
	if p.Search {
		what = "loads to search"
	}
	fmt.Fprintf(out, "%s: %d %s x %d arms (%s)\n", p.Run, p.Points, what, len(p.Arms), strings.Join(p.Arms, ", "))
	if p.Search {
		fmt.Fprintf(out, "search   the first wave has %d blocks; every load tried has %d blocks at most\n", p.MinBlocks, p.MaxBlocks)
	} else {
		fmt.Fprintf(out, "blocks   %d to %d, %d trials each\n", p.MinBlocks, p.MaxBlocks, p.TrialsPerBlock)
	}
	if p.Confirming > 0 {
		fmt.Fprintf(out, "confirm  a Go or NoGo is repeated on %d fresh blocks\n", p.Confirming)
	}
	fmt.Fprintf(out, "trials   %d to %d (budget %d)\n", p.MinTrials, p.MaxTrials, p.TrialBudget)
	if p.BlockSeconds != nil {
		fmt.Fprintf(out, "time     about %s for %d blocks at %s each, as one block took here (budget %s)\n",
			seconds(*p.MinSeconds), p.MinBlocks, seconds(*p.BlockSeconds), p.WallClock)
	} else {
		fmt.Fprintf(out, "time     not measured: --measure runs one block here (budget %s)\n", p.WallClock)
	}
	for _, gate := range p.Gates {
		fmt.Fprintf(out, "gate     %s\n", gate)
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond)
}

// measureBlock runs the first block in a folder of its own, which is gone afterwards.
func measureBlock(ctx context.Context, frozen *experiment.Experiment, wave *record.Wave, binDirs, arms []string) (float64, error) {
	binDirs, err := binFolders(binDirs)
	if err != nil {
		return 0, err
	}
	armPrograms, err := local.ParseArmPrograms(arms)
	if err != nil {
		return 0, &exitCode{exitUsage, err}
	}
	if wave, err = local.Prepare(wave, local.Programs{Folders: binDirs, Arms: armPrograms}); err != nil {
		return 0, &exitCode{exitUsage, err}
	}
	runner, err := local.FindProgram("assay-runner", binDirs)
	if err != nil {
		return 0, &exitCode{exitUsage, err}
	}
	folder, err := os.MkdirTemp("", "assay-plan-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	raw, err := local.Marshal(wave)
	if err != nil {
		return 0, err
	}
	path := filepath.Join(folder, filepath.FromSlash(ledger.WaveKey(wave.Wave)))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, raw, 0o600)); err != nil {
		return 0, err
	}
	executor := &local.Executor{Runner: runner, Folder: folder, Name: "plan", CPUs: int(frozen.Spec.Placement.CPUs), Log: io.Discard}
	began := time.Now()
	if err := executor.Run(ctx, wave, func(record.Block) {}); err != nil {
		return 0, err
	}
	return time.Since(began).Seconds(), nil
}
