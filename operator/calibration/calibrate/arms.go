package calibrate

import (
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// blocks formats the average and the maximum number of blocks per run.
func (t RealTally) blocks() string {
	if len(t.Runs) == 0 {
		return "-"
	}
	sum := 0
	for _, run := range t.Runs {
		sum += run.Blocks
	}
	text := quantity.Decimals(float64(sum)/float64(len(t.Runs)), 1)
	if t.Budget > 0 {
		text += fmt.Sprintf(" of %d", t.Budget)
	}
	return text
}

// arms returns the arms of all runs.
func (t RealTally) arms() []RealArm {
	var out []RealArm
	for _, run := range t.Runs {
		out = append(out, run.Arms...)
	}
	return out
}

// used returns the share of the measured trials that count.
func (t RealTally) used() Share {
	used, of := 0, 0
	for _, run := range t.Runs {
		used, of = used+run.Used, of+run.Measured
	}
	return NewShare(used, of)
}

// overAll returns the median, minimum and maximum over gates of the half width relative to that of the same ledger without rejection;
// false if no gate has both.
func (t RealTally) overAll() (median, low, high float64, gates int) {
	var all []float64
	for _, arm := range t.arms() {
		if arm.OverAll != nil {
			all = append(all, *arm.OverAll)
		}
	}
	if len(all) == 0 {
		return 0, 0, 0, 0
	}
	slices.Sort(all)
	return all[(len(all)-1)/2], all[0], all[len(all)-1], len(all)
}

// ArmsTable formats the tallies of runs with many arms as a Markdown table; empty without any.
func ArmsTable(tallies []RealTally) string {
	var out strings.Builder
	for _, t := range tallies {
		if t.Arms == 0 {
			continue
		}
		if out.Len() == 0 {
			out.WriteString("\n| arms | runs | blocks | trials used | half width relative to no rejection: median | smallest | largest | " +
				"candidates judged wrong | coverage of 95 % |\n")
			out.WriteString("| --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
		}
		arms := t.arms()
		median, low, high, _ := t.overAll()
		fmt.Fprintf(&out, "| %d | %d | %s | %s | %s | %s | %s | %s | %s |\n", t.Arms, len(t.Runs), t.blocks(), t.used(),
			quantity.Decimals(median, 3), quantity.Decimals(low, 3), quantity.Decimals(high, 3),
			NewShare(t.Wrong(), len(arms)), shareOf(arms, func(a RealArm) bool { return a.Covered }))
	}
	return out.String()
}

// RealPower returns the power: the share of NoGo in runs whose candidate is slower by the effect, within their budget of blocks.
func RealPower(t RealTally) Figure {
	out := shareOf(t.Runs, func(r RealRun) bool { return r.Verdict == experiment.VerdictNoGo }).Figure(RealPowerFigure)
	out.Note = fmt.Sprintf("NoGo of runs in which it is right, %s blocks", t.blocks())
	return out
}

// RealArms returns the figures of the runs with many arms on a quiet machine.
func RealArms(t RealTally) []Figure {
	out := []Figure{t.used().Figure(UsedShareFigure)}
	if median, low, high, gates := t.overAll(); gates > 0 {
		out = append(out, Figure{Figure: OverAllFigure, Value: median, Unit: "1", Low: low, High: high, Samples: gates,
			Note: "median over gates; low and high are the smallest and the largest"})
	}
	return out
}
