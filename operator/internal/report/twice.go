package report

import (
	"fmt"
	"strconv"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
)

// ArmNoiseHeader belongs to the rows of ArmNoise.
var ArmNoiseHeader = []string{"arm", "trials", "rejected", "beyond a limit"}

// TwiceHeader belongs to the rows of Twice.
func TwiceHeader(found *analysis.Analysis) []string {
	estimate := "estimate" + Interval(found.GateConfidence)
	return []string{"gate", "candidate", "point", "without them", estimate, "with them", estimate, "trials rejected"}
}

// Twice describes the gates' outcomes with the trials that noise limits reject, and has a row for every gate whose outcome then differs.
// It is empty if nothing was rejected.
func Twice(found *analysis.Analysis) (says string, rows [][]string) {
	judged := 0
	for _, gate := range found.Gates {
		again := gate.WithRejected
		if again == nil {
			continue
		}
		judged++
		if again.Outcome != again.Without {
			rows = append(rows, []string{
				gate.Gate, gate.Candidate, gate.Point, verdictName(again.Without), analysis.Describe(gate.Estimate),
				verdictName(again.Outcome), analysis.Describe(again.Estimate), strconv.Itoa(again.Rejected),
			})
		}
	}
	switch {
	case judged == 0:
		return "", nil
	case len(rows) == 0:
		return "Every gate has the same outcome with the trials that noise limits reject.", nil
	default:
		return fmt.Sprintf("%d of %d gates have another outcome with the trials that noise limits reject. A gate stays decided only where its "+
			"estimate keeps to its side with them:", len(rows), judged), rows
	}
}

// ArmNoise has a row for every arm, if any of them had a trial beyond a noise limit.
func ArmNoise(found *analysis.Analysis) [][]string {
	var rows [][]string
	any := false
	for _, arm := range found.Noise {
		kinds := ""
		for _, kind := range noise.Kinds {
			if n := arm.Beyond[kind]; n > 0 {
				if kinds != "" {
					kinds += ", "
				}
				kinds += fmt.Sprintf("%s %d", kind, n)
				any = true
			}
		}
		rows = append(rows, []string{arm.Arm, strconv.Itoa(arm.Trials), strconv.Itoa(arm.Rejected), kinds})
	}
	if !any {
		return nil
	}
	return rows
}

// twice is the gates with and without the rejected trials.
func (v *view) twice(out *document) {
	says, rows := Twice(v.found)
	if says == "" {
		return
	}
	out.line("\n%s", says)
	if len(rows) > 0 {
		out.line("")
		out.table(TwiceHeader(v.found), rows)
	}
}

// twiceLines are the same for a terminal.
func twiceLines(found *analysis.Analysis) []string {
	says, _ := Twice(found)
	if says == "" {
		return nil
	}
	lines := []string{says}
	for _, gate := range found.Gates {
		if again := gate.WithRejected; again != nil && again.Outcome != again.Without && gate.Severity == experiment.Blocking {
			lines = append(lines, fmt.Sprintf("  %s of %s at %s: without them %s %s, with %d of them %s %s", gate.Gate, gate.Candidate,
				analysis.PointName(gate.Point),
				again.Without, analysis.Describe(gate.Estimate), again.Rejected, again.Outcome, analysis.Describe(again.Estimate)))
		}
	}
	return lines
}
