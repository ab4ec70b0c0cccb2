package selection

import (
	"fmt"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/record"
)

// Trials of a block are compared as neighbours: one ran after the other on one machine. If attempts report something else, an effect of
// the time or the machine may look like an effect of the arm.

// findSeparated describes the first block whose measured trials did not run in the order of their slots, or under conditions that are
// constant within a block and differ between them; empty if there is no such block. The attempts are in the order of their trials.
func findSeparated(measured []*record.Attempt) string {
	blocks := map[string][]*record.Attempt{}
	for _, attempt := range measured {
		blocks[attempt.Block] = append(blocks[attempt.Block], attempt)
	}
	first, count := "", 0
	for _, block := range slices.SortedFunc(maps.Keys(blocks), record.CompareNames) {
		why := apart(blocks[block])
		if why == "" {
			continue
		}
		if count++; first == "" {
			first = block + ": " + why
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("the trials of %d of %d blocks were no neighbours (%s)", count, len(blocks), first)
}

// apart describes the first two consecutive trials of a block that were no neighbours; empty if all were.
func apart(trials []*record.Attempt) string {
	for i, attempt := range trials[1:] {
		before := trials[i]
		if attempt.StartedAt.Before(before.StartedAt) {
			return fmt.Sprintf("slot %d began at %s and slot %d at %s", before.Slot, before.StartedAt.Format(timeFormat), attempt.Slot,
				attempt.StartedAt.Format(timeFormat))
		}
		if why := measuredApart(before, attempt); why != "" {
			return why
		}
	}
	return ""
}

const timeFormat = "2006-01-02T15:04:05.999Z07:00"

// findCopy describes the first two used trials in different blocks that are one process: they started at one instant on one node and have
// exactly the same duration. Copies narrow an interval without measuring anything. A block whose trials all start at one instant has no
// usable start times and is not compared.
func findCopy(used []*record.Attempt) string {
	type process struct {
		node    string
		began   int64
		seconds float64
	}
	first, began := map[process]*record.Attempt{}, map[string]map[int64]bool{}
	for _, attempt := range used {
		Inner(began, attempt.Block)[attempt.StartedAt.UnixNano()] = true
	}
	for _, attempt := range used {
		of := process{trial.NodeOf(attempt), attempt.StartedAt.UnixNano(), attempt.DurationSeconds}
		switch before := first[of]; {
		case len(began[attempt.Block]) < 2:
		case before == nil:
			first[of] = attempt
		case before.Block != attempt.Block:
			return fmt.Sprintf("trials %s and %s began at the same instant and took as long to the last digit, so that one is a copy of the other",
				before.Trial, attempt.Trial)
		}
	}
	return ""
}
