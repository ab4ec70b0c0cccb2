package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Arms are comparable if their trials were measured alike. Conditions that are constant within a block are compared trial by trial
// (see separated). Conditions that are read for every trial, such as whether its CPUs were exclusive, may change by accident, so the check
// is whether they differ between arms by more than chance explains.

// unlike describes a difference in the conditions of two arms that may change from trial to trial, at a point or over all points. The
// comparison is one of several that share the level: half of the level is for all points together, and half is shared among the
// points.
func unlike(d *estimate.Data, point, mine, theirs int, comparisons float64) string {
	level, at := lossLevel/comparisons, "at "+analysis.PointName(d.Exp.Points[point].Key)
	if len(d.Exp.Points) == 1 || d.Exp.Plan.Search != nil {
		return unlikeAt(d, at, point, []int{point}, mine, theirs, level)
	}
	every := make([]int, len(d.Exp.Points))
	for p := range every {
		every[p] = p
	}
	return cmp.Or(unlikeAt(d, at, point, every, mine, theirs, level/2),
		unlikeAt(d, "over all points", estimate.EveryPoint, []int{estimate.EveryPoint}, mine, theirs, level/2))
}

// unlikeAt applies the check of unlike at one of several places that share the level.
func unlikeAt(d *estimate.Data, where string, place int, among []int, mine, theirs int, level float64) string {
	a, b := d.Conditions(selection.At(place, mine)), d.Conditions(selection.At(place, theirs))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if differs(a[name], b[name], level) == "" {
			continue // A share of the level is stricter.
		}
		var tables []stats.Table
		for _, other := range among {
			for _, table := range tallied(d.Conditions(selection.At(other, mine))[name], d.Conditions(selection.At(other, theirs))[name]) {
				tables = append(tables, table)
			}
		}
		if why := differs(a[name], b[name], stats.Shared(level, tables)); why != "" {
			return fmt.Sprintf("%s %s of arm %s is %s, and of arm %s %s (%s), so effects of the conditions and of the arms are confounded",
				where, name, d.Exp.Arms[mine].Name, selection.Tally(a[name], "trial"), d.Exp.Arms[theirs].Name, selection.Tally(b[name], "trial"), why)
		}
	}
	return ""
}

// Programs, and not machines or accidents, choose the composition of a figure. So all trials of a gate must have the same composition,
// and the number of samples decides nothing.

// otherComposition doubts gates on figures with different compositions: one value here and samples there, or other numbers of samples. An
// extreme of more samples is more extreme, so a ratio of two extremes needs equally many.
func otherComposition(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	return madeDifferently(d, gate.Metric, gate.Statistic, pointOf(d, gate), gateArms(d, gate)...)
}

func madeDifferently(d *estimate.Data, metric string, statistic experiment.Statistic, point int, arms ...int) string {
	extreme := statistic == experiment.StatisticMin || statistic == experiment.StatisticMax
	values, said := map[string]int{}, []string{}
	for _, arm := range arms {
		made := madeOf(d, metric, selection.At(point, arm), extreme && len(arms) > 1)
		maps.Copy(values, made)
		said = append(said, fmt.Sprintf("%s of arm %s", quoted(made), d.Exp.Arms[arm].Name))
	}
	if len(values) < 2 {
		return ""
	}
	if from := d.Exp.Metric(metric).SamplesFrom; from != "" {
		metric += fmt.Sprintf(" (samplesFrom: %s)", from)
	}
	return fmt.Sprintf("%s is computed from %s, so its composition and its value are confounded", metric, strings.Join(said, ", and of "))
}

