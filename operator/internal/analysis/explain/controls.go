package explain

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/judge"
)

// controlWarnings raise what the controls show beside the gates: those that moved, those that could not be compared, and
// effects no larger than what the null arm shows.
func controlWarnings(found *analysis.Analysis) []string {
	var out []string
	for _, c := range found.Controls {
		if c.Moved || c.Estimate == nil || c.Estimate.Low == nil {
			out = append(out, c.Message)
		}
	}
	for _, gate := range found.Gates {
		if gate.Estimate == nil || !gate.Estimate.Ratio || gate.Estimate.Value <= 0 || !judge.Decisive(gate.Outcome) ||
			!excludesOne(gate.Estimate) {
			continue
		}
		for _, c := range found.Controls {
			if c.Phase != "" || c.Point != gate.Point || c.Metric != gate.Metric || c.Statistic != gate.Statistic || c.Estimate == nil ||
				c.Estimate.Value <= 0 {
				continue
			}
			if math.Abs(math.Log(c.Estimate.Value)) >= math.Abs(math.Log(gate.Estimate.Value)) {
				out = append(out, fmt.Sprintf("the effect of %s on %s at %s (%s) is no larger than that of no change at all (%s of the null arm)",
					gate.Candidate, gate.Metric, analysis.PointName(gate.Point), analysis.Describe(gate.Estimate), analysis.Describe(c.Estimate)))
			}
		}
	}
	return out
}

func excludesOne(estimate *analysis.Estimate) bool {
	return estimate.Low != nil && *estimate.Low > 1 || estimate.High != nil && *estimate.High < 1
}

// nodeWarnings describe where the answer depends on the node.
func nodeWarnings(ratios []analysis.RatioResult) []string {
	var out []string
	for _, ratio := range ratios {
		if !ratio.NodesDiffer {
			continue
		}
		text := ""
		for i, node := range ratio.PerNode {
			if i > 0 {
				text += ", "
			}
			text += fmt.Sprintf("%s %s", node.Node, analysis.Describe(&node.Estimate))
		}
		how := "the interval rests on the nodes"
		if len(ratio.PerNode) == 2 {
			how = "two nodes cannot show how much nodes vary, so the interval spans both"
		}
		out = append(out, fmt.Sprintf("%s %s of %s at %s depends on the node (%s): %s", ratio.Metric, ratio.Statistic, ratio.Candidate,
			analysis.PointName(ratio.Point), text, how))
	}
	return out
}
