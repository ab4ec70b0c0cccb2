package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/record"
)

// Trials of a block are compared as neighbours: one after the other, on one machine. Attempts that say something else were not, and then
// the hour or the machine looks like the arm.

// notNeighbours reports, of the first block whose used trials did not run in the order of their slots or ran on several nodes, what they
// say instead; empty where all did.
func notNeighbours(used []*record.Attempt) string {
	blocks := map[string][]*record.Attempt{}
	for _, attempt := range used {
		blocks[attempt.Block] = append(blocks[attempt.Block], attempt)
	}
	first, strange := "", 0
	for _, block := range slices.SortedFunc(maps.Keys(blocks), record.CompareNames) {
		trials := slices.SortedFunc(slices.Values(blocks[block]), func(a, b *record.Attempt) int { return a.Slot - b.Slot })
		why := ""
		for i, attempt := range trials[1:] {
			before := trials[i]
			switch {
			case attempt.StartedAt.Before(before.StartedAt):
				why = fmt.Sprintf("slot %d began at %s and slot %d at %s", before.Slot, before.StartedAt.Format(timeFormat), attempt.Slot,
					attempt.StartedAt.Format(timeFormat))
			case nodeOf(attempt) != nodeOf(before):
				why = fmt.Sprintf("slot %d ran on node %q and slot %d on %q", before.Slot, nodeOf(before), attempt.Slot, nodeOf(attempt))
			default:
				continue
			}
			break
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

// overlapSlack is what two clocks, one of them adjusted meanwhile, may make of trials that ran one after the other.
const overlapSlack = 100 * time.Millisecond

// simultaneous reports, of the first block in which a trial began before the one before it had ended, when that was; empty where none did.
// Trials of a block run one at a time: two at once disturb each other, or the times are not those of the trials.
func simultaneous(used []*record.Attempt) string {
	trials := slices.SortedStableFunc(slices.Values(used), func(a, b *record.Attempt) int {
		return cmp.Or(record.CompareNames(a.Block, b.Block), a.Slot-b.Slot)
	})
	blocks, first := map[string]bool{}, ""
	for i, attempt := range trials {
		if i == 0 || trials[i-1].Block != attempt.Block || blocks[attempt.Block] {
			continue
		}
		before := trials[i-1]
		left := before.DurationSeconds - attempt.StartedAt.Sub(before.StartedAt).Seconds()
		if left <= overlapSlack.Seconds()+before.DurationSeconds/100 {
			continue
		}
		if blocks[attempt.Block] = true; first == "" {
			first = fmt.Sprintf("%s: slot %d began %.3g s before slot %d ended", attempt.Block, attempt.Slot, left, before.Slot)
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("trials of %d blocks ran at the same time by their own clock (%s): trials of a block run one after the other, so the "+
		"times are wrong or the "+
		"trials disturbed each other", len(blocks), first)
}

const timeFormat = "2006-01-02T15:04:05.999Z07:00"

// apart doubts gates of blocks whose trials were no neighbours.
func apart(d *data, _ *judgement, gate *GateResult) string {
	if !gate.Op.Relative() {
		return ""
	}
	return d.chosen.apart
}

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
