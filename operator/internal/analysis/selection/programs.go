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

// rejectOtherPrograms rejects, in every cell, the attempts that executed another program than most of its attempts. This detects a tag that
// was moved between two blocks or that names another image on another node. A digest that an attempt does not have is not compared, or
// omitting a digest would be a way to exclude an attempt.
func rejectOtherPrograms(attempts []*record.Attempt, cells map[*record.Attempt]Cell) ruling {
	groups := map[variant]map[string][]*record.Attempt{}
	for _, attempt := range attempts {
		executed := trial.ListPrograms(trial.ProgramsOf(attempt))
		if executed == "" {
			continue
		}
		in := Inner(groups, variant{cells[attempt], attempt.Build})
		in[executed] = append(in[executed], attempt)
	}
	others := map[*record.Attempt]string{}
	for _, in := range groups {
		// Between equals the text that sorts first, so that the choice does not depend on the order of the attempts.
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
	return rule(attempts, environment, func(attempt *record.Attempt) string { return others[attempt] })
}
