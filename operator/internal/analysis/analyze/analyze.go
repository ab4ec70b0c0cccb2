// Package analyze turns a frozen experiment and its attempts into an analysis: the way through all storeys. It is pure: the same code
// judges in the cluster, in the local executor and in tests.
package analyze

import (
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/assume"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Evidence judges the evidence of the waves up to and including wave. It is pure: the same experiment and evidence give the
// same bytes, independent of the order of the evidence.
func Evidence(exp *experiment.Experiment, evidence record.Evidence, wave int) *analysis.Analysis {
	chosen := selection.Select(exp, evidence, wave)
	parity := selection.CheckParity(exp, chosen.Succeeded)
	d := estimate.New(exp, chosen, nil)

	ratios := estimate.Ratios(d, parity)
	judged := judge.Judge(d, parity, ratios, evidence.Waves)
	explained := explain.Explain(d, parity, ratios, &judged, evidence)

	out := &analysis.Analysis{
		Schema: analysis.Schema, Run: exp.Run, Experiment: exp.Digest, Wave: wave,
		Evidence: chosen.Digest, Confidence: d.Confidence, GateConfidence: d.GateConfidence, Seed: exp.Plan.Design.Seed,

		Noise: chosen.Noise.Arms, Trials: chosen.Trials, Excluded: chosen.Excluded(), Environment: chosen.Hard, Isolation: chosen.Isolation(),

		Arms: estimate.Arms(d, parity), Ratios: ratios, Phases: estimate.Phases(d, parity),
		CarryOver: estimate.CarryOver(d, parity),

		Verdict: judged.Verdict, SetupBroken: judged.SetupBroken, Screened: judged.Screened, Gates: judged.Gates, Screening: judged.Screening,
		Controls: judged.Controls, Candidates: judged.Candidates, ValidBlocks: judged.ValidBlocks, ConfirmBlocks: judged.ConfirmBlocks,
		RelativeHalfWidth: judged.RelativeHalfWidth, Doubts: judged.Doubts, Search: judged.Search, Predicted: judged.Predicted,

		Assumptions: assume.Of(d, parity, &judged),

		CutBlocks: explained.CutBlocks, ConfirmCutBlocks: explained.ConfirmCutBlocks, Unrun: explained.Unrun, LostTurns: explained.LostTurns,
		LostBlocks: explained.LostBlocks, ConfirmLostBlocks: explained.ConfirmLostBlocks, Layout: explained.Layout,
		Warnings: explained.Warnings, Notes: explained.Notes, Usage: explained.Usage,
	}
	if out.BestOf = judged.Best; len(judged.Best) == 1 {
		out.Best, out.BestOf = judged.Best[0], nil
	}
	out.Headline = analysis.RunHeadline(exp, out)
	out.Ran = chosen.RanTrials()
	out.Cause = chosen.FirstLoss(exp, out.Verdict == experiment.VerdictInvalid)
	out.Shorten()
	return out
}
