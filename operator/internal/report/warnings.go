package report

import (
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

// Warning is a warning or a note of the analysis. More holds the same one for other arms, points or numbers.
type Warning struct {
	Text string
	More []string
}

var digitsOf = regexp.MustCompile(`[0-9][0-9.,eE+-]*`)

// Warnings groups the warnings of the analysis.
func Warnings(exp *experiment.Experiment, result *analysis.Analysis) []Warning {
	return grouped(exp, result.Warnings)
}

// Notes groups the notes of the analysis.
func Notes(exp *experiment.Experiment, result *analysis.Analysis) []Warning {
	return grouped(exp, result.Notes)
}

func grouped(exp *experiment.Experiment, texts []string) []Warning {
	var pairs [][]string
	for _, arm := range exp.Arms {
		pairs = append(pairs, []string{arm.Name, "\x00"})
	}
	for _, point := range exp.Points {
		if point.Key != "" {
			pairs = append(pairs, []string{point.Key, "\x00"})
		}
	}
	// The longest name first, because it may begin with another.
	slices.SortStableFunc(pairs, func(a, b []string) int { return len(b[0]) - len(a[0]) })
	replacer := strings.NewReplacer(slices.Concat(pairs...)...)
	var out []Warning
	at, said := map[string]int{}, map[string]bool{}
	for _, text := range texts {
		if said[text] {
			continue
		}
		said[text] = true
		shape := digitsOf.ReplaceAllString(replacer.Replace(text), "\x00")
		if i, seen := at[shape]; seen {
			out[i].More = append(out[i].More, text)
			continue
		}
		at[shape] = len(out)
		out = append(out, Warning{Text: text})
	}
	return out
}
