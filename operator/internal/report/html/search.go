package html

import (
	"cmp"
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	summary "assay.dev/assay/operator/internal/report"
)

// search fills in what a search found: the answer of every arm, and every load that was tried.
func (b *builder) search(r *report) {
	if len(b.found.Search) == 0 {
		return
	}
	r.Axis, r.Maximized = b.found.Search[0].Axis, b.found.Search[0].Metric
	r.Loads.Header = []string{"arm", r.Axis, "found", "blocks", "by fresh blocks", "constraint"}
	for _, result := range b.found.Search {
		feasible := "none"
		switch {
		case result.Interval != nil:
			feasible = fmt.Sprintf("%s [%s, %s)", result.FeasibleMax, result.Interval.Low, result.Interval.High)
		case result.FeasibleMax != "":
			feasible = result.FeasibleMax + " or more"
		}
		r.Answers = append(r.Answers, answer{result.Arm, feasible, gain(result.Value), result.Reason, result.BindingConstraint})
		for _, level := range result.Levels {
			fresh, constraint := "", level.Probe.Constraint
			if level.Fresh != nil {
				fresh, constraint = string(level.Fresh.Outcome), cmp.Or(level.Fresh.Constraint, constraint)
			}
			r.Loads.Rows = append(r.Loads.Rows, []string{
				result.Arm, level.Load, string(level.Probe.Outcome), fmt.Sprintf("%d of %d", level.Probe.Blocks, level.Probe.Planned), fresh,
				constraint,
			})
		}
	}
}

// controls are the comparisons in which nothing may move.
func (b *builder) controls() table {
	out := table{Header: []string{"moved", "arm", "point", "what", "of the baseline's" + summary.Interval(b.found.GateConfidence), "message"}}
	for _, c := range b.found.Controls {
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
		out.Rows = append(out.Rows, []string{moved, c.Arm, c.Point, what, estimate, c.Message})
	}
	return out
}

// screening is what the blocks said that chose what to confirm.
func (b *builder) screening() table {
	out := table{Header: []string{"screened", "gate", "candidate", "point", "estimate" + summary.Interval(b.found.GateConfidence), "blocks"}}
	for _, g := range b.found.Screening {
		estimate, blocks := "", ""
		if g.Estimate != nil {
			estimate, blocks = analysis.Describe(g.Estimate), fmt.Sprint(g.Estimate.Blocks)
		}
		out.Rows = append(out.Rows, []string{string(g.Outcome), g.Gate, g.Candidate, g.Point, estimate, blocks})
	}
	return out
}
