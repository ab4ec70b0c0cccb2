package analysis

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
)

// axisWarnings name sweep axes that change nothing measurable: in no metric of any arm, between neighbouring values and
// between the first and the last. Such a knob is not connected, or the sweep does not reach where it matters.
func axisWarnings(d *data) []string {
	if d.exp.Plan.Sweep == nil {
		return nil
	}
	var out []string
	for _, axis := range d.exp.Plan.Sweep.Axes {
		pairs := axisPairs(d, axis.Name)
		metrics := d.exp.Metrics()
		tests := len(pairs) * len(d.exp.Arms) * len(metrics)
		if tests == 0 {
			continue
		}
		// Among so many comparisons some would differ by accident: the level is shared out (Bonferroni).
		level := 1 - (1-d.confidence)/float64(tests)
		compared, differs := false, false
		for _, pair := range pairs {
			for arm := range d.exp.Arms {
				for _, metric := range metrics {
					q := quantityOf{cell{pair[0], arm}, metric.Name, metric.Statistic}
					ok, differ := d.pointsDiffer(q, pair[1], level)
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

// axisPairs are pairs of points that differ in one axis only: neighbours along it, and its two ends.
func axisPairs(d *data, axis string) [][2]int {
	lines := map[string][]int{}
	var names []string
	for point := range d.exp.Points {
		name := ""
		for _, other := range d.exp.Plan.Sweep.Axes {
			if other.Name != axis {
				name += fmt.Sprintf("%q,", d.exp.Points[point].Parameters[other.Name])
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
func (d *data) pointsDiffer(q quantityOf, other int, level float64) (compared, differ bool) {
	// A percentile has no value per trial; the median shows as well whether the point matters.
	if experiment.Percentiles[q.statistic] != 0 {
		q.statistic = "median"
	}
	there := q
	there.point = other
	a, b := d.perBlock(q), d.perBlock(there)
	found := pairedDifference(a, b, level, allPositive(a, b))
	if !found.hasInterval() {
		return false, false
	}
	return true, found.low > 0 || found.high < 0
}
