package report

import (
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
)

// Recomputed summarizes the outcomes of gates with the trials that noise limits reject, and has a row for every gate whose outcome
// differs. It is empty if no trial was rejected.
func Recomputed(result *analysis.Analysis) (says string, table Table) {
	estimate := "estimate" + Interval(result.GateConfidence)
	table.Header = []string{"gate", "candidate", "point", "without them", estimate, "with them", estimate, "trials rejected"}
	judged := 0
	for _, gate := range result.Gates {
		again := gate.WithRejected
		if again == nil {
			continue
		}
		judged++
		if again.Outcome != again.Without {
			table.add(gate.Gate, gate.Candidate, gate.Point, verdictName(again.Without), analysis.Describe(gate.Estimate),
				verdictName(again.Outcome), analysis.Describe(again.Estimate), strconv.Itoa(again.Rejected))
		}
	}
	switch {
	case judged == 0:
		return "", table
	case table.Rows == nil:
		return "Every gate has the same outcome if the trials rejected by noise limits are included.", table
	default:
		return fmt.Sprintf("%d of %d gates have another outcome if the trials rejected by noise limits are included. A gate remains decided "+
			"only if its estimate with them is on the same side of the bound:", len(table.Rows), judged), table
	}
}

// ArmNoise tabulates the rejected trials of every arm. It is empty if no trial was beyond a noise limit.
func ArmNoise(result *analysis.Analysis) Table {
	table, any := Table{Header: []string{"arm", "trials", "rejected", "beyond a limit"}}, false
	for _, arm := range result.Noise {
		var kinds []string
		for _, kind := range noise.Kinds {
			if n := arm.Beyond[kind]; n > 0 {
				kinds = append(kinds, fmt.Sprintf("%s %d", kind, n))
				any = true
			}
		}
		table.add(arm.Arm, strconv.Itoa(arm.Trials), strconv.Itoa(arm.Rejected), strings.Join(kinds, ", "))
	}
	if !any {
		table.Rows = nil
	}
	return table
}

// recomputed writes the outcomes of gates with and without the rejected trials.
func (v *view) recomputed(out *document) {
	says, table := Recomputed(v.result)
	if says == "" {
		return
	}
	out.line("\n%s", says)
	if table.Rows != nil {
		out.line("")
		out.table(table)
	}
}

// recomputedLines formats the same for a terminal.
func recomputedLines(result *analysis.Analysis) []string {
	says, _ := Recomputed(result)
	if says == "" {
		return nil
	}
	lines := []string{says}
	for _, gate := range result.Gates {
		if again := gate.WithRejected; again != nil && again.Outcome != again.Without && gate.Severity == experiment.Blocking {
			lines = append(lines, fmt.Sprintf("  %s of %s at %s: without them %s %s, with %d of them %s %s", gate.Gate, gate.Candidate,
				analysis.PointName(gate.Point),
				again.Without, analysis.Describe(gate.Estimate), again.Rejected, again.Outcome, analysis.Describe(again.Estimate)))
		}
	}
	return lines
}
