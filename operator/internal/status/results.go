package status

import (
	"cmp"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
)

// The API's limits of lists and texts. They keep the status far below 256 KiB for any results.
const (
	maxGates     = 128
	maxWarnings  = 32
	maxText      = 512
	maxShortText = 64
	maxBest      = 256
	maxGain      = 256
	maxNumber    = 32
	maxExpected  = 256
)

// Results copies an analysis into a status, also for a run outside of a cluster. The ledger has the complete analysis.
func Results(out *assayv1alpha1.BenchmarkRunStatus, exp *experiment.Experiment, result *analysis.Analysis, report string) {
	out.Verdict, out.Best, out.Report = assayv1alpha1.Verdict(result.Verdict), record.Truncate(result.BestText(), maxBest), report
	out.Candidates, out.Gain = candidates(result), gain(result.Headline)
	out.Gates = gates(exp, result.Gates)
	out.Search = searchAnswers(result.Search)
	out.Expected = ""
	if exp != nil && exp.Plan.Search == nil {
		out.Expected = record.Truncate(explain.ExpectedText(exp, result), maxExpected)
	}
	out.Warnings = nil
	for _, warning := range result.Warnings[:min(len(result.Warnings), maxWarnings)] {
		out.Warnings = append(out.Warnings, record.Truncate(warning, maxText))
	}
	// For blocks that ran since the analysis this is not known yet.
	out.Trials.Failed, out.Trials.Invalid = int32(result.Trials.Failed), int32(result.Trials.Invalid)
	out.Trials.Done = max(out.Trials.Done-out.Trials.Failed-out.Trials.Invalid, int32(result.Trials.Used))
}

func candidates(result *analysis.Analysis) (out []assayv1alpha1.CandidateStatus) {
	for _, c := range result.Candidates {
		// Without gates there is no verdict, and a candidate's is required.
		if c.Verdict != "" {
			out = append(out, assayv1alpha1.CandidateStatus{Name: c.Name, Verdict: assayv1alpha1.Verdict(c.Verdict), Gain: gain(c.Headline)})
		}
	}
	return out
}

func gain(headline *analysis.Headline) string {
	if headline == nil {
		return ""
	}
	return record.Truncate(headline.Text, maxGain)
}

// gates lists the gates in the order in which they matter: blocking before advisory, and of each those that prevent Go first.
func gates(exp *experiment.Experiment, results []analysis.GateResult) []assayv1alpha1.GateStatus {
	results = slices.Clone(results)
	slices.SortStableFunc(results, func(a, b analysis.GateResult) int { return cmp.Compare(rank(a), rank(b)) })
	var out []assayv1alpha1.GateStatus
	for _, result := range results[:min(len(results), maxGates)] {
		status := assayv1alpha1.GateStatus{
			Name: result.Gate, Candidate: result.Candidate, Point: record.Truncate(result.Point, maxText),
			Outcome: assayv1alpha1.Verdict(result.Outcome), Severity: assayv1alpha1.Severity(result.Severity),
			Message: record.Truncate(report.Message(&result), maxText),
		}
		if exp != nil {
			status.Bound = record.Truncate(analysis.BoundText(exp, result.Condition()), maxNumber)
		}
		if e := result.Estimate; e != nil {
			status.Blocks = int32(e.Blocks)
			status.Estimate = number(e.Value, e.Shown())
			if e.Low != nil && e.High != nil {
				status.Interval = &assayv1alpha1.Interval{Low: number(*e.Low, e.Shown()), High: number(*e.High, e.Shown())}
			}
		}
		// One that exceeds the figure itself says nothing.
		if effect := result.MinimumDetectableEffect; effect != nil && *effect < 1 {
			status.MinimumDetectableEffect = record.Truncate(quantity.Format(*effect*100, "")+"%", maxNumber)
		}
		out = append(out, status)
	}
	return out
}

func rank(result analysis.GateResult) int {
	out := slices.Index([]experiment.Verdict{
		experiment.VerdictNoGo, experiment.VerdictInvalid, experiment.VerdictInconclusive, experiment.VerdictGo,
	}, result.Outcome)
	if result.Severity == experiment.Advisory {
		out += 10
	}
	return out
}

func number(value float64, unit string) string {
	return record.Truncate(quantity.Format(value, unit), maxNumber)
}
