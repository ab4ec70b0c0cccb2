package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// busyFile records the active times of neighbours, beside a ledger.
const busyFile = "neighbour.json"

// neighboured is the content of busyFile.
type neighboured struct {
	Kind string           `json:"kind"`
	Busy []calibrate.Busy `json:"busy"`
}

func newLimitsCommand() *cobra.Command {
	var folder, document string
	var others map[string]string
	command := &cobra.Command{
		Use:   "limits --ledgers FOLDER",
		Short: "How the noise readings of quiet and of disturbed trials are distributed, beside the default limits", Args: cobra.NoArgs,
		Long: "Reads the output of `calibrate real --out FOLDER`. A limit should accept nearly all quiet trials, and reject the trials " +
			"beside the neighbours " +
			"that the reading detects. The second table counts both, at the default limits or those of --limit.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			judgedBy, err := limitsWith(others)
			if err != nil {
				return err
			}
			table, err := limits(cmd.Context(), folder, judgedBy)
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), table)
			return update(document, "limits", measuredHere()+table)
		},
	}
	command.Flags().StringVar(&folder, "ledgers", "", "folder that calibrate real --out wrote")
	command.Flags().StringVar(&document, "update", "", "also put the table into this document, between its markers")
	command.Flags().StringToStringVar(&others, "limit", nil,
		"KIND=SHARE, a limit to try in place of the default, such as otherWork=10%; may be repeated")
	_ = command.MarkFlagRequired("ledgers")
	return command
}

// limitsWith returns the default limits with some replaced.
func limitsWith(others map[string]string) (noise.Limits, error) {
	out := noise.Limits{}
	for _, kind := range noise.Kinds {
		if limit, ok := noise.Default(kind); ok {
			out[kind] = limit
		}
	}
	for name, text := range others {
		kind := noise.Kind(name)
		if !slices.Contains(noise.Kinds, kind) {
			return nil, fmt.Errorf("--limit %s=%s: limits are %v", name, text, noise.Kinds)
		}
		limit, off, err := noise.ParseLimit(kind, text)
		if err != nil {
			return nil, fmt.Errorf("--limit %s=%s: %w", name, text, err)
		}
		if out[kind] = limit; off {
			delete(out, kind)
		}
	}
	return out, nil
}

// anyLimit represents all limits together.
const anyLimit = noise.Kind("any of them")

// conditions lists the conditions of a trial.
var conditions = []string{"quiet", "cpu", "memory", "disk"}

// under is a kind of reading under a condition.
type under struct {
	kind      noise.Kind
	condition string
}

// verdicts counts the trials beyond each limit, by condition.
type verdicts struct {
	limits noise.Limits
	trials map[string]int
	beyond map[under]int
}

func (v *verdicts) add(reference *noise.Reference, attempt *record.Attempt, condition string) {
	v.trials[condition]++
	violations, _ := reference.Judge(v.limits, attempt)
	for _, violation := range violations {
		v.beyond[under{violation.Kind, condition}]++
	}
	if len(violations) > 0 {
		v.beyond[under{anyLimit, condition}]++
	}
}

func (v *verdicts) table() string {
	var out strings.Builder
	out.WriteString("| limit | at | quiet trials beyond it | beside cpu | beside memory | beside disk |\n| --- | --: | --: | --: | --: " +
		"| --: |\n")
	for _, kind := range append(slices.Clone(noise.Kinds), anyLimit) {
		at := ""
		if limit, ok := v.limits[kind]; ok {
			at = fmt.Sprintf("%g %%", 100*limit)
		}
		row := []string{string(kind), at}
		for _, condition := range conditions {
			row = append(row, calibrate.NewShare(v.beyond[under{kind, condition}], v.trials[condition]).String())
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
	}
	return out.String()
}

// readings contains the values by kind and condition, which is quiet or the kind of neighbour.
type readings map[under][]float64

func limits(ctx context.Context, folder string, judgedBy noise.Limits) (string, error) {
	runs, err := filepath.Glob(filepath.Join(folder, "*", busyFile))
	if err != nil {
		return "", err
	}
	if len(runs) == 0 {
		return "", fmt.Errorf("--ledgers: %s holds no run of calibrate real --out", folder)
	}
	all, judged := readings{}, &verdicts{judgedBy, map[string]int{}, map[under]int{}}
	for _, file := range runs {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var beside neighboured
		if err := json.Unmarshal(raw, &beside); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		attempts, err := attemptsOf(ctx, filepath.Join(filepath.Dir(file), "ledger"))
		if err != nil {
			return "", err
		}
		collect(all, judged, attempts, beside)
	}
	return limitsTable(all) + "\n" + judged.table(), nil
}

// collect sorts the readings of a run's trials by condition. Trials that overlap a neighbour only briefly are omitted.
func collect(all readings, judged *verdicts, attempts []*record.Attempt, beside neighboured) {
	reference := noise.NewReference(attempts)
	for _, attempt := range attempts {
		if attempt.Warmup || attempt.Outcome != record.Succeeded {
			continue
		}
		condition := "quiet"
		if beside.Kind != "" {
			if condition = beside.Kind; calibrate.Overlap(attempt, beside.Busy) < 0.5 {
				continue
			}
		}
		judged.add(reference, attempt, condition)
		for _, kind := range noise.Kinds {
			if share, ok := reference.Share(kind, attempt); ok {
				in := under{kind, condition}
				all[in] = append(all[in], share)
			}
		}
	}
}

func limitsTable(all readings) string {
	var out strings.Builder
	out.WriteString("| limit | quiet trials | p50 | p90 | p99 | beside cpu: p10 | p50 | beside memory: p10 | p50 | beside disk: p10 | p50 | " +
		"default |\n")
	out.WriteString("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, kind := range noise.Kinds {
		quiet := all[under{kind, "quiet"}]
		row := []string{string(kind), fmt.Sprint(len(quiet))}
		for _, level := range []float64{0.5, 0.9, 0.99} {
			row = append(row, at(quiet, level))
		}
		for _, neighbour := range []string{"cpu", "memory", "disk"} {
			for _, level := range []float64{0.1, 0.5} {
				row = append(row, at(all[under{kind, neighbour}], level))
			}
		}
		limit := "off"
		if share, ok := noise.Default(kind); ok {
			limit = fmt.Sprintf("%g %%", 100*share)
		}
		fmt.Fprintf(&out, "| %s | %s |\n", strings.Join(row, " | "), limit)
	}
	return out.String()
}

// at returns the nearest-rank percentile in per cent; empty without readings.
func at(shares []float64, level float64) string {
	if len(shares) == 0 {
		return ""
	}
	slices.Sort(shares)
	rank := int(math.Ceil(level*float64(len(shares)))) - 1
	return quantity.PercentTo(shares[max(rank, 0)], 1)
}

func attemptsOf(ctx context.Context, folder string) ([]*record.Attempt, error) {
	store, err := store.OpenFolder(ctx, folder)
	if err != nil {
		return nil, err
	}
	if err := ledger.CheckFormat(ctx, store); err != nil {
		return nil, err
	}
	attempts, _, err := ledger.ReadAttempts(ctx, store, -1)
	if err != nil {
		return nil, err
	}
	if len(attempts) == 0 {
		return nil, fmt.Errorf("ledger %s has no attempt", folder)
	}
	out := make([]*record.Attempt, 0, len(attempts))
	for i := range attempts {
		out = append(out, &attempts[i])
	}
	return out, nil
}
