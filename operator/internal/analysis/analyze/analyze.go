// Package analyze turns a frozen experiment and its attempts into an analysis: the way through all storeys. It is pure: the same code
// judges in the cluster, in the local executor and in tests.
package analyze

import (
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Evidence judges the evidence of the waves up to and including wave. It is pure: the same experiment and evidence give the
// same bytes, in whatever order the evidence comes.
func Evidence(exp *experiment.Experiment, evidence record.Evidence, wave int) *analysis.Analysis {
	chosen := selection.Select(exp, evidence, wave)
	parity := selection.CheckParity(exp, chosen.Succeeded)
	d := estimate.New(exp, chosen, nil)

	out := &analysis.Analysis{
		Schema: analysis.Schema, Run: exp.Run, Experiment: exp.Digest, Wave: wave,
		Evidence: chosen.Digest, Confidence: d.Confidence, GateConfidence: d.GateConfidence, Seed: exp.Plan.Design.Seed,
		Noise: chosen.Noise.Arms, Trials: chosen.Trials, Excluded: chosen.Excluded(), Environment: chosen.Hard, Isolation: chosen.Isolation(),
	}
	out.Arms = estimate.Arms(d, parity)
	out.Ratios = estimate.Ratios(d, parity)
	out.Phases = estimate.Phases(d, parity)
	judge.Run(out, d, parity)
	out.Doubts = judge.Doubts(d, parity, out.Ratios)
	explain.Lost(out, d, evidence)
	out.Search = judge.Searches(d, parity, evidence.Waves)
	out.Predicted = judge.Predictions(d, parity)
	if out.BestOf = judge.Best(d, out); len(out.BestOf) == 1 {
		out.Best, out.BestOf = out.BestOf[0], nil
	}
	out.Unseen = explain.Unseen(d, out.ValidBlocks)
	out.Layout = explain.Layout(d)
	out.Warnings = explain.Warnings(d, parity, out, chosen.Own)
	out.Usage = explain.Usage(exp, chosen, chosen.Own)
	out.Shorten()
	return out
}
