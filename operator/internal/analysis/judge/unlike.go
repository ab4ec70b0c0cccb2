package judge

import (
	"fmt"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/quantity"
)

// Arms are compared because their trials were measured alike. What is the same for a block is compared trial by trial (see apart). What is
// read of every trial, such as whether its CPUs were its own, may change by accident, so that arms are asked whether it differs between
// them by more than chance explains.

// measuredUnlike doubts comparisons of arms that were measured differently, in what may change from trial to trial.
func measuredUnlike(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	if !gate.Op.Relative() {
		return ""
	}
	return unlike(d, gate.Metric, pointOf(d, gate), selection.ArmIndex(d.Exp, gate.Candidate), d.Exp.Baseline(), 1)
}

// unlike describes how a metric was measured differently in two arms, at a point or over all of them, as one of several comparisons that
// share the level.
func unlike(d *estimate.Data, metric string, point, mine, theirs int, comparisons float64) string {
	places, where, levels := []int{point}, []string{"at " + analysis.PointName(d.Exp.Points[point].Key)}, []float64{lossLevel}
	if points := len(d.Exp.Points); points > 1 && d.Exp.Plan.Search == nil {
		places, where = append(places, estimate.EveryPoint), append(where, "over all points")
		levels = []float64{lossLevel / 2 / float64(points), lossLevel / 2}
	}
	for i, place := range places {
		a, b := d.Conditions(selection.At(place, mine), metric), d.Conditions(selection.At(place, theirs), metric)
		for _, name := range slices.Sorted(maps.Keys(a)) {
			if why := differs(a[name], b[name], levels[i]/comparisons); why != "" {
				return fmt.Sprintf("%s %s of arm %s is %s, and of arm %s %s (%s), so that what measured them looks like what they do", where[i], name,
					d.Exp.Arms[mine].Name, selection.Tally(a[name], "trial"), d.Exp.Arms[theirs].Name, selection.Tally(b[name], "trial"), why)
			}
		}
	}
	return ""
}

// differs says why two arms' values are not alike: no trial of the one has a value of the other, however few trials there are, or one value
// is more frequent than chance explains. It is empty where they are alike.
func differs(a, b map[string]int, level float64) string {
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
		return ""
	}
	if len(values) == len(a)+len(b) {
		return "in no trial the same"
	}
	for _, value := range slices.Sorted(maps.Keys(values)) {
		if p := stats.Fisher(a[value], ofA, b[value], ofB); p <= level/float64(len(values)) {
			return "Fisher's exact test: p = " + quantity.Plain(p, 2)
		}
	}
	return ""
}
