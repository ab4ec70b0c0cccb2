// Package estimate computes figures from the attempts that count: levels and ratios over blocks, with intervals that include the effects
// of blocks, nodes, order, clock, builds and timeouts. It makes no decisions.
package estimate

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Data gives access to the trials that count. Everything in it is deterministic: blocks are in the order of their names
// and trials in the order of their slots.
type Data struct {
	Exp *experiment.Experiment
	// Chosen is the whole selection, also where a part of it counts.
	Chosen *selection.Selection
	// Confidence of the intervals in results, and GateConfidence of those that decide.
	Confidence, GateConfidence float64

	// Trials are those that follow a trial of their own arm, and Entering those that follow another arm's (see selection.Visits).
	Trials, Entering map[selection.Cell][]*record.Attempt
	// Rejected counts the trials of a cell that noise limits reject, and Everything is the data with them; nil without any.
	Rejected   map[selection.Cell]int
	Everything *Data
	// Everywhere is the data with the trials of other environments, each environment being a node; nil where they are a few whole blocks.
	Everywhere *Data
	// Measured are the blocks of a cell in which a trial was measured and counts, failed ones included.
	Measured map[selection.Cell]map[string]bool
	// slots are those of a cell's trials by block, also of trials that failed: they had their places beside the others.
	slots map[selection.Cell]map[string][]float64
	// nodes are the nodes of the blocks; empty when unknown.
	nodes map[string]string
	// started is when the first trial of a block began.
	started map[string]time.Time
	// clocks are by cell and metric.
	clocks map[Quantity]analysis.Resolution
	reads  map[Quantity]readBy
	// TimedOut are the trials that a timeout ended, and hung their attempts.
	TimedOut timedOut
	hung     map[selection.Cell][]*record.Attempt

	series map[Quantity]map[string][]float64
	// ratios are those to the baseline.
	ratios, levels map[Quantity]Inference
	conditions     map[selection.Cell]map[string]map[string]int
	// byTrials reports whether every trial has the same weight in a percentile, independent of its number of samples.
	byTrials bool
}

// Quantity is one statistic of one metric of an arm at a point.
type Quantity struct {
	selection.Cell
	Metric    string
	Statistic experiment.Statistic
}

// New indexes the selected trials. A block counts if in(block) is true; every block counts if in is nil.
func New(exp *experiment.Experiment, chosen *selection.Selection, in func(block string) bool) *Data {
	d := dataOf(exp, chosen, chosen.Used, in)
	for _, attempt := range chosen.Judged {
		if _, entered := chosen.Entered[attempt]; !entered && chosen.Kinds[attempt] == selection.Noisy && (in == nil || in(attempt.Block)) {
			d.Rejected[chosen.Cells[attempt]]++
		}
	}
	if len(d.Rejected) > 0 {
		d.Everything = dataOf(exp, chosen, chosen.Judged, in)
	}
	if elsewhere := blocksIn(maps.Keys(chosen.Elsewhere), in); len(elsewhere) > 0 {
		here := blocksIn(slices.Values(chosen.Judged), in)
		// A block with trials that count is not a block of another environment.
		apart := slices.ContainsFunc(slices.Collect(maps.Keys(elsewhere)), func(block string) bool { return here[block] })
		if apart || float64(len(elsewhere)) > fewBlocks*float64(len(elsewhere)+len(here)) {
			d.Everywhere = dataOf(exp, chosen, chosen.Everywhere(), in)
		}
	}
	return d
}

// Under returns the data as under another design. Percentiles and the quantities of trials do not depend on it.
func (d *Data) Under(design experiment.Design) *Data {
	if d == nil {
		return nil
	}
	exp := *d.Exp
	exp.Plan.Design = design
	out := *d
	out.Exp, out.ratios, out.levels = &exp, percentilesOf(d.ratios), percentilesOf(d.levels)
	out.Everything, out.Everywhere = d.Everything.Under(design), d.Everywhere.Under(design)
	return &out
}

func percentilesOf(of map[Quantity]Inference) map[Quantity]Inference {
	out := map[Quantity]Inference{}
	for q, found := range of {
		if experiment.Percentiles[q.Statistic] != 0 {
			out[q] = found
		}
	}
	return out
}

// fewBlocks is the share of blocks in other environments above which the gates are recomputed with them.
const fewBlocks = 0.1

func blocksIn(attempts iter.Seq[*record.Attempt], in func(block string) bool) map[string]bool {
	out := map[string]bool{}
	for attempt := range attempts {
		if in == nil || in(attempt.Block) {
			out[attempt.Block] = true
		}
	}
	return out
}

