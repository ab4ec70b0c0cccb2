package experiment

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

func checkDesign(spec *assayv1alpha1.BenchmarkRunSpec, plan *Plan, problems *Invalid) {
	design := spec.Design
	if measured := plan.Design.SlotsPerCell(); plan.Design.WarmupTrials > measured {
		problems.add("spec.design.warmupTrials", "a block would run %d warm-ups of every arm and point and measure %d: use at most as many "+
			"warm-ups as trials", design.WarmupTrials, measured)
	}
	for i, phase := range design.ControlPhases {
		if strings.TrimSpace(phase) == "" {
			problems.add(fmt.Sprintf("spec.design.controlPhases[%d]", i), "the phase has no name: write the one that the workload reports")
		}
	}
	checkBlocks(spec, problems)
	checkCorrelation(design, plan, problems)
	checkStop(spec, problems)
	if design.Confirm != nil && spec.Search == nil && !hasBlockingGate(spec, true) {
		problems.add("spec.design.confirm", "there is no Blocking gate and so no verdict to confirm: add one, or remove confirm")
	}
}

// MinBlocks is the smallest number of blocks for which the analysis computes an interval.
const MinBlocks = 3

// MinCorrelatedBlocks is the smallest number of blocks for estimating a correlation of neighbours, or an interval that allows for it.
const MinCorrelatedBlocks = 6

// checkCorrelation rejects a correlation that no interval of the design can allow for, because it would have no effect.
func checkCorrelation(design assayv1alpha1.Design, plan *Plan, problems *Invalid) {
	if plan.Design.BlockCorrelation == 0 {
		return
	}
	if design.Blocks.Min < MinCorrelatedBlocks {
		problems.add("spec.design.blocks.min", "found %d blocks, and at least %d are needed to estimate an interval with "+
			"spec.design.blockCorrelation %s: raise the number, or remove blockCorrelation", design.Blocks.Min, MinCorrelatedBlocks,
			design.BlockCorrelation)
	}
	if confirm := design.Confirm; confirm != nil && confirm.Blocks < MinCorrelatedBlocks {
		problems.add("spec.design.confirm.blocks", "found %d blocks, and at least %d are needed to confirm a verdict with "+
			"spec.design.blockCorrelation %s: raise the number, or remove blockCorrelation", confirm.Blocks, MinCorrelatedBlocks,
			design.BlockCorrelation)
	}
}

// checkBlocks rejects a design in which a gate with an interval is always Invalid. Without a stopping rule a run ends at blocks.min.
func checkBlocks(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	field, have := "spec.design.blocks.min", spec.Design.Blocks.Min
	if spec.Design.Stop != nil {
		field, have = "spec.design.blocks.max", spec.Design.Blocks.Max
	}
	for i, gate := range spec.Gates {
		if _, bounded := Op(gate.Op).leastBound(); bounded && have < MinBlocks {
			problems.add(field, "%d blocks give no interval, so gate %q (spec.gates[%d]) with %s would always be Invalid: use "+
				"at least %d", have, gate.Name, i, gate.Op, MinBlocks)
			break
		}
	}
}

// minStopBlocks is the smallest number of blocks at which stopping by the width has its coverage (docs/methodology/calibration.md, rows
// "adaptive").
const minStopBlocks = 10

// checkStop rejects a stopping rule that cannot be met or has no effect.
func checkStop(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	if spec.Design.Stop == nil {
		return
	}
	const field = "spec.design.stop"
	if spec.Search != nil {
		problems.add(field, "a search has its own stopping rule: remove stop, or remove spec.search")
		return
	}
	if !hasBlockingGate(spec, false) {
		problems.add(field, "no Blocking gate has an interval to make narrower: add one with %s, or remove stop",
			listed(Ops(SubjectRatio, SubjectLevel)))
	}
	if spec.Design.Blocks.Max == spec.Design.Blocks.Min {
		problems.add(field, "spec.design.blocks.max is %d like min, so that no block could be added: raise max, or remove stop",
			spec.Design.Blocks.Max)
	}
}

// maxCorrelation is the largest supported correlation. Above it, a whole run is worth hardly more than one block.
const maxCorrelation = 0.95

// maxRareSlowdown limits a declared slowdown: a block that takes eleven times as long is a failure and not a rare slowdown.
const maxRareSlowdown = 10

// hasBlockingGate reports whether the run has a Blocking gate; gates without an interval count only if any is set.
func hasBlockingGate(spec *assayv1alpha1.BenchmarkRunSpec, any bool) bool {
	return slices.ContainsFunc(spec.Gates, func(gate assayv1alpha1.Gate) bool {
		return gate.Severity == assayv1alpha1.Blocking && (any || gate.Metric != "" && !Op(gate.Op).OfDifference())
	})
}

// checkBudget rejects a design whose smallest form exceeds the budget.
func checkBudget(spec *assayv1alpha1.BenchmarkRunSpec, plan *Plan, cells int, problems *Invalid) {
	const field = "spec.budget.trials"
	blocks, perBlock, budget := plan.Design.Blocks.Min, plan.Design.TrialsPerBlock(cells), plan.Budget.Trials
	if spec.Search != nil {
		arms := len(arms(spec))
		if trials := blocks * plan.Design.TrialsPerBlock(min(cells, search.Coarse*arms)); trials > budget {
			problems.add(field, "trying %d loads of %d arms in %d blocks takes %d trials and the budget is %d: use fewer blocks "+
				"(spec.design.blocks.min) or raise the budget",
				min(cells/max(1, arms), search.Coarse), arms, blocks, trials, budget)
		}
		return
	}
	if trials := perBlock * blocks; trials > budget {
		problems.add(field, "%d blocks of %d trials are %d trials and the budget is %d: use fewer points, arms or blocks, or raise the budget",
			blocks, perBlock, trials, budget)
		return
	}
	confirm := ptr.Deref(plan.Design.Confirm, Confirm{}).Blocks
	if trials := perBlock * (blocks + confirm); trials > budget {
		problems.add(field, "%d blocks and %d to confirm them, of %d trials each, are %d trials and the budget is %d: use fewer points, arms "+
			"or blocks, or raise the budget",
			blocks, confirm, perBlock, trials, budget)
		return
	}
	if spec.Design.Stop != nil && perBlock > 0 {
		if room := budget/perBlock - confirm; room <= blocks {
			problems.add(field, "the budget of %d allows %d blocks of %d trials, so that spec.design.stop could never add one to the first %d: "+
				"raise the budget, or remove stop",
				budget, room, perBlock, blocks)
		}
	}
}

// checkContradictions rejects pairs of gates that cannot both hold, because one requires more than the other allows.
func checkContradictions(spec *assayv1alpha1.BenchmarkRunSpec, plan *Plan, points []record.Point, problems *Invalid) {
	for i, least := range plan.Gates {
		for j, most := range plan.Gates {
			someone := least.Candidate == "" || most.Candidate == "" || least.Candidate == most.Candidate
			if someone && least.excludes(most.Condition) && overlap(least, most, points) {
				problems.add(fmt.Sprintf("spec.gates[%d]", i),
					"%q asks for %s and %q (spec.gates[%d]) for %s of the same %s: no interval meets both; change one",
					least.Name, least.Op.Against(spec.Gates[i].Bound), most.Name, j, most.Op.Against(spec.Gates[j].Bound), least.Metric)
			}
		}
	}
}

func overlap(a, b Gate, points []record.Point) bool {
	return slices.ContainsFunc(points, func(point record.Point) bool {
		return Matches(a.At, point.Parameters) && Matches(b.At, point.Parameters)
	})
}
