// Package judge turns estimates into the outcomes of gates, the verdicts of candidates and that of the run, and takes a decision back
// that a finding doubts.
package judge

import (
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/record"
)

// Run judges the screening blocks, and where the design asks for it lets the verdict stand only if confirmed.
func Run(out *analysis.Analysis, all *estimate.Data, parity *selection.Parity) {
	exp, chosen := all.Exp, all.Chosen
	screening := all
	if chosen.HasOther(record.Screen) {
		screening = estimate.New(exp, chosen, chosen.Only(record.Screen))
	}
	screened := judge(screening, parity, exp.Candidates(), record.Screen)
	final := screened
	if exp.Plan.Design.Confirm != nil {
		var fresh *judgement
		if chosen.Has(record.Confirm) {
			fresh = judge(estimate.New(exp, chosen, chosen.Only(record.Confirm)), parity, screened.contenders(), record.Confirm)
			out.ConfirmBlocks = fresh.validBlocks
		}
		final = confirm(screened, fresh, parity)
		if final != screened && Decisive(screened.verdict) {
			out.Screened = screened.verdict
		}
		if final != screened && fresh != nil {
			out.Screening = screened.gates
		}
	}
	out.ValidBlocks, out.RelativeHalfWidth = screened.validBlocks, screened.relativeHalfWidth
	out.Gates, out.Controls, out.Candidates, out.Verdict = final.gates, final.controls, final.candidates, final.verdict
}
