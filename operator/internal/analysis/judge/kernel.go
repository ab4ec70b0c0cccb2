package judge

import (
	"cmp"
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/quantity"
)

// A trial in which the kernel killed a process is a failed one. Outside of a pod the runner may share its cgroup with other processes, and
// knows only that the kernel killed some process of the machine.

// unknownKills doubts a gate if an OOM kill during trials of its candidate, or of the baseline of a ratio, may have been one of theirs.
func unknownKills(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
	of := mayHaveBeenKilled(d, selection.ArmIndex(d.Exp, gate.Candidate))
	if gate.Op.Relative() {
		of = cmp.Or(of, mayHaveBeenKilled(d, d.Exp.Baseline()))
	}
	return of
}

// mayHaveBeenKilled describes the trials of an arm during which the kernel killed a process of the machine, where the counter of their
// cgroup is unknown; empty without any.
func mayHaveBeenKilled(d *estimate.Data, arm int) string {
	count, first, why := 0, "", ""
	for point := range d.Exp.Points {
		for _, attempt := range d.Trials[selection.At(point, arm)] {
			if !attempt.UnknownOOMKill() {
				continue
			}
			if count++; first == "" || attempt.Trial < first {
				first, why = attempt.Trial, cmp.Or(attempt.Kernel.Unknown["oomKills"], "the counter is absent")
			}
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("the kernel killed a process of the machine (out of memory) during %s of arm %s, and whether it was one of theirs is "+
		"unknown (first %s: %s)", quantity.Count(count, "trial"), d.Exp.Arms[arm].Name, first, why)
}
