package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// buildWarnings name arms whose trials did not all run the same build. Two builds of one source differ in layout and so in
// speed; an arm that mixes them compares something that nobody chose.
func buildWarnings(d *data) []string {
	var out []string
	for arm := range d.exp.Arms {
		builds := map[string]bool{}
		for point := range d.exp.Points {
			for _, attempt := range d.trials[cell{point, arm}] {
				workload := attempt.Reported().Workload
				name := workload.Name + " " + workload.Version
				for _, key := range slices.Sorted(maps.Keys(workload.Build)) {
					name += fmt.Sprintf(" %s=%s", key, workload.Build[key])
				}
				builds[name] = true
			}
		}
		if len(builds) > 1 {
			out = append(out, fmt.Sprintf("the trials of arm %s ran %d builds: %s", d.exp.Arms[arm].Name, len(builds), strings.Join(slices.Sorted(maps.Keys(builds)), "; ")))
		}
	}
	return out
}
