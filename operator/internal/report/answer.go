package report

import (
	"cmp"
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Levels formats the absolute figures behind a comparison with the baseline: "throughput at batchSize=8: loop 113.5 queries/s → fused 1260
// queries/s". It is "" for a gate that compares nothing with the baseline, and for figures that are missing.
func Levels(exp *experiment.Experiment, result *analysis.Analysis, gate *analysis.GateResult) string {
	baseline := exp.Baseline()
	if gate == nil || !gate.Op.Relative() || baseline < 0 {
		return ""
	}
	mine := gate.Figure()
	theirs := mine
	theirs.Arm = exp.Arms[baseline].Name
	var of [2]*analysis.ArmResult
	for i := range result.Arms {
		switch result.Arms[i].Figure() {
		case theirs:
			of[0] = &result.Arms[i]
		case mine:
			of[1] = &result.Arms[i]
		}
	}
	if of[0] == nil || of[1] == nil {
		return ""
	}
	at := ""
	if gate.Point != "" {
		at = " at " + gate.Point
	}
	level := func(r *analysis.ArmResult) string {
		return r.Arm + " " + quantity.Format(r.Estimate.Value, r.Estimate.Shown())
	}
	return fmt.Sprintf("%s%s: %s → %s", analysis.StatisticName(gate.Metric, gate.Statistic), at, level(of[0]), level(of[1]))
}

// moreBlocks formats a number of further blocks with the time that they take on one node at the pace of the run.
func moreBlocks(result *analysis.Analysis, blocks int) string {
	text := fmt.Sprintf("about %d more blocks", blocks)
	if blocks == 1 {
		text = "about 1 more block"
	}
	if used := result.Usage; used.Blocks > 0 && used.BlockSeconds > 0 {
		took := time.Duration(used.BlockSeconds / float64(used.Blocks) * float64(blocks) * float64(time.Second))
		text += ", " + quantity.Duration(took, roundedTo(took)) + " on one node,"
	}
	return text
}

func roundedTo(of time.Duration) time.Duration {
	if of < 2*time.Minute {
		return time.Second
	}
	return time.Minute
}

// NextStep states in one sentence what to do after the verdict; "" if the analysis does not show it.
func NextStep(exp *experiment.Experiment, result *analysis.Analysis) string {
	switch {
	case result.SetupBroken != "":
		return "Repair the workload, its image, its arguments or its output, and create a new run."
	case exp.Plan.Search != nil:
		return ""
	}
	switch result.Verdict {
	case experiment.VerdictGo, experiment.VerdictNoGo:
		return "The verdict is decided; no further measurement is needed."
	case experiment.VerdictInvalid:
		if result.Cause == nil {
			return ""
		}
		return "Remove the cause of the lost trials, and create a new run."
	case experiment.VerdictInconclusive:
		lead := result.Leading()
		if lead == nil {
			return ""
		}
		switch gate := cmp.Or(result.GateOf(lead.Headline), analysis.Deciding(lead.Name, lead.Verdict, result.Gates)); {
		case gate != nil && len(gate.Caps) > 0:
			return "More blocks do not decide. Remove the finding first: " + gate.Caps[0].Detail + "."
		case gate != nil && gate.MoreBlocks != nil:
			return "Raise spec.design.blocks.max: " + moreBlocks(result, *gate.MoreBlocks) + " may decide."
		default:
			return "" // The message of the gate describes the obstacle.
		}
	case "":
	}
	return "Add a blocking gate to get a verdict."
}
