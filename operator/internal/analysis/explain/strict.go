package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// strictWarnings name gaps and contradictions of a ledger that do not prevent a verdict.
func strictWarnings(d *estimate.Data) []string {
	out := workloadWarnings(d)
	if overlap := simultaneous(d.Chosen.Used); overlap != "" {
		out = append(out, overlap)
	}
	if ran, least := len(blocksOf(d.Chosen, false)), d.Exp.Plan.Design.Blocks.Min; ran > 0 && ran < least && d.Exp.Plan.Search == nil {
		out = append(out, fmt.Sprintf("the figures rest on %d blocks, and spec.design.blocks.min asks for at least %d", ran, least))
	}
	if confirm := d.Exp.Plan.Design.Confirm; confirm != nil && d.Exp.Plan.Search == nil {
		if ran := blocksOf(d.Chosen, true); len(ran) > 0 && len(ran) < confirm.Blocks {
			out = append(out, fmt.Sprintf("%d blocks confirm, and spec.design.confirm.blocks asks for %d", len(ran), confirm.Blocks))
		}
	}
	if full, most := fullScreened(d), d.Exp.Plan.Design.Blocks.Max; most > 0 && full > most && d.Exp.Plan.Search == nil {
		out = append(out, fmt.Sprintf("%d screening blocks ran every arm at every point, and spec.design.blocks.max allows %d; blocks added "+
			"after an analysis raise the error rate above that of the gates' confidence", full, most))
	}
	return out
}

// blocksOf returns the blocks with used trials: the confirming ones, or all others.
func blocksOf(chosen *selection.Selection, confirming bool) map[string]bool {
	blocks := map[string]bool{}
	for _, attempt := range chosen.Used {
		if (chosen.Purposes[attempt.Block] == record.Confirm) == confirming {
			blocks[attempt.Block] = true
		}
	}
	return blocks
}

// fullScreened counts the screening blocks with a used trial of every arm at every point. Such a block needs no replacement.
func fullScreened(d *estimate.Data) int {
	cells := map[string]map[selection.Cell]bool{}
	for _, attempt := range d.Chosen.Used {
		if d.Chosen.Purposes[attempt.Block] != record.Confirm {
			selection.Inner(cells, attempt.Block)[d.Chosen.Cells[attempt]] = true
		}
	}
	full := 0
	for _, in := range cells {
		if len(in) == len(d.Exp.Points)*len(d.Exp.Arms) {
			full++
		}
	}
	return full
}

// overlapSlack is the apparent overlap of consecutive trials that two clocks can cause, one of them adjusted between the trials.
const overlapSlack = 100 * time.Millisecond

// simultaneous describes the first block in which a trial began before the previous one had ended; "" without one. Trials of a block run
// one at a time, so an overlap means that they disturbed each other or that the times are wrong.
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

// workloadWarnings names arms that report another workload than the baseline, planned or not.
func workloadWarnings(d *estimate.Data) []string {
	var out []string
	for _, arm := range slices.Sorted(maps.Keys(d.Chosen.OtherWorkloads)) {
		found := d.Chosen.OtherWorkloads[arm]
		if text := judge.ContradictsBaseline(d, arm); text != "" {
			out = append(out, text+", so the arms are not compared")
		} else {
			out = append(out, found.Text+"; they are compared as equivalent programs")
		}
	}
	return out
}
