package judge

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// caps are the findings that leave a gate at most Inconclusive, in the order in which their reasons are written. Each looks at
// one set of blocks and says why it doubts a gate's decision; empty where it does not.
var caps = []func(d *estimate.Data, j *judgement, gate *analysis.GateResult) string{
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
func capGates(d *estimate.Data, j *judgement) {
	for i := range j.gates {
		gate := &j.gates[i]
		for _, doubt := range caps {
			if !gate.Op.Timed() || !Decisive(gate.Outcome) {
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
func sequentialOrder(d *estimate.Data, _ *judgement, _ *analysis.GateResult) string {
	if d.Exp.Plan.Design.Order != experiment.OrderSequential || len(d.Exp.Arms) < 2 {
		return ""
	}
	return "every block ran the arms in the same order (spec.design.order: Sequential), so that what their place does looks like what they do"
}

// apart doubts gates of blocks whose trials were no neighbours.
func apart(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	if !gate.Op.Relative() {
		return ""
	}
	return d.Chosen.Apart
}

// missingWave names a part of the evidence that is not there: a verdict from the rest of it might be another one.
func missingWave(d *estimate.Data, _ *judgement, _ *analysis.GateResult) string {
	if len(d.Chosen.Gaps) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is missing, cannot be read or contradicts the experiment", d.Chosen.Gaps[0])
}

// otherWorkload doubts every decision on an arm that ran the baseline's program and reports another workload.
func otherWorkload(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	return ContradictsBaseline(d, selection.ArmIndex(d.Exp, gate.Candidate))
}

// ContradictsBaseline says how an arm that is to run the baseline's program reports another workload; empty where it does not.
func ContradictsBaseline(d *estimate.Data, arm int) string {
	if found := d.Chosen.Strangers[arm]; found.Planned {
		return found.Says + ", and the plan has both run one program"
	}
	return ""
}
