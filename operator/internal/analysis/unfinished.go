package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A trial that began and of whose end nothing is known was under way when its pod or its node was lost, or when something ended what
// ran it; a trial can do that too. So it is a loss of its arm, also where the block was executed again: only repeating what went badly
// would be a way to win.

const lostUnended = "begun and never ended"

// unended is an execution of a trial that began and left no attempt.
type unended struct {
	cell             cell
	id, trial, block string
	warmup           bool
	// repeated reports whether another execution of the trial ended.
	repeated bool
}

func startedKey(started *record.Started) string {
	return path.Join("started", started.Block, started.ID) + ".json"
}

// findUnended sorts out which trials never ended, and names the markers that contradict the plan or the experiment.
func (s *selection) findUnended(exp *experiment.Experiment, planned plan, unfinished []record.Started, through int, found checksums) {
	points, arms := indexes(exp)
	ended := map[string]bool{}
	for attempt := range s.cells {
		if started(attempt) {
			ended[attempt.Trial] = true
		}
	}
	for i := range unfinished {
		marker := &unfinished[i]
		wave, err := strconv.Atoi(strings.TrimPrefix(strings.SplitN(marker.Block, "-", 2)[0], "w"))
		if err == nil && wave > through {
			continue
		}
		key := startedKey(marker)
		// What decides is part of what the digest stands for. Plain fields can always be written.
		raw, _ := json.Marshal(marker)
		sum := sha256.Sum256(raw)
		found[key] = hex.EncodeToString(sum[:])

		point, knownPoint := points[marker.Point]
		arm, knownArm := arms[marker.Arm]
		at := cell{point, arm}
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
		s.unended = append(s.unended, unended{
			cell: at, id: marker.ID, trial: marker.Trial, block: marker.Block,
			warmup: strings.HasPrefix(marker.Trial, marker.Block+"-w"), repeated: ended[marker.Trial],
		})
		ended[marker.Trial] = true // A second execution that did not end either is one more loss, of the same trial.
	}
}

// unfinishedWarnings name the trials that were begun and of whose end nothing is known, by arm. An arm with many more than the others
// may have had a hand in it.
func unfinishedWarnings(exp *experiment.Experiment, unfinished []unended) []string {
	if len(unfinished) == 0 {
		return nil
	}
	arms := map[string]int{}
	repeated := 0
	for _, one := range unfinished {
		arms[exp.Arms[one.cell.arm].Name]++
		if one.repeated {
			repeated++
		}
	}
	var parts []string
	for _, arm := range slices.Sorted(maps.Keys(arms)) {
		parts = append(parts, fmt.Sprintf("%d of arm %s", arms[arm], arm))
	}
	return []string{fmt.Sprintf("trials started and nothing is known of their end (%s), the first %s: their pods or nodes were lost, or a "+
		"trial ended what ran it; "+
		"another execution of %d of them ended", strings.Join(parts, ", "), unfinished[0].id, repeated)}
}
