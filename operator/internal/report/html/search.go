package html

import (
	"cmp"
	"fmt"
)

// search fills in what a search found: the answer of every arm, and every load that was tried.
func (b *builder) search(r *report) {
	if len(b.result.Search) == 0 {
		return
	}
	r.Axis, r.Maximized = b.result.Search[0].Axis, b.result.Search[0].Metric
	r.Loads.Header = []string{"arm", r.Axis, "found", "blocks", "by fresh blocks", "constraint"}
	for _, result := range b.result.Search {
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
