package report

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
)

// Assumptions returns a sentence for every assumption about noise that decided gates rest on. It names the first of the gates.
func Assumptions(result *analysis.Analysis) []string {
	var names []analysis.AssumptionName
	of := map[analysis.AssumptionName][]analysis.Assumption{}
	for _, one := range result.Assumptions {
		if of[one.Name] == nil {
			names = append(names, one.Name)
		}
		of[one.Name] = append(of[one.Name], one)
	}
	var out []string
	for _, name := range names {
		first, gates := of[name][0], ""
		if more := len(of[name]) - 1; more > 0 {
			gates = fmt.Sprintf(" (and of %d more)", more)
		}
		where := ""
		if first.Point != "" {
			where = " at " + first.Point
		}
		out = append(out, fmt.Sprintf("%s of gate %s for %s%s%s assumes that %s", first.Outcome, first.Gate, first.Candidate, where, gates,
			first.Text))
	}
	return out
}

// assumptionNames are the assumptions in short.
var assumptionNames = map[analysis.AssumptionName]string{
	analysis.AssumesIndependentBlocks: "no drift, warm-up or sessions of one arm over several blocks",
	analysis.AssumesNoRareSlowdown:    "no rare slowdown of one arm",
}

// AssumptionsInShort lists the assumptions about noise that decided gates rest on; empty without any.
func AssumptionsInShort(result *analysis.Analysis) string {
	var out []string
	seen := map[analysis.AssumptionName]bool{}
	for _, one := range result.Assumptions {
		if !seen[one.Name] {
			seen[one.Name] = true
			out = append(out, assumptionNames[one.Name])
		}
	}
	return strings.Join(out, ", and ")
}

func (v *view) assumptions(out *document) {
	all := Assumptions(v.result)
	if len(all) == 0 {
		return
	}
	out.heading("Assumptions")
	for _, text := range all {
		out.line("* %s.", Escape(text))
	}
}
