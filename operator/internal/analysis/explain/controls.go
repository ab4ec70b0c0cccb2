package explain

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/stats"
)

// controlWarnings name controls that moved or could not be compared, and effects no larger than the difference of the null arm.
func controlWarnings(controls []analysis.ControlResult, gates []analysis.GateResult) []string {
	var out []string
	for _, c := range controls {
		if c.Moved || c.Missing || c.Estimate == nil || c.Estimate.Low == nil {
			out = append(out, c.Message)
		}
	}
	for _, gate := range gates {
		if gate.Estimate == nil || !gate.Estimate.Ratio || gate.Estimate.Value <= 0 || !judge.Decisive(gate.Outcome) ||
			!excludesOne(gate.Estimate) {
			continue
		}
		for _, c := range controls {
			if c.Phase != "" || c.Point != gate.Point || c.Metric != gate.Metric || c.Statistic != gate.Statistic || c.Estimate == nil ||
				!c.Estimate.Ratio || c.Estimate.Value <= 0 {
				continue
			}
			if math.Abs(math.Log(c.Estimate.Value)) >= math.Abs(math.Log(gate.Estimate.Value)) {
				out = append(out, fmt.Sprintf("the effect of %s on %s at %s (%s) is no larger than that without a change (%s of the null arm)",
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
func nodeWarnings(ratios []analysis.RatioResult, confidence float64) []string {
	var out []string
	for _, ratio := range ratios {
		alone := aloneApart(ratio.PerNode, confidence, aloneLevel/float64(len(ratios)))
		if !ratio.NodesDiffer && !alone {
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
		switch {
		case alone && !ratio.NodesDiffer:
			how = "one block of a second node decides nothing, so the interval is that of all blocks: run two and more on each"
		case len(ratio.PerNode) == 2:
			how = "two nodes cannot show how much nodes vary, so the interval spans both"
		}
		out = append(out, fmt.Sprintf("%s %s of %s at %s depends on the node (%s): %s", ratio.Metric, ratio.Statistic, ratio.Candidate,
			analysis.PointName(ratio.Point), text, how))
	}
	return out
}

// aloneLevel is how surprising the single block of a second node must be before a warning names it, over all ratios of a run.
const aloneLevel = 0.05

// aloneApart reports whether, of two nodes, one has a single block outside of Student's prediction interval for a further block of the
// other. The difference between one more block and a mean of n blocks has sqrt(n+1) times the error of the mean.
func aloneApart(nodes []analysis.NodeResult, confidence, level float64) bool {
	if len(nodes) != 2 {
		return false
	}
	many, one := nodes[0].Estimate, nodes[1].Estimate
	if many.Blocks == 1 {
		many, one = one, many
	}
	if one.Blocks != 1 || many.Low == nil || one.Value <= 0 {
		return false
	}
	n := float64(many.Blocks)
	se := math.Log(*many.High / *many.Low) / 2 / stats.StudentQuantile((1+confidence)/2, n-1)
	return 2*stats.DistanceTail(math.Abs(math.Log(one.Value/many.Value)), se*math.Sqrt(n+1), n-1) < level
}
