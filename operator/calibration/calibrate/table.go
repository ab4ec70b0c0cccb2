package calibrate

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
)

// Table formats the tallies as a Markdown table; every share has a 95 % interval.
func Table(tallies []Tally) string {
	var out strings.Builder
	out.WriteString("| machine | true effect | runs | wrong verdicts | false Go | false NoGo | without naming the assumption | power | " +
		"coverage of 95 % | of the plain interval | blocks |\n")
	out.WriteString("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, t := range tallies {
		power := "-"
		if t.Effect > 0 {
			power = NewShare(t.Right, t.Runs).String()
		}
		fmt.Fprintf(&out, "| %s | %s | %d | %s | %d | %d | %d | %s | %s | %s | %s |\n", t.Scenario.Name, quantity.PercentTo(t.Effect, 0), t.Runs,
			NewShare(t.False(), t.Runs), t.FalseGo, t.FalseNoGo, t.Unnamed, power, NewShare(t.Covered, t.Intervals),
			NewShare(t.PlainCovered, t.Intervals), quantity.Decimals(float64(t.Blocks)/float64(t.Runs), 1))
	}
	return out.String()
}

// pageWidth is the maximum line length of a document, except in tables.
const pageWidth = 140

// Legend explains the machines of the table.
func Legend(tallies []Tally) string {
	var out strings.Builder
	seen := map[string]bool{}
	for _, t := range tallies {
		if seen[t.Scenario.Name] {
			continue
		}
		seen[t.Scenario.Name] = true
		claim := ""
		if !t.Scenario.Claimed {
			claim = " **Not claimed:** here the method ends."
		}
		line := fmt.Sprintf("* `%s`: %s.%s", t.Scenario.Name, t.Scenario.What, claim)
		out.WriteString(strings.Join(report.Wrap(line, pageWidth), "\n") + "\n")
	}
	return out.String()
}
