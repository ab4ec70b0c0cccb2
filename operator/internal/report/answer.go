package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
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

// assurance multiplies the blocks at which the present estimate and spread would just decide, because about half of the runs that continue
// to that number turn out less clear. With it the forecast is right in at least four of five (TestForecast_IsRightInFourOfFiveRuns).
const assurance = 3

// Further returns the number of blocks beyond those that a gate has which decide it in at least four of five runs. More is the number at
// which its present estimate and spread would just decide.
func Further(blocks, more int) int { return assurance*(blocks+more) - blocks }

// forecast returns the further blocks of a gate that is not decided, and the time that they take on one node at the pace of the run; 0 if
// that is unknown. Known is false without a forecast.
func forecast(result *analysis.Analysis, gate *analysis.GateResult) (blocks int, took time.Duration, known bool) {
	if gate == nil || gate.MoreBlocks == nil || gate.Estimate == nil {
		return 0, 0, false
	}
	blocks = Further(gate.Estimate.Blocks, *gate.MoreBlocks)
	if used := result.Usage; used.Blocks > 0 {
		took = time.Duration(used.BlockSeconds / float64(used.Blocks) * float64(blocks) * float64(time.Second))
	}
	return blocks, took, true
}

// Message returns the message of a gate. Its number of further blocks is that of the report's forecast. The analysis writes the number at
// which the present estimate and spread would just decide, and a report with both would contradict itself.
func Message(gate *analysis.GateResult) string { return oneForecast(gate, gate.Message) }

func oneForecast(gate *analysis.GateResult, text string) string {
	if gate == nil || gate.MoreBlocks == nil || gate.Estimate == nil {
		return text
	}
	return strings.ReplaceAll(text, fmt.Sprintf("about %d further blocks would decide", *gate.MoreBlocks),
		fmt.Sprintf("about %d further blocks would decide four of five such runs", Further(gate.Estimate.Blocks, *gate.MoreBlocks)))
}

// reasonOf returns the reason for the verdict on a candidate, which may be the message of any of its gates.
func reasonOf(result *analysis.Analysis, candidate *analysis.Candidate) string {
	text := candidate.Reason
	for i := range result.Gates {
		if gate := &result.Gates[i]; gate.Candidate == candidate.Name && strings.Contains(text, gate.Message) {
			text = oneForecast(gate, text)
		}
	}
	return text
}

// moreTime formats a forecast as a time, and as a number of blocks if the pace of the run is unknown.
func moreTime(blocks int, took time.Duration) string {
	switch {
	case took <= 0:
		return "about " + quantity.Count(blocks, "more block")
	case took < 2*time.Minute:
		return "about " + quantity.Count(int(math.Round(took.Seconds())), "more second")
	case took < 2*time.Hour:
		return "about " + quantity.Count(int(math.Round(took.Minutes())), "more minute")
	default:
		return "about " + quantity.Count(int(math.Round(took.Hours())), "more hour")
	}
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
		default:
			blocks, took, known := forecast(result, gate)
			if !known {
				return "" // The message of the gate describes the obstacle.
			}
			text := fmt.Sprintf("Raise spec.design.blocks.max by about %d", blocks)
			if took > 0 {
				text += ", which takes " + moreTime(blocks, took) + " on one node"
			}
			return text + ": four of five runs are decided then."
		}
	case "":
	}
	return "Add a blocking gate to get a verdict."
}
