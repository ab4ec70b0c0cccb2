// Package assume names the assumptions about noise that a decision rests on: those that the blocks of a run cannot confirm, and without
// which a gate would not be decided. It judges the run again under a design that declares the opposite of each assumption.
package assume

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

const (
	// dependence is the correlation of neighbouring blocks without the first assumption: that of the rows wander of the calibration.
	dependence = 0.85
	// slowdown of unobserved blocks without the second assumption.
	slowdown = 0.2
)

// assumption is a condition on the noise, and the design that does without it.
type assumption struct {
	name analysis.AssumptionName
	// without returns the design without the assumption, and false if the run's design already does without it.
	without func(experiment.Design) (experiment.Design, bool)
	// text continues "this Go assumes".
	text func(d *estimate.Data, gate *analysis.GateResult) string
}

var assumptions = []assumption{
	{
		name: analysis.AssumesIndependentBlocks,
		without: func(design experiment.Design) (experiment.Design, bool) {
			lacks := design.BlockCorrelation < dependence
			design.BlockCorrelation = max(design.BlockCorrelation, dependence)
			return design, lacks
		},
		text: func(_ *estimate.Data, gate *analysis.GateResult) string {
			return fmt.Sprintf("no arm drifts, warms up or changes in sessions over several blocks, which %s cannot exclude: more blocks do, and "+
				"spec.design.blockCorrelation: %q allows for it", blocksOf(gate), quantity.Plain(dependence, 2))
		},
	},
	{
		name: analysis.AssumesNoRareSlowdown,
		without: func(design experiment.Design) (experiment.Design, bool) {
			lacks := design.RareSlowdown < slowdown
			design.RareSlowdown = max(design.RareSlowdown, slowdown)
			return design, lacks
		},
		text: func(d *estimate.Data, gate *analysis.GateResult) string {
			share := 1.0
			if gate.Estimate != nil && gate.Estimate.Blocks > 0 {
				share = stats.UnseenShare(gate.Estimate.Blocks, 1-d.GateConfidence)
			}
			return fmt.Sprintf("no arm is %s slower in a part of its blocks that none of these shows, which %s cannot exclude below %s of the "+
				"blocks: more blocks do, and spec.design.rareSlowdown: %q allows for it", quantity.Percent(slowdown, 2), blocksOf(gate),
				quantity.Percent(share, 2), quantity.InPercent(slowdown)+"%")
		},
	},
}

// Of returns the assumptions of the decided gates, in the order of the gates.
func Of(d *estimate.Data, parity *selection.Parity, judged *judge.Findings) []analysis.Assumption {
	if !judge.Decisive(judged.Verdict) {
		return nil
	}
	without := make([][]analysis.GateResult, len(assumptions))
	for i, one := range assumptions {
		if design, lacks := one.without(d.Exp.Plan.Design); lacks {
			without[i] = judge.Decide(d.Under(design), parity).Gates
		}
	}
	var out []analysis.Assumption
	for g := range judged.Gates {
		gate := &judged.Gates[g]
		if !gate.Op.Timed() || !judge.Decisive(gate.Outcome) {
			continue
		}
		for i, one := range assumptions {
			if g < len(without[i]) && without[i][g].Outcome != gate.Outcome {
				out = append(out, analysis.Assumption{
					Name: one.name, Gate: gate.Gate, Candidate: gate.Candidate, Point: gate.Point, Outcome: gate.Outcome, Text: one.text(d, gate),
				})
			}
		}
	}
	return out
}

func blocksOf(gate *analysis.GateResult) string {
	if gate.Estimate == nil {
		return "this run"
	}
	return quantity.Count(gate.Estimate.Blocks, "block")
}
