package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/record"
)

// rejectOtherPrograms keeps, in every cell, the attempts that executed what most of them did. A tag that was moved between two
// blocks, or that names another image on another node, shows here. A digest that an attempt does not have says nothing: what is left out
// because of it would be whatever somebody left it out of.
func (s *Selection) rejectOtherPrograms(attempts []*record.Attempt) []*record.Attempt {
	cells := map[variant]map[string][]*record.Attempt{}
	for _, attempt := range attempts {
		executed := trial.ListPrograms(trial.ProgramsOf(attempt))
		if executed == "" {
			continue
		}
		in := Inner(cells, variant{s.Cells[attempt], attempt.Build})
		in[executed] = append(in[executed], attempt)
	}
	others := map[*record.Attempt]string{}
	for _, in := range cells {
		// With equal numbers the text that sorts first, so that the choice never depends on order.
		most := slices.MinFunc(slices.Sorted(maps.Keys(in)), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(in[b]), len(in[a])), cmp.Compare(a, b))
		})
		for _, these := range in {
			known := trial.ProgramsOf(in[most][0])
			maps.DeleteFunc(known, func(key, _ string) bool { _, ok := trial.ProgramsOf(these[0])[key]; return !ok })
			for _, attempt := range these {
				own := trial.ProgramsOf(attempt)
				maps.DeleteFunc(own, func(key, _ string) bool { _, ok := known[key]; return !ok })
				if how := differences(own, known, func(digest string, _ bool) string { return digest }); len(how) > 0 {
					others[attempt] = fmt.Sprintf("it executed another program than most attempts of %s at this point: %s; name the arm's image by "+
						"digest", trial.ArmBuild(attempt), strings.Join(how, ", "))
				}
			}
		}
	}
	return s.keep(attempts, environment, func(attempt *record.Attempt) string { return others[attempt] })
}
