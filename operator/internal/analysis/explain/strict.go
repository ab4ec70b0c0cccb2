package explain

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/record"
)

// strictWarnings name what a ledger leaves out or contradicts and can be judged without.
func strictWarnings(d *estimate.Data) []string {
	out := workloadWarnings(d)
	if overlap := simultaneous(d.Chosen.Used); overlap != "" {
		out = append(out, overlap)
	}
	if ran, least := len(screened(d.Chosen)), d.Exp.Plan.Design.Blocks.Min; ran > 0 && ran < least && d.Exp.Plan.Search == nil {
		out = append(out, fmt.Sprintf("the figures rest on %d blocks, and spec.design.blocks.min asks for at least %d", ran, least))
	}
	if d.Exp.Plan.Design.GateConfidence == 0 {
		out = append(out, fmt.Sprintf("experiment.json: spec.design.gateConfidence is absent: gates are judged at spec.design.confidence, %g, "+
			"as in runs older than the field",
			d.Confidence))
	}
	return out
}

// screened are the blocks that trials are used of, without those that confirm.
func screened(chosen *selection.Selection) map[string]bool {
	blocks := map[string]bool{}
	for _, attempt := range chosen.Used {
		if chosen.Purposes[attempt.Block] != record.Confirm {
			blocks[attempt.Block] = true
		}
	}
	return blocks
}
