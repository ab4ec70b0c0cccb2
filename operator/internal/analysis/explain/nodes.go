package explain

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
)

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
