package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

func checkDesign(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	design := spec.Design
	if design.Blocks.Min > design.Blocks.Max {
		problems.add("spec.design.blocks", "min %d exceeds max %d", design.Blocks.Min, design.Blocks.Max)
	}
	confidence, ok := checkConfidence("spec.design.confidence", design.Confidence, "0.95", problems)
	gates, ok2 := checkConfidence("spec.design.gateConfidence", design.GateConfidence, "0.995", problems)
	if ok && ok2 && gates < confidence {
		problems.add("spec.design.gateConfidence", "value %s is below spec.design.confidence %s: a verdict would rest on less than the results shown beside it; raise it", design.GateConfidence, design.Confidence)
	}
	if measured := SlotsPerCell(design.Order); int(design.WarmupTrials) > measured {
		problems.add("spec.design.warmupTrials", "a block would run %d warm-ups of every arm and point and measure %d: use at most as many warm-ups as trials", design.WarmupTrials, measured)
	}
	checkControlPhases(design, problems)
	checkBlocks(spec, problems)
	checkStop(spec, problems)
	checkUnseen(design, problems)
	if design.Confirm != nil && spec.Search == nil && !hasBlockingGate(spec, true) {
		problems.add("spec.design.confirm", "there is no Blocking gate and so no verdict to confirm: add one, or remove confirm")
	}
}

// minBlocks is how few blocks can carry an interval, as in the analysis.
const minBlocks = 3

// checkBlocks refuses a design in which a gate with an interval could never be anything but Invalid. Without a stopping rule a run
// ends at its fewest blocks.
func checkBlocks(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	field, have := "spec.design.blocks.min", spec.Design.Blocks.Min
	if spec.Design.Stop != nil {
		field, have = "spec.design.blocks.max", spec.Design.Blocks.Max
	}
	for i, gate := range spec.Gates {
		if gate.Op != assayv1alpha1.ParityEqual && have < minBlocks {
			problems.add(field, "%d blocks carry no interval, so gate %q (spec.gates[%d]) with %s would be Invalid whatever is measured: use at least %d", have, gate.Name, i, gate.Op, minBlocks)
			break
		}
	}
	if confirm := spec.Design.Confirm; confirm != nil && confirm.Blocks < minBlocks {
		problems.add("spec.design.confirm.blocks", "%d blocks carry no interval, so nothing could ever be confirmed: use at least %d", confirm.Blocks, minBlocks)
	}
}

func checkConfidence(field, text, example string, problems *Invalid) (float64, bool) {
	confidence, err := strconv.ParseFloat(text, 64)
	if err != nil || !(confidence >= 0.5 && confidence < 1) {
		problems.add(field, "value %q is not between 0.5 and 1: write it as %s", text, example)
		return 0, false
	}
	return confidence, true
}

func checkControlPhases(design assayv1alpha1.Design, problems *Invalid) {
	for i, phase := range design.ControlPhases {
		field := fmt.Sprintf("spec.design.controlPhases[%d]", i)
		switch first := slices.Index(design.ControlPhases, phase); {
		case strings.TrimSpace(phase) == "":
			problems.add(field, "names no phase: write the name that the workload reports")
		case first != i:
			problems.add(field, "phase %q is named twice (%d and %d): remove one", phase, first, i)
		}
	}
}

// minStopBlocks is from how many blocks on stopping by the width keeps the coverage (docs/methodology.md, rows "adaptive").
const minStopBlocks = 10

// checkStop refuses a stopping rule that could never be met or never play a part.
func checkStop(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	stop := spec.Design.Stop
	if stop == nil {
		return
	}
	const field = "spec.design.stop"
	if spec.Search != nil {
		problems.add(field, "a search has a stopping rule of its own: remove stop, or remove spec.search")
		return
	}
	if share, err := ParsePercent(stop.RelativeHalfWidth); err != nil || !(share > 0) {
		problems.add(field+".relativeHalfWidth", "value %q can never be reached: write a share above zero such as 1%%", stop.RelativeHalfWidth)
	}
	if !hasBlockingGate(spec, false) {
		problems.add(field, "no Blocking gate has an interval to make narrower: add one with RatioAtLeast, RatioAtMost, AtLeast or AtMost, or remove stop")
	}
	if spec.Design.Blocks.Min < minStopBlocks {
		problems.add(field, "spec.design.blocks.min is %d and a stopping rule needs at least %d: with fewer, the first width is so uncertain that runs stop where it is too narrow by accident; raise min, or remove stop",
			spec.Design.Blocks.Min, minStopBlocks)
	}
	if spec.Design.Blocks.Max == spec.Design.Blocks.Min {
		problems.add(field, "spec.design.blocks.max is %d like min, so that no block could be added: raise max, or remove stop", spec.Design.Blocks.Max)
	}
}

// ParseCorrelation reads a correlation such as 0.85; empty is none.
func ParseCorrelation(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0 && value <= maxCorrelation) {
		return 0, fmt.Errorf("value %q is not between 0 and %g: write it as 0.85", text, maxCorrelation)
	}
	return value, nil
}

// maxCorrelation is the strongest dependence that blocks can be judged under. Beyond, a whole run is hardly more than one block.
const maxCorrelation = 0.95

