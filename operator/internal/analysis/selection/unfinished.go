package selection

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A trial that began and of whose end nothing is known was under way when its pod or its node was lost, or when something ended what
// ran it; a trial can do that too. So it is a loss of its arm, also where the block was executed again: only repeating what went badly
// would be a way to win.

// LostUnended is how such a trial was lost.
const LostUnended = "begun and never ended"

// Unended is an execution of a trial that began and left no attempt.
type Unended struct {
	Cell             Cell
	ID, trial, block string
	warmup           bool
	// Repeated reports whether another execution of the trial ended.
	Repeated bool
}

// findUnended sorts out which trials never ended, and names the markers that contradict the plan or the experiment.
func (s *Selection) findUnended(exp *experiment.Experiment, planned plan, unfinished []record.Started, through int, found checksums) {
	points, arms := indexes(exp)
	ended := map[string]bool{}
	for attempt := range s.Cells {
		if trial.Started(attempt) {
			ended[attempt.Trial] = true
		}
	}
	for i := range unfinished {
		marker := &unfinished[i]
		wave, err := strconv.Atoi(strings.TrimPrefix(strings.SplitN(marker.Block, "-", 2)[0], "w"))
		if err == nil && wave > through {
			continue
		}
		key := path.Join("started", marker.Block, marker.ID) + ".json"
		// What decides is part of what the digest stands for. Plain fields can always be written.
		raw, _ := json.Marshal(marker)
		found[key] = record.SHA256(raw)

		point, knownPoint := points[marker.Point]
		arm, knownArm := arms[marker.Arm]
		at := Cell{point, arm}
		slot, inPlan := planned.slots[marker.Trial]
		reason := ""
		switch {
		case !knownPoint:
			reason = fmt.Sprintf("the experiment has no point %q", marker.Point)
		case !knownArm:
			reason = fmt.Sprintf("the experiment has no arm %q", marker.Arm)
		case planned.known && !inPlan:
			reason = fmt.Sprintf("no wave planned trial %s", marker.Trial)
		case planned.known && slot.cell != at:
			reason = fmt.Sprintf("trial %s was planned for another arm or point than arm %q at point %q", marker.Trial, marker.Arm, marker.Point)
		}
		if reason != "" {
			s.reject(key, foreign, "%s", reason)
			continue
		}
		s.Unended = append(s.Unended, Unended{
			Cell: at, ID: marker.ID, trial: marker.Trial, block: marker.Block,
			warmup: strings.HasPrefix(marker.Trial, marker.Block+"-w"), Repeated: ended[marker.Trial],
		})
		ended[marker.Trial] = true // A second execution that did not end either is one more loss, of the same trial.
	}
}
