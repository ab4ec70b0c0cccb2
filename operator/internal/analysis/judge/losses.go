package judge

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/quantity"
)

// losses describes what became of the trials that are missing from a gate's data.
func losses(d *estimate.Data, point, arm int, relative bool) string {
	text := ""
	arms := []int{arm}
	if baseline := d.Exp.Baseline(); relative && baseline >= 0 {
		arms = append(arms, baseline)
	}
	for _, a := range arms {
		if lost := d.Chosen.Lost[selection.At(point, a)].Lost; lost.Total() > 0 {
			text += fmt.Sprintf("; of arm %s: %s", d.Exp.Arms[a].Name, lost)
		}
	}
	return text
}

// lossLevel is how surprising it must be that two arms lost so differently before a candidate's gates are doubted. It is no part of
// any verdict's level: a false alarm costs a decision, and a difference overlooked may turn one, so that it is far above a gate's.
// It is shared among the points at which a candidate is judged and all of them together.
const lossLevel = 0.05

// lostApart describes how a candidate and the baseline lost trials so differently that what is left cannot be compared.
func lostApart(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	baseline, arm := d.Exp.Baseline(), selection.ArmIndex(d.Exp, gate.Candidate)
	if baseline < 0 {
		return ""
	}
	// The gate's own point, and all points together: a little everywhere may be as telling.
	here, everywhere := [2]selection.Balance{}, [2]selection.Balance{}
	for point := range d.Exp.Points {
		for side, a := range []int{arm, baseline} {
			everywhere[side].Add(d.Chosen.Lost[selection.At(point, a)])
			if d.Exp.Points[point].Key == gate.Point {
				here[side].Add(d.Chosen.Lost[selection.At(point, a)])
			}
		}
	}
	// Timeouts are in the figures of what they censor.
	higher, lower := d.Censors(gate.Metric)
	places, pairs, levels := []string{"at " + analysis.PointName(gate.Point)}, [][2]selection.Balance{here}, []float64{lossLevel}
	if points := len(d.Exp.Points); points > 1 {
		places, pairs = append(places, "at all points"), append(pairs, everywhere)
		levels = []float64{lossLevel / 2 / float64(points), lossLevel / 2}
	}
	for i, pair := range pairs {
		if p := stats.Fisher(pair[0].Besides(higher || lower), pair[0].Of, pair[1].Besides(higher || lower), pair[1].Of); p <= levels[i] {
			return fmt.Sprintf("%s arm %s lost %s, and the baseline %s (Fisher's exact test: p = %s): what is left of the two may not be alike",
				places[i], gate.Candidate, pair[0], pair[1], quantity.Plain(p, 2))
		}
	}
	return ""
}
