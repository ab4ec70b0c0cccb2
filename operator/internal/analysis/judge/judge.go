// Package judge turns estimates into outcomes of gates, verdicts of candidates and the verdict of the run, and withdraws decisions
// that a finding doubts.
package judge

import (
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Findings are the decisions about a run.
type Findings struct {
	Verdict experiment.Verdict
	// SetupBroken is the first cause if the experiment measures nothing; empty otherwise.
	SetupBroken string
	// Screened is the decision of the screening blocks and Screening its gates, where the confirming blocks replace them.
	Screened   experiment.Verdict
	Screening  []analysis.GateResult
	Gates      []analysis.GateResult
	Controls   []analysis.ControlResult
	Candidates []analysis.Candidate
	// ValidBlocks counts screening blocks and ConfirmBlocks confirming ones, each of the point and arm with the fewest.
	ValidBlocks, ConfirmBlocks int
	// RelativeHalfWidth is the widest of the Blocking gates; nil when one of them has no interval.
	RelativeHalfWidth *float64
	Doubts            []analysis.Doubt
	Search            []analysis.SearchResult
	Predicted         []analysis.PredictionResult
	// Best are the Go candidates that may be the best, the better estimate first.
	Best []string
}

// Judge decides gates, candidates and the run, and compares the measurements with searches and predictions. Ratios are those of all
// blocks.
func Judge(d *estimate.Data, parity *selection.Parity, ratios []analysis.RatioResult, waves []record.Wave) Findings {
	out := Decide(d, parity)
	if why := setupBroken(d); why != "" {
		out.invalidate(why)
	}
	out.Doubts = Doubts(d, parity, ratios)
	out.Search = Searches(d, parity, waves)
	out.Predicted = Predictions(d, parity)
	out.Best = Best(d, out.Candidates, out.Gates)
	return out
}

// Decide judges the screening blocks. If the design asks for confirmation, a decision stands only if the confirming blocks repeat it.
func Decide(all *estimate.Data, parity *selection.Parity) Findings {
	exp, chosen := all.Exp, all.Chosen
	screening := all
	if chosen.HasOther(record.Screen) {
		screening = estimate.New(exp, chosen, chosen.Only(record.Screen))
	}
	screened := judge(screening, parity, exp.Candidates(), record.Screen)
	out := Findings{ValidBlocks: screened.validBlocks, RelativeHalfWidth: screened.relativeHalfWidth}
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
	out.Gates, out.Controls, out.Candidates, out.Verdict = final.gates, final.controls, slices.Clone(final.candidates), final.verdict
	headlines(exp, out.Candidates, out.Gates, parity)
	return out
}
