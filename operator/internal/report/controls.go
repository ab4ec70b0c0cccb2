package report

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
)

// Screening tabulates the results of the screening blocks if the gates use the confirming blocks. It has no rows if nothing was confirmed.
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

// Controls tabulates the comparisons that should show no difference.
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
		out.line("\nNo difference is expected here. The null arm is the baseline started from another path, and no arm changes a " +
			"control phase. Differences are significant after correction for the number of controls (Holm).")
	}
}

// CarryOver tabulates the effects of the arms on the next trial.
func CarryOver(result *analysis.Analysis) Table {
	table := Table{Header: []string{"after arm", "point", "metric", "other arms, of their own figure" + Interval(result.GateConfidence),
		"blocks"}}
	for _, c := range result.CarryOver {
		table.add(c.Arm, c.Point, analysis.StatisticName(c.Metric, c.Statistic), analysis.Describe(&c.Estimate), fmt.Sprint(c.Estimate.Blocks))
	}
	return table
}

func (v *view) carryOver(out *document) {
	if out.section("Effect on the next trial", CarryOver(v.result)) {
		out.line("\nThe first trial of an arm after another arm, over the trials of the same arm after itself. These first trials count in no " +
			"other figure.")
	}
}

// nodes shows the ratios per node if the blocks ran on several nodes.
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
