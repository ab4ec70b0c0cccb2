package report

import (
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
)

// Twice describes the gates' outcomes with the trials that noise limits reject, and has a row for every gate whose outcome then differs.
// It is empty if nothing was rejected.
func Twice(result *analysis.Analysis) (says string, table Table) {
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
		return "Every gate has the same outcome with the trials that noise limits reject.", table
	default:
		return fmt.Sprintf("%d of %d gates have another outcome with the trials that noise limits reject. A gate stays decided only where its "+
			"estimate keeps to its side with them:", len(table.Rows), judged), table
	}
}

// ArmNoise has a row for every arm, if any of them had a trial beyond a noise limit.
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

// twice is the gates with and without the rejected trials.
func (v *view) twice(out *document) {
	says, table := Twice(v.result)
	if says == "" {
		return
	}
	out.line("\n%s", says)
	if table.Rows != nil {
		out.line("")
		out.table(table)
	}
}

// twiceLines are the same for a terminal.
func twiceLines(result *analysis.Analysis) []string {
	says, _ := Twice(result)
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
