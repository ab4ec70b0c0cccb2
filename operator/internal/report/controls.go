package report

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
)

// Screening is what the screening blocks said, once the gates rest on the confirming ones; without rows, nothing was confirmed.
func Screening(result *analysis.Analysis) Table {
	table := Table{Header: []string{"screened", "gate", "candidate", "point", "estimate" + Interval(result.GateConfidence), "blocks"}}
	for _, gate := range result.Screening {
		estimate, blocks := "", ""
		if gate.Estimate != nil {
			estimate, blocks = analysis.Describe(gate.Estimate), fmt.Sprint(gate.Estimate.Blocks)
		}
		table.add(string(gate.Outcome), gate.Gate, gate.Candidate, gate.Point, estimate, blocks)
	}
	return table
}

func (v *view) screening(out *document) {
	if table := Screening(v.result); table.Rows != nil {
		out.line("\nThese gates rest on the confirming blocks alone, which played no part in choosing what to confirm. The screening blocks " +
			"showed:\n")
		out.table(table)
	}
}

// Controls are the comparisons in which nothing may move.
func Controls(result *analysis.Analysis) Table {
	table := Table{Header: []string{"moved", "arm", "point", "what", "of the baseline's" + Interval(result.GateConfidence), "message"}}
	for _, c := range result.Controls {
		what, estimate := "phase "+c.Phase, ""
		if c.Phase == "" {
			what = analysis.StatisticName(c.Metric, c.Statistic)
		}
		if c.Estimate != nil {
			estimate = analysis.Describe(c.Estimate)
		}
		table.add(yes(c.Moved), c.Arm, c.Point, what, estimate, c.Message)
	}
	return table
}

func (v *view) controls(out *document) {
	if out.section("Controls", Controls(v.result)) {
		out.line("\nNothing may move here: the null arm is the baseline started from another place, and no arm changes a control phase. One " +
			"that moved is beyond accident, counting how many there are (Holm).")
	}
}

// nodes shows the ratios of every node, when the blocks ran on several.
func (v *view) nodes(out *document) {
	table := Table{Header: []string{"point", "candidate", "metric", "node", "ratio there" + Interval(v.result.Confidence), "blocks",
		"nodes differ"}}
	for _, ratio := range v.result.Ratios {
		for _, node := range ratio.PerNode {
			table.add(ratio.Point, ratio.Candidate, analysis.StatisticName(ratio.Metric, ratio.Statistic), node.Node,
				analysis.Describe(&node.Estimate), fmt.Sprint(node.Estimate.Blocks), yes(ratio.NodesDiffer))
		}
	}
	out.section("Nodes", table)
}