// dataOf indexes the attempts that count, be it with or without those that noise limits reject.
func dataOf(exp *experiment.Experiment, chosen *selection.Selection, attempts []*record.Attempt, in func(block string) bool) *Data {
	d := &Data{
		Exp: exp, Chosen: chosen, Confidence: exp.Plan.Design.Confidence, GateConfidence: exp.Plan.Design.GateConfidence,
		Trials: map[selection.Cell][]*record.Attempt{}, Entering: map[selection.Cell][]*record.Attempt{}, Rejected: map[selection.Cell]int{},
		Measured: map[selection.Cell]map[string]bool{}, slots: map[selection.Cell]map[string][]float64{},
		nodes: map[string]string{}, started: map[string]time.Time{}, clocks: map[Quantity]analysis.Resolution{}, reads: map[Quantity]readBy{},
		TimedOut: timedOut{}, hung: map[selection.Cell][]*record.Attempt{},
		series: map[Quantity]map[string][]float64{}, ratios: map[Quantity]Inference{}, levels: map[Quantity]Inference{},
		conditions: map[selection.Cell]map[string]map[string]int{},
	}
	for _, attempt := range attempts {
		if in != nil && !in(attempt.Block) {
			continue
		}
		c := chosen.Cells[attempt]
		entry, entered := chosen.Entered[attempt]
		switch {
		case !entered:
			d.Trials[c] = append(d.Trials[c], attempt)
			selection.Inner(d.Measured, c)[attempt.Block] = true
		case entry.Known:
			d.Entering[c] = append(d.Entering[c], attempt)
		}
		d.sawBlock(attempt)
		d.sawPlace(c, attempt)
	}
	lost := slices.SortedFunc(maps.Keys(chosen.Kinds), func(a, b *record.Attempt) int {
		return cmp.Or(record.CompareNames(a.Trial, b.Trial), cmp.Compare(a.ID, b.ID))
	})
	for _, attempt := range lost {
		c, ok := chosen.Cells[attempt]
		failed := chosen.Kinds[attempt] == selection.Failed || chosen.Kinds[attempt] == selection.Unusable
		if !ok || !failed || in != nil && !in(attempt.Block) {
			continue
		}
		selection.Inner(d.Measured, c)[attempt.Block] = true
		d.sawPlace(c, attempt)
		if _, entered := chosen.Entered[attempt]; entered || attempt.Outcome != record.TimedOut {
			continue
		}
		d.TimedOut.add(c, attempt, exp.Plan.Workload.TimeoutSeconds)
		d.hung[c] = append(d.hung[c], attempt)
		if _, known := d.started[attempt.Block]; !known {
			d.sawBlock(attempt) // The block may have no other trials, and timed-out trials have figures.
		}
	}
	return d
}

// sawBlock records the node and the start of a block from one of its attempts.
func (d *Data) sawBlock(attempt *record.Attempt) {
	d.nodes[attempt.Block] = trial.NodeOf(attempt)
	if other := d.Chosen.Elsewhere[attempt]; other > 0 {
		d.nodes[attempt.Block] += fmt.Sprintf(", environment %d", other)
	}
	if first, ok := d.started[attempt.Block]; !ok || attempt.StartedAt.Before(first) {
		d.started[attempt.Block] = attempt.StartedAt
	}
}

// reported yields the trials of a cell that have a metric, with the reported metric.
func (d *Data) reported(c selection.Cell, metric string) iter.Seq2[*record.Attempt, record.Metric] {
	return func(yield func(*record.Attempt, record.Metric) bool) {
		for _, attempt := range d.Trials[c] {
			if found, ok := attempt.Metric(metric); ok && !yield(attempt, found) {
				return
			}
		}
	}
}

func (d *Data) sawPlace(c selection.Cell, attempt *record.Attempt) {
	slots := selection.Inner(d.slots, c)
	slots[attempt.Block] = append(slots[attempt.Block], float64(attempt.Slot))
}

// Before counts the blocks in which the trials of an arm at a point came before another's, by their mean slots, and those in which they
// came after; those that failed or that noise limits reject had a place too. Where an order is balanced, as forwards and backwards, they
// came neither before nor after.
func (d *Data) Before(point, mine, theirs int) (earlier, later int) {
	if d.Everything != nil {
		d = d.Everything
	}
	for _, behind := range blockDifferences(d.slots[selection.At(point, mine)], d.slots[selection.At(point, theirs)], false) {
		switch {
		case behind < 0:
			earlier++
		case behind > 0:
			later++
		}
	}
	return earlier, later
}

// EveryPoint in the place of a cell's point stands for all points.
const EveryPoint = -1

// Conditions counts the trials of a cell by the value of each measurement condition, by the condition's name.
func (d *Data) Conditions(c selection.Cell) map[string]map[string]int {
	if known, ok := d.conditions[c]; ok {
		return known
	}
	if c.Point != EveryPoint {
		d.conditions[c] = selection.Conditions(d.Trials[c])
		return d.conditions[c]
	}
	sums := map[string]map[string]int{}
	for point := range d.Exp.Points {
		for name, counts := range d.Conditions(selection.At(point, c.Arm)) {
			sum := selection.Inner(sums, name)
			for value, n := range counts {
				sum[value] += n
			}
		}
	}
	d.conditions[c] = sums
	return sums
}

// ByTrials returns the data with equal weights per trial in percentiles, independent of the numbers of samples; nil if the trials of each
// arm have equally many.
func (d *Data) ByTrials(point int, metric string, arms ...int) *Data {
	for _, arm := range arms {
		numbers := map[int64]bool{}
		for _, reported := range d.reported(selection.At(point, arm), metric) {
			numbers[trial.Samples(reported)] = true
		}
		if len(numbers) > 1 {
			out := *d
			out.byTrials, out.ratios, out.levels = true, map[Quantity]Inference{}, map[Quantity]Inference{}
			return &out
		}
	}
	return nil
}