// maxRareSlowdown bounds a declared slowdown: a block that takes eleven times as long is no rare slowness but a failure.
const maxRareSlowdown = 10

// checkUnseen refuses claims about what blocks cannot show that mean nothing.
func checkUnseen(design assayv1alpha1.Design, problems *Invalid) {
	if _, err := ParseCorrelation(design.BlockCorrelation); err != nil {
		problems.add("spec.design.blockCorrelation", "%s, or remove it", err)
	}
	if design.RareSlowdown == "" {
		return
	}
	if share, err := ParsePercent(design.RareSlowdown); err != nil || !(share > 0 && share <= maxRareSlowdown) {
		problems.add("spec.design.rareSlowdown", "value %q is not above 0%% and at most %d%%: write a share such as 20%%, or remove it", design.RareSlowdown, 100*maxRareSlowdown)
	}
}

// hasBlockingGate looks for a gate that decides; one without an interval to make narrower counts only where asked.
func hasBlockingGate(spec *assayv1alpha1.BenchmarkRunSpec, any bool) bool {
	return slices.ContainsFunc(spec.Gates, func(gate assayv1alpha1.Gate) bool {
		return gate.Severity == assayv1alpha1.Blocking && (any || gate.Metric != "")
	})
}

// checkBudget refuses a design whose smallest form does not fit.
func checkBudget(spec *assayv1alpha1.BenchmarkRunSpec, cells int, problems *Invalid) {
	const field = "spec.budget.trials"
	blocks, perBlock := int(spec.Design.Blocks.Min), TrialsPerBlock(spec, cells)
	if spec.Search != nil {
		arms := len(arms(spec))
		if trials := blocks * TrialsPerBlock(spec, min(cells, minLoads*arms)); trials > int(spec.Budget.Trials) {
			problems.add(field, "trying %d loads of %d arms in %d blocks takes %d trials and the budget is %d: use fewer blocks (spec.design.blocks.min) or raise the budget",
				min(cells/max(1, arms), minLoads), arms, blocks, trials, spec.Budget.Trials)
		}
		return
	}
	if trials := perBlock * blocks; trials > int(spec.Budget.Trials) {
		problems.add(field, "%d blocks of %d trials are %d trials and the budget is %d: use fewer points, arms or blocks, or raise the budget",
			blocks, perBlock, trials, spec.Budget.Trials)
		return
	}
	if confirm := spec.Design.Confirm; confirm != nil {
		if trials := perBlock * (blocks + int(confirm.Blocks)); trials > int(spec.Budget.Trials) {
			problems.add(field, "%d blocks and %d to confirm them, of %d trials each, are %d trials and the budget is %d: use fewer points, arms or blocks, or raise the budget",
				blocks, confirm.Blocks, perBlock, trials, spec.Budget.Trials)
			return
		}
	}
	if stop := spec.Design.Stop; stop != nil && perBlock > 0 {
		reserved := 0
		if spec.Design.Confirm != nil {
			reserved = int(spec.Design.Confirm.Blocks)
		}
		if room := int(spec.Budget.Trials)/perBlock - reserved; room <= blocks {
			problems.add(field, "the budget of %d allows %d blocks of %d trials, so that spec.design.stop could never add one to the first %d: raise the budget, or remove stop",
				spec.Budget.Trials, room, perBlock, blocks)
		}
	}
}

// checkContradictions finds gates that can never both hold: one asks for at least what the other one forbids.
func checkContradictions(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, points []record.Point, problems *Invalid) {
	for i, least := range spec.Gates {
		most := map[assayv1alpha1.GateOperator]assayv1alpha1.GateOperator{
			assayv1alpha1.AtLeast: assayv1alpha1.AtMost, assayv1alpha1.RatioAtLeast: assayv1alpha1.RatioAtMost,
		}[least.Op]
		metric := findMetric(template, least.Metric)
		if most == "" || metric == nil {
			continue
		}
		unit := metric.Unit
		if most == assayv1alpha1.RatioAtMost {
			unit = ""
		}
		for j, other := range spec.Gates {
			if other.Op != most || !sameQuantity(least, other, metric) || !overlap(least, other, points) {
				continue
			}
			low, err := ParseBound(least.Bound, unit)
			high, err2 := ParseBound(other.Bound, unit)
			if err == nil && err2 == nil && low >= high {
				problems.add(fmt.Sprintf("spec.gates[%d]", i), "%q asks for at least %s and %q (spec.gates[%d]) for at most %s of the same %s: no interval meets both; change one",
					least.Name, least.Bound, other.Name, j, other.Bound, least.Metric)
			}
		}
	}
}

func sameQuantity(a, b assayv1alpha1.Gate, metric *assayv1alpha1.Metric) bool {
	statistic := func(gate assayv1alpha1.Gate) assayv1alpha1.Statistic {
		if gate.Statistic == "" {
			return metric.Statistic
		}
		return gate.Statistic
	}
	return a.Metric == b.Metric && statistic(a) == statistic(b) && (a.Candidate == "" || b.Candidate == "" || a.Candidate == b.Candidate)
}

func overlap(a, b assayv1alpha1.Gate, points []record.Point) bool {
	return slices.ContainsFunc(points, func(point record.Point) bool {
		return Matches(a.At, point.Parameters) && Matches(b.At, point.Parameters)
	})
}