// unpromised doubts a Go on a level of an arm whose trials do not have as many samples as their parameter fixes, because the missing
// samples may be those that miss the bound. For a ratio, otherComposition ensures the same for the other arm.
func unpromised(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	metric := d.Exp.Metric(gate.Metric)
	if gate.Op.Relative() || metric == nil || metric.SamplesFrom == "" {
		return ""
	}
	arm := selection.ArmIndex(d.Exp, gate.Candidate)
	made := madeOf(d, gate.Metric, selection.At(pointOf(d, gate), arm), false)
	for value := range made {
		if !strings.HasPrefix(value, selection.AllSamples) {
			return fmt.Sprintf("%s of arm %s is computed from %s, and %s fixes the number of samples of a trial (samplesFrom)", gate.Metric,
				d.Exp.Arms[arm].Name, quoted(made), metric.SamplesFrom)
		}
	}
	return ""
}

// madeOf counts the compositions of an arm's figures of a metric, including those of trials that noise limits reject.
func madeOf(d *estimate.Data, metric string, c selection.Cell, counted bool) map[string]int {
	if d.Everything != nil {
		d = d.Everything
	}
	return selection.MadeOf(d.Trials[c], d.Exp.Metric(metric), counted)
}

func quoted(made map[string]int) string {
	const shown = 3
	var out []string
	for i, value := range slices.Sorted(maps.Keys(made)) {
		if i == shown {
			out = append(out, fmt.Sprintf("%d others", len(made)-shown))
			break
		}
		out = append(out, fmt.Sprintf("%q in %s", value, quantity.Count(made[value], "trial")))
	}
	return strings.Join(out, " and ")
}

// outvoted doubts a percentile whose outcome depends on the numbers of samples of its trials. The percentile merges all samples, so a
// program with many samples in its fast trials and few in its slow ones would weight the fast ones. The outcome must be the same with
// equal weights per trial. A sampler that runs for a fixed time has more samples in its fast trials.
func outvoted(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	if experiment.Percentiles[gate.Statistic] == 0 {
		return ""
	}
	point := pointOf(d, gate)
	even := d.ByTrials(point, gate.Metric, gateArms(d, gate)...)
	if even == nil {
		return ""
	}
	again := analysis.GateResult{
		Candidate: gate.Candidate, Point: gate.Point, Op: gate.Op, Severity: gate.Severity, Metric: gate.Metric, Statistic: gate.Statistic,
	}
	of := experiment.Condition{Metric: gate.Metric, Statistic: gate.Statistic, Op: gate.Op, Bound: gate.Bound, AllowWorse: true}
	judgeTiming(even, &selection.Parity{}, experiment.Gate{Condition: of}, point, &again)
	if again.Outcome == gate.Outcome || again.Estimate == nil {
		return ""
	}
	return fmt.Sprintf("its trials have different numbers of samples, and with equal weights per trial it is %s, %s",
		analysis.Describe(again.Estimate), again.Outcome)
}

// differs describes a difference between the values of two arms: no trial of one arm has a value of the other, even with few trials, or
// one value is more frequent than chance explains. It returns "" without a difference.
func differs(a, b map[string]int, level float64) string {
	tables := tallied(a, b)
	if len(tables) == 0 {
		return ""
	}
	if len(tables) == len(a)+len(b) {
		return "no trial has the same value"
	}
	for _, value := range slices.Sorted(maps.Keys(tables)) {
		if p := tables[value].P(); p <= level {
			return "Fisher's exact test: p = " + quantity.Plain(p, 2)
		}
	}
	return ""
}

// tallied returns the trial counts of two arms by value, or nil if an arm has no trials or all trials have one value.
func tallied(a, b map[string]int) map[string]stats.Table {
	sum := func(counts map[string]int) (n int) {
		for _, count := range counts {
			n += count
		}
		return n
	}
	ofA, ofB := sum(a), sum(b)
	values := maps.Clone(a)
	maps.Copy(values, b)
	if ofA == 0 || ofB == 0 || len(values) < 2 {
		return nil
	}
	out := map[string]stats.Table{}
	for value := range values {
		out[value] = stats.Table{A: a[value], OfA: ofA, B: b[value], OfB: ofB}
	}
	return out
}
