package report

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
)

// screening shows what the screening blocks said, once the gates rest on the confirming ones.
func (v *view) screening(out *document) {
	if len(v.found.Screening) == 0 {
		return
	}
	out.line("\nThese gates rest on the confirming blocks alone, which played no part in choosing what to confirm. The screening blocks " +
		"showed:\n")
	var rows [][]string
	for _, gate := range v.found.Screening {
		estimate, blocks := "", ""
		if gate.Estimate != nil {
			estimate, blocks = analysis.Describe(gate.Estimate), fmt.Sprint(gate.Estimate.Blocks)
		}
		rows = append(rows, []string{string(gate.Outcome), gate.Gate, gate.Candidate, gate.Point, estimate, blocks})
	}
	out.table([]string{"screened", "gate", "candidate", "point", "estimate" + Interval(v.found.GateConfidence), "blocks"}, rows)
}

// controls shows the comparisons in which nothing may move.
func (v *view) controls(out *document) {
	if len(v.found.Controls) == 0 {
		return
	}
	out.heading("Controls")
	var rows [][]string
	for _, c := range v.found.Controls {
		moved, what, estimate := "no", "phase "+c.Phase, ""
		if c.Moved {
			moved = "yes"
		}
		if c.Phase == "" {
			what = analysis.StatisticName(c.Metric, c.Statistic)
		}
		if c.Estimate != nil {
			estimate = analysis.Describe(c.Estimate)
		}
		rows = append(rows, []string{moved, c.Arm, c.Point, what, estimate, c.Message})
	}
	out.table([]string{"moved", "arm", "point", "what", "of the baseline's" + Interval(v.found.GateConfidence), "message"}, rows)
	out.line("\nNothing may move here: the null arm is the baseline started from another place, and no arm changes a control phase. One " +
		"that moved is beyond accident, counting how many there are (Holm).")
}

// nodes shows the ratios of every node, when the blocks ran on several.
func (v *view) nodes(out *document) {
	var rows [][]string
	for _, ratio := range v.found.Ratios {
		for _, node := range ratio.PerNode {
			differ := "no"
			if ratio.NodesDiffer {
				differ = "yes"
			}
			rows = append(rows, []string{ratio.Point, ratio.Candidate, analysis.StatisticName(ratio.Metric, ratio.Statistic), node.Node,
				analysis.Describe(&node.Estimate), fmt.Sprint(node.Estimate.Blocks), differ})
		}
	}
	if len(rows) == 0 {
		return
	}
	out.heading("Nodes")
	out.table([]string{"point", "candidate", "metric", "node", "ratio there" + Interval(v.found.Confidence), "blocks", "nodes differ"}, rows)
}
