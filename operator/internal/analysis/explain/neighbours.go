package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

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
			first = fmt.Sprintf("%s: slot %d began %s s before slot %d ended", attempt.Block, attempt.Slot, quantity.Plain(left, 3), before.Slot)
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("trials of %d blocks ran at the same time by their own clock (%s): trials of a block run one after the other, so the "+
		"times are wrong or the "+
		"trials disturbed each other", len(blocks), first)
}
