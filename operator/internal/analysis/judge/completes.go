package judge

import (
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// judgeCompletes judges every gate of op Completes, including the implicit ones. It returns one result per arm, the worse of the
// results over all points together and at each point. Completion at other points does not excuse a point: a gate holds if it holds at
// every point (Berger 1982), and may be missed by a little everywhere. Failures are counted over screening and confirming blocks,
// because no block was selected by its failures.
func judgeCompletes(d *estimate.Data) []analysis.GateResult {
	var out []analysis.GateResult
	completed := d.Chosen.Completions(nil)
	for _, gate := range d.Exp.Completions() {
		// All points together and each point are chances for an accidental NoGo, unless all trials have to complete: then one failure
		// is no accident.
		alpha, chances := 1-d.GateConfidence, 1.0
		if len(gate.Points) > 1 && *gate.Gate.Bound < 1 {
			alpha, chances = alpha/2, float64(len(gate.Points))
		}
		judged := func(points []int, confidence float64, where string) analysis.GateResult {
			result := analysis.GateResult{
				Gate: gate.Gate.Name, Candidate: d.Exp.Arms[gate.Arm].Name, Op: gate.Gate.Op, Severity: gate.Gate.Severity,
				Confidence: confidence,
			}
			all := selection.Completion{Failures: selection.Losses{}, Blocks: map[string]bool{}}
			for _, point := range points {
				all.Add(completed[selection.At(point, gate.Arm)])
			}
			judgeShare(&all, *gate.Gate.Bound, &result)
			result.Message = where + result.Message
			return result
		}
		worst := judged(gate.Points, 1-alpha, "")
		for _, point := range gate.Points {
			key := d.Exp.Points[point].Key
			if len(gate.Points) == 1 {
				worst.Point = key
				continue
			}
			at := judged([]int{point}, 1-alpha/chances, "at "+analysis.PointName(key)+" ")
			if badness(at.Outcome) > badness(worst.Outcome) {
				worst = at
			}
		}
		out = append(out, worst)
	}
	return out
}

// badness orders the outcomes of completion. Other gates report a point without trials.
func badness(outcome experiment.Verdict) int {
	return slices.Index([]experiment.Verdict{experiment.VerdictGo, experiment.VerdictInconclusive, experiment.VerdictNoGo}, outcome)
}

// judgeShare is Go if the observed share is at least the bound, and NoGo if the exact upper limit of the share is below it. With the
// bound 1 one failure is enough, as in a search.
func judgeShare(c *selection.Completion, bound float64, result *analysis.GateResult) {
	result.Bound = &bound
	if c.Of == 0 {
		result.Outcome, result.Message = experiment.VerdictInvalid, "no measured trial ran"
		return
	}
	// The results of trials without an end, a record or a usable one are unknown, so they count against Go and not for NoGo: the share
	// lies between the shares with all of them failed and with all of them completed (Manski 1990, American Economic Review 80:319).
	low, _ := stats.ShareLimits(c.Done, c.Of, result.Confidence)
	_, high := stats.ShareLimits(c.Done+c.Unknown, c.Of, result.Confidence)
	share := float64(c.Done) / float64(c.Of)
	result.Estimate = &analysis.Estimate{
		Value: stats.Round(share), Unit: "1", Low: stats.Finite(low), High: stats.Finite(high), Blocks: len(c.Blocks), Samples: c.Of,
	}
	result.Room = stats.Finite((share - bound) / math.Sqrt(bound*(1-bound)/float64(c.Of)))
	text := fmt.Sprintf("%d of %d trials completed against at least %s", c.Done, c.Of, quantity.Digits(bound))
	if c.First != nil {
		text += fmt.Sprintf(": %s (first %s: %s)", c.Failures, c.First.Trial, c.Cause())
	} else if c.Unknown > 0 {
		text += fmt.Sprintf(": %s (first %s)", c.Failures, c.Unseen)
	}
	switch {
	case !experiment.Below(share, bound):
		result.Outcome = experiment.VerdictGo
	case experiment.Below(high, bound):
		result.Outcome = experiment.VerdictNoGo
	default:
		result.Outcome = experiment.VerdictInconclusive
		text += "; with this number of trials the share may still reach the bound"
		if c.Unknown > 0 {
			text += ", because the results of trials without an end or a usable record are unknown"
		}
	}
	result.Message = text
}

// brokenBaseline describes a baseline that does not complete. Ratios rest on its remaining trials, which may be the easier half, and those
// of its null arm. Beside it a missed gate of any kind says nothing about a candidate, because the cause may be common to both.
func brokenBaseline(d *estimate.Data, j *judgement, gate *analysis.GateResult) string {
	switch {
	case gate.Op.Relative():
		return notComplete(d, j.gates, func(role experiment.ArmRole) bool { return !role.Judged() })
	case gate.Outcome == experiment.VerdictNoGo && isCandidate(d, gate):
		return j.incomplete
	}
	return ""
}
