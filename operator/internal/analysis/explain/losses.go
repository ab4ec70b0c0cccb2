package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// lossWarnings name the arms with missing results. The remaining trials may be the easier half.
func lossWarnings(d *estimate.Data) []string {
	var out []string
	for arm := range d.Exp.Arms {
		all, timeouts := d.Chosen.Lost.OfArm(arm), 0
		for point := range d.Exp.Points {
			for _, seconds := range d.TimedOut[selection.At(point, arm)] {
				timeouts += len(seconds)
			}
		}
		if all.Lost.Total() == 0 {
			continue
		}
		more := ""
		if all.Lost.Total() > len(all.Some) {
			more = ", …"
		}
		text := fmt.Sprintf("arm %s lost %s, first %s%s; its figures rest on the others", d.Exp.Arms[arm].Name, all,
			strings.Join(all.Some, "; "), more)
		if timeouts > 0 {
			text += fmt.Sprintf(", and times and rates also on the %d that timed out, taken at the bound", timeouts)
		}
		out = append(out, text)
	}
	return out
}

// changedWarnings names the arms whose program changed during the run, also those without a gate.
func changedWarnings(d *estimate.Data) []string {
	var out []string
	for _, arm := range slices.Sorted(maps.Keys(d.Chosen.Changed)) {
		out = append(out, fmt.Sprintf("arm %s changed during the run: %s; its figures are not those of one program", d.Exp.Arms[arm].Name,
			d.Chosen.Changed[arm]))
	}
	return out
}

// unfinishedWarnings names the trials that started without a recorded end, by arm. An arm with many more than the others may have caused
// it.
func unfinishedWarnings(exp *experiment.Experiment, unfinished []selection.Unfinished) []string {
	if len(unfinished) == 0 {
		return nil
	}
	arms := map[string]int{}
	repeated := 0
	for _, one := range unfinished {
		arms[exp.Arms[one.Cell.Arm].Name]++
		if one.Repeated {
			repeated++
		}
	}
	var parts []string
	for _, arm := range slices.Sorted(maps.Keys(arms)) {
		parts = append(parts, fmt.Sprintf("%d of arm %s", arms[arm], arm))
	}
	return []string{fmt.Sprintf("trials started without a recorded end (%s), the first %s; their pods or nodes were lost, or a trial "+
		"killed its runner; another execution of %d of them ended", strings.Join(parts, ", "), unfinished[0].ID, repeated)}
}
