package selection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// Trials of a block are compared as neighbours: one after the other, on one machine. Attempts that say something else were not, and then
// the hour or the machine looks like the arm.

// notNeighbours reports, of the first block whose measured trials did not run in the order of their slots or were measured differently in
// what is the same for a block, what they say instead; empty where all did. They are in the order of their trials.
func notNeighbours(measured []*record.Attempt) string {
	blocks := map[string][]*record.Attempt{}
	for _, attempt := range measured {
		blocks[attempt.Block] = append(blocks[attempt.Block], attempt)
	}
	first, strange := "", 0
	for _, block := range slices.SortedFunc(maps.Keys(blocks), record.CompareNames) {
		why, trials := "", blocks[block]
		for i, attempt := range trials[1:] {
			before := trials[i]
			if attempt.StartedAt.Before(before.StartedAt) {
				why = fmt.Sprintf("slot %d began at %s and slot %d at %s", before.Slot, before.StartedAt.Format(timeFormat), attempt.Slot,
					attempt.StartedAt.Format(timeFormat))
			} else {
				why = measuredApart(before, attempt)
			}
			if why != "" {
				break
			}
		}
		if why == "" {
			continue
		}
		if strange++; first == "" {
			first = block + ": " + why
		}
	}
	if strange == 0 {
		return ""
	}
	return fmt.Sprintf("the trials of %d of %d blocks were no neighbours (%s)", strange, len(blocks), first)
}

const timeFormat = "2006-01-02T15:04:05.999Z07:00"

// contradictsArms describes how the arms of a plan are not those of the experiment; empty where they are. A plan of a search may have
// fewer.
func contradictsArms(experiment, plan []record.Arm) string {
	for i, arm := range plan {
		at := slices.IndexFunc(experiment, func(a record.Arm) bool { return a.Name == arm.Name })
		switch {
		case at < 0:
			var names []string
			for _, a := range experiment {
				names = append(names, a.Name)
			}
			return fmt.Sprintf("arms[%d] is %q and the experiment has %s", i, arm.Name, strings.Join(names, ", "))
		case experiment[at].Baseline != arm.Baseline || experiment[at].Null != arm.Null:
			return fmt.Sprintf("arms[%d], %q, has baseline %v and null %v, and in the experiment baseline %v and null %v", i, arm.Name, arm.Baseline,
				arm.Null,
				experiment[at].Baseline, experiment[at].Null)
		}
	}
	return ""
}
