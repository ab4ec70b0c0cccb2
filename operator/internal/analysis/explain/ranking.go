package explain

import (
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// A ranking of arms may reverse between two sizes of the problem. A claim measured at one size is then false at the size of its use.

// lead is the logarithm of the ratio of two quantities at a point, with its interval.
type lead struct {
	point     int
	value     float64
	low, high float64
}

// turn finds the strongest lead in either direction among those that exclude a tie; false if the ranking never reverses.
func turn(leads []lead) (ahead, behind lead, turns bool) {
	for _, l := range leads {
		if l.low > 0 && l.value > ahead.value {
			ahead = l
		}
		if l.high < 0 && l.value < behind.value {
			behind = l
		}
	}
	return ahead, behind, ahead.value > 0 && behind.value < 0
}

// leads compares two series of blocks at every point, at a level shared by all comparisons (Bonferroni).
func leads(d *estimate.Data, tests int, of func(point int) (mine, theirs map[string][]float64)) []lead {
	level := 1 - (1-d.Confidence)/float64(max(1, tests))
	var out []lead
	for point := range d.Exp.Points {
		mine, theirs := of(point)
		if len(mine) == 0 || len(theirs) == 0 || !estimate.AllPositive(mine, theirs) {
			continue
		}
		found := estimate.PairedDifference(mine, theirs, level, true)
		if found.HasInterval() {
			out = append(out, lead{point, found.Value, found.Low, found.High})
		}
	}
	return out
}

// rankingNotes name pairs of arms, and pairs of phases of an arm, whose order changes along the sweep.
func rankingNotes(d *estimate.Data, parity *selection.Parity) []string {
	if len(d.Exp.Points) < 2 {
		return nil
	}
	return append(armRankingNotes(d, parity), phaseRankingNotes(d)...)
}

func armRankingNotes(d *estimate.Data, parity *selection.Parity) []string {
	var arms []int
	for arm := range d.Exp.Arms {
		name, repeats := d.Exp.Arms[arm].Name, experiment.RoleOf(d.Exp.Arms[arm]).RepeatsBaseline()
		if !repeats && parity.Wrong[name] == "" && parity.Baseline == "" {
			arms = append(arms, arm)
		}
	}
	metrics := d.Exp.Metrics()
	tests := len(arms) * (len(arms) - 1) / 2 * len(d.Exp.Points) * len(metrics)
	var out []string
	for i, first := range arms {
		for _, second := range arms[i+1:] {
			for _, metric := range metrics {
				statistic := metric.Statistic
				if experiment.Percentiles[statistic] != 0 {
					statistic = experiment.StatisticMedian
				}
				ahead, behind, turns := turn(leads(d, tests, func(point int) (mine, theirs map[string][]float64) {
					return d.PerBlock(estimate.Quantity{Cell: selection.At(point, second), Metric: metric.Name, Statistic: statistic}),
						d.PerBlock(estimate.Quantity{Cell: selection.At(point, first), Metric: metric.Name, Statistic: statistic})
				}))
				if !turns {
					continue
				}
				out = append(out, fmt.Sprintf("the ranking of %s and %s by %s changes with scale: %s has %s of it at %s and %s at %s, so no single "+
					"answer holds",
					d.Exp.Arms[second].Name, d.Exp.Arms[first].Name, metric.Name, d.Exp.Arms[second].Name,
					quantity.Format(math.Exp(ahead.value), quantity.Times), analysis.PointName(d.Exp.Points[ahead.point].Key),
					quantity.Format(math.Exp(behind.value), quantity.Times), analysis.PointName(d.Exp.Points[behind.point].Key)))
				break // The other metrics are mostly correlated with this one.
			}
		}
	}
	return out
}

// phaseRankingNotes names, for every arm, the pair of phases whose order reverses most.
func phaseRankingNotes(d *estimate.Data) []string {
	var out []string
	for arm := range d.Exp.Arms {
		var names []string
		at := make([]map[string]estimate.PhaseSeries, len(d.Exp.Points))
		for point := range d.Exp.Points {
			var here []string
			here, at[point] = d.Phases(selection.At(point, arm))
			for _, name := range here {
				if len(names) < d.MostPhases() && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		tests := len(names) * (len(names) - 1) / 2 * len(d.Exp.Points)
		text, strongest := "", 0.0
		for i, first := range names {
			for _, second := range names[i+1:] {
				ahead, behind, turns := turn(leads(d, tests, func(point int) (mine, theirs map[string][]float64) {
					return at[point][second].Blocks, at[point][first].Blocks
				}))
				if strength := math.Min(ahead.value, -behind.value); turns && strength > strongest {
					strongest = strength
					text = fmt.Sprintf("the ranking of the phases of arm %s changes with scale: %s takes %s of the time of %s at %s and %s at %s, so "+
						"where the time goes depends on the size",
						d.Exp.Arms[arm].Name, second, quantity.Format(math.Exp(ahead.value), quantity.Times), first,
						analysis.PointName(d.Exp.Points[ahead.point].Key), quantity.Format(math.Exp(behind.value), quantity.Times),
						analysis.PointName(d.Exp.Points[behind.point].Key))
				}
			}
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}
