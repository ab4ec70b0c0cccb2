package report

import (
	"cmp"
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/search"
)

// search writes the answer for every arm and the outcomes at every load.
func (v *view) search(out *document) {
	if len(v.result.Search) == 0 {
		return
	}
	first := v.result.Search[0]
	var constraints []string
	for _, c := range v.exp.Plan.Search.SubjectTo {
		constraints = append(constraints, analysis.Asked(v.exp, c))
	}
	out.heading("The highest feasible " + Escape(first.Axis))
	out.line("Feasible means, over the whole interval at %s confidence: %s. Every trial has to complete.\n",
		Confidence(v.result.GateConfidence), Escape(strings.Join(constraints, "; ")))
	answers := Table{Header: []string{"arm", "highest feasible", "lowest infeasible", "first estimate beyond", "binding constraint",
		first.Metric + " there", "confirmed", "how it ended"}}
	for _, result := range v.result.Search {
		value := "-"
		if result.Value != nil {
			value = analysis.Describe(result.Value)
		}
		answers.add(result.Arm, or(result.FeasibleMax), or(result.InfeasibleMin), or(result.FirstBreach), or(result.BindingConstraint),
			value, yes(result.Confirmed), result.Reason)
	}
	out.table(answers)
	out.section("Loads tried", Tried(v.result))
}

// Tried tabulates the outcomes at every load of a search.
func Tried(result *analysis.Analysis) Table {
	var table Table
	for _, found := range result.Search {
		table.Header = []string{"arm", found.Axis, "found", "blocks", "found by fresh blocks", "blocks", "constraint"}
		for _, level := range found.Levels {
			fresh, blocks := "", ""
			if level.Fresh != nil {
				fresh, blocks = string(level.Fresh.Outcome), fmt.Sprintf("%d of %d", level.Fresh.Blocks, level.Fresh.Planned)
			}
			table.add(found.Arm, level.Load, string(level.Probe.Outcome), fmt.Sprintf("%d of %d", level.Probe.Blocks, level.Probe.Planned),
				fresh, blocks, deciding(level))
		}
	}
	return table
}

// answerLine formats the answer for one arm.
func answerLine(result analysis.SearchResult) string {
	text := "no feasible " + result.Axis
	if feasible := Feasible(result); feasible != "" {
		text = result.Axis + " " + feasible
	}
	if result.Value != nil {
		text += fmt.Sprintf(", %s %s", result.Metric, analysis.Describe(result.Value))
	}
	return result.Arm + ": " + text + ": " + result.Reason
}

// Feasible formats the highest feasible load with its interval, or "".
func Feasible(result analysis.SearchResult) string {
	switch {
	case result.Interval != nil:
		return fmt.Sprintf("%s [%s, %s)", result.FeasibleMax, result.Interval.Low, result.Interval.High)
	case result.FeasibleMax != "":
		return result.FeasibleMax + " or more"
	default:
		return ""
	}
}

func deciding(level search.Level) string {
	if level.Fresh != nil && level.Fresh.Constraint != "" {
		return level.Fresh.Constraint
	}
	return level.Probe.Constraint
}

func or(value string) string { return cmp.Or(value, "-") }

func yes(value bool) string {
	if value {
		return "yes"
	}
	return "no"
}
