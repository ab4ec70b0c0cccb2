package selection

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A trial that started and left no attempt was running when its pod or its node was lost, or when it was killed; a trial can cause that
// too. So it is a loss of its arm, even if the block was executed again: repeating only slow trials would be a way to win.

// LostUnfinished is the name of such a loss.
const LostUnfinished = "begun and never ended"

// Unfinished is an execution of a trial that started and left no attempt.
type Unfinished struct {
	Cell             Cell
	ID, trial, block string
	warmup           bool
	// Repeated reports whether another execution of the trial ended.
	Repeated bool
}

// countsOnce reports whether this is the only execution of a measured trial.
func (u Unfinished) countsOnce() bool { return !u.warmup && !u.Repeated }

// findUnfinished returns the unfinished trials of the experiment, and excludes the start markers that contradict the plan or the
// experiment.
func findUnfinished(exp *experiment.Experiment, planned plan, own []*record.Attempt, markers []record.Started) (out []Unfinished,
	excluded []Exclusion) {
	points, arms := indexes(exp)
	ended := map[string]bool{}
	for _, attempt := range own {
		if trial.Started(attempt) {
			ended[attempt.Trial] = true
		}
	}
	for _, marker := range markers {
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
			excluded = append(excluded, exclude(markerKey(marker), foreign, "%s", reason))
			continue
		}
		out = append(out, Unfinished{
			Cell: at, ID: marker.ID, trial: marker.Trial, block: marker.Block,
			warmup: strings.HasPrefix(marker.Trial, marker.Block+"-w"), Repeated: ended[marker.Trial],
		})
		ended[marker.Trial] = true // A second unfinished execution is one more loss of the same trial.
	}
	return out, excluded
}

// markersUpTo returns the start markers of the waves up to and including wave, and those whose block names no wave.
func markersUpTo(markers []record.Started, wave int) (out []record.Started) {
	for _, marker := range markers {
		of, err := strconv.Atoi(strings.TrimPrefix(strings.SplitN(marker.Block, "-", 2)[0], "w"))
		if err != nil || of <= wave {
			out = append(out, marker)
		}
	}
	return out
}

// markerSums returns the checksums of start markers: they decide, so that the digest covers them.
func markerSums(markers []record.Started) checksums {
	out := checksums{}
	for _, marker := range markers {
		raw, _ := json.Marshal(marker) // Cannot fail: all fields are texts.
		out[markerKey(marker)] = record.SHA256(raw)
	}
	return out
}
