package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/trial"
)

// buildWarnings names arms whose trials did not all run one build, as reported by the program, and listed builds of an arm with the same
// executable. Two builds of one source differ in layout and so in speed. An arm that mixes them without listing them
// compares layouts as well.
func buildWarnings(d *estimate.Data) []string {
	var out []string
	for arm := range d.Exp.Arms {
		out = append(out, sameBuilds(d, arm)...)
		programs := map[string]map[string]bool{}
		for point := range d.Exp.Points {
			for _, attempt := range d.Trials[selection.At(point, arm)] {
				workload := attempt.Reported().Workload
				name := workload.Name + " " + workload.Version
				for _, key := range slices.Sorted(maps.Keys(workload.Build)) {
					name += fmt.Sprintf(" %s=%s", key, workload.Build[key])
				}
				selection.Inner(programs, trial.ArmBuild(attempt))[name] = true
			}
		}
		for _, who := range slices.Sorted(maps.Keys(programs)) {
			if builds := programs[who]; len(builds) > 1 {
				out = append(out, fmt.Sprintf("the trials of %s ran %d builds: %s", who, len(builds),
					strings.Join(slices.Sorted(maps.Keys(builds)), "; ")))
			}
		}
	}
	return out
}

// sameBuilds names the builds of an arm that executed the same program, because they count as one.
func sameBuilds(d *estimate.Data, arm int) []string {
	builds := map[string][]string{}
	for point := range d.Exp.Points {
		for _, attempt := range d.Trials[selection.At(point, arm)] {
			if programs := trial.ExecutedFiles(attempt); attempt.Build != "" && programs != "" && !slices.Contains(builds[programs], attempt.Build) {
				builds[programs] = append(builds[programs], attempt.Build)
			}
		}
	}
	var out []string
	for _, programs := range slices.Sorted(maps.Keys(builds)) {
		if same := builds[programs]; len(same) > 1 {
			slices.Sort(same)
			out = append(out, fmt.Sprintf("builds %s of arm %s executed the same program, so that they count as one: %s",
				strings.Join(same, ", "), d.Exp.Arms[arm].Name, strings.ReplaceAll(strings.TrimSpace(programs), "\n", ", ")))
		}
	}
	return out
}
