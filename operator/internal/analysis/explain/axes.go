package explain

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// axisNotes names sweep axes without a measurable effect on any metric of any arm, between neighbouring values and between the first
// and the last. Such a parameter is not connected, or its effect lies outside of the sweep.
func axisNotes(d *estimate.Data) []string {
	if d.Exp.Plan.Sweep == nil {
		return nil
	}
	var out []string
	for _, axis := range d.Exp.Plan.Sweep.Axes {
		pairs := axisPairs(d, axis.Name)
		metrics := d.Exp.Metrics()
		tests := len(pairs) * len(d.Exp.Arms) * len(metrics)
		if tests == 0 {
			continue
		}
		// Some of many comparisons differ by accident, so they share the level (Bonferroni).
		level := 1 - (1-d.Confidence)/float64(tests)
		compared, differs := false, false
		for _, pair := range pairs {
			for arm := range d.Exp.Arms {
				for _, metric := range metrics {
					q := estimate.Quantity{Cell: selection.At(pair[0], arm), Metric: metric.Name, Statistic: metric.Statistic}
					ok, differ := pointsDiffer(d, q, pair[1], level)
					compared, differs = compared || ok, differs || differ
				}
			}
		}
		if compared && !differs {
			out = append(out, fmt.Sprintf("the axis %s (%s) has no measurable effect on any metric of any arm", axis.Name,
				strings.Join(axis.Values, ", ")))
		}
	}
	return out
}

// axisPairs returns the pairs of points that differ in one axis only: neighbours along it, and its two ends.
func axisPairs(d *estimate.Data, axis string) [][2]int {
	lines := map[string][]int{}
	var names []string
	for point := range d.Exp.Points {
		name := ""
		for _, other := range d.Exp.Plan.Sweep.Axes {
			if other.Name != axis {
				name += fmt.Sprintf("%q,", d.Exp.Points[point].Parameters[other.Name])
			}
		}
		if lines[name] == nil {
			names = append(names, name)
		}
		lines[name] = append(lines[name], point)
	}
	var out [][2]int
	for _, name := range names {
		line := lines[name]
		for i := 1; i < len(line); i++ {
			out = append(out, [2]int{line[i-1], line[i]})
		}
		if len(line) > 2 {
			out = append(out, [2]int{line[0], line[len(line)-1]})
		}
	}
	return out
}

// pointsDiffer compares one quantity of one arm at two points, block by block.
func pointsDiffer(d *estimate.Data, q estimate.Quantity, other int, level float64) (compared, differ bool) {
	// A percentile has no value per trial; the median shows an effect of the point too.
	if experiment.Percentiles[q.Statistic] != 0 {
		q.Statistic = "median"
	}
	there := q
	there.Point = other
	a, b := d.PerBlock(q), d.PerBlock(there)
	found := estimate.PairedDifference(a, b, level, estimate.AllPositive(a, b))
	if !found.HasInterval() {
		return false, false
	}
	return true, found.Low > 0 || found.High < 0
}
