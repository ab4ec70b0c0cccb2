package experiment

import (
	"fmt"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// checkEnvironment rejects requirements that no block can meet.
func checkEnvironment(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	if spec.Placement.RequireStaticCPUManager && !PlacementOf(spec.Placement).AsksExclusiveCPUs() {
		problems.add("spec.placement.requireStaticCPUManager",
			"the run needs exclusive CPUs and has exclusive: %s: write exclusive: CPUs", spec.Placement.Exclusive)
	}
	if spec.Environment == nil {
		return
	}
	for key, value := range sorted(spec.Environment.Require) {
		field := "spec.environment.require." + key
		switch {
		case key == "":
			problems.add("spec.environment.require", "a key is empty: name a key of the fingerprint")
		case key == "nullProgram":
			problems.add(field, "only trials of the null arm have this key, and its value differs in every block: remove it")
		case value == "":
			problems.add(field, "the value is empty, and a property that a machine does not report never matches: remove the key, or write a value")
		}
	}
}

// EnvironmentWarnings lists required keys that this release's runner never reports. They are warnings and not errors, because another
// release's runner may report them; with this one, no trial would start.
func EnvironmentWarnings(require map[string]string) []string {
	var out []string
	for key := range sorted(require) {
		if key != "" && !slices.Contains(record.HardKeys, key) && !slices.Contains(record.SoftKeys, key) {
			out = append(out, fmt.Sprintf("spec.environment.require.%s: the runner reports no such key, and a block that cannot read a required "+
				"key runs no trial; hard keys are %s", key, strings.Join(record.HardKeys, ", ")))
		}
	}
	return out
}
