package explain

import (
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/judge"
)

// workloadWarnings name arms that are of another workload than the baseline, be that planned or not.
func workloadWarnings(d *estimate.Data) []string {
	var out []string
	for _, arm := range slices.Sorted(maps.Keys(d.Chosen.Strangers)) {
		found := d.Chosen.Strangers[arm]
		if text := judge.ContradictsBaseline(d, arm); text != "" {
			out = append(out, text+": one of them is of something else, so nothing is decided")
		} else {
			out = append(out, found.Says+": they are compared as programs that do the same")
		}
	}
	return out
}
