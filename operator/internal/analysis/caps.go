package analysis

import (
	"fmt"

	"assay.dev/assay/operator/internal/experiment"
)

// caps are the findings that leave a gate at most Inconclusive, in the order in which their reasons are written. Each looks at
// one set of blocks and says why it doubts a gate's decision; empty where it does not.
var caps = []func(d *data, j *judgement, gate *GateResult) string{
	movedControl,
	brokenBaseline,
	lostApart,
	missingWave,
	apart,
	otherWorkload,
	rejectedUnevenly,
	rejectionDecides,
	sequentialOrder,
	dependentPercentile,
}

// capGates takes the decision from every gate that a finding doubts. Outputs that differ, differ, and trials that failed, failed:
// nothing caps those.
func capGates(d *data, j *judgement) {
	for i := range j.gates {
		gate := &j.gates[i]
		for _, doubt := range caps {
			if !gate.Op.Timed() || !decisive(gate.Outcome) {
				break
			}
			if why := doubt(d, j, gate); why != "" {
				gate.Message = fmt.Sprintf("%s, but %s, so this is not yet %s", gate.Message, why, gate.Outcome)
				gate.Outcome = experiment.VerdictInconclusive
			}
		}
	}
}

// sequentialOrder doubts every decision of a run whose arms kept their places in the block: what the place does to a trial
// (warming, throttling, a neighbour's rhythm) then looks like the arm, and no number of blocks separates them.
func sequentialOrder(d *data, _ *judgement, _ *GateResult) string {
	if d.exp.Plan.Design.Order != experiment.OrderSequential || len(d.exp.Arms) < 2 {
		return ""
	}
	return "every block ran the arms in the same order (spec.design.order: Sequential), so that what their place does looks like what they do"
}
