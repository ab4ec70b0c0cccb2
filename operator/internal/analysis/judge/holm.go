package judge

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// holm corrects for the number of chances a candidate has to fail. It is NoGo as soon as one of its Blocking gates is, so
// with many gates and points some interval would miss its bound by accident: within a candidate the NoGo of m gates are
// tested by Holm's step-down procedure (Holm 1979) at the level that one gate would have.
//
// For a candidate to be Go needs no correction: it is Go only if every gate is, and a test that all of several hypotheses
// fail has the level of each one of them (intersection-union test, Berger 1982).
func holm(d *estimate.Data, results []analysis.GateResult, p []tails) {
	families := map[string][]int{}
	for i, result := range results {
		if result.Severity == experiment.Blocking && result.Op.Timed() && result.Outcome != experiment.VerdictInvalid {
			families[result.Candidate] = append(families[result.Candidate], i)
		}
	}
	for _, family := range families {
		stepDown(family, func(i int) float64 { return p[i].fails }, (1-d.GateConfidence)/2, func(i int, level float64) {
			if results[i].Outcome == experiment.VerdictNoGo {
				results[i].Outcome = experiment.VerdictInconclusive
				results[i].Message += fmt.Sprintf("; but it is one of %d gates, and with so many chances that is not yet NoGo (Holm: p = %s, "+
					"needed %s)", len(family), quantity.Plain(p[i].fails, 2), quantity.Plain(level, 2))
			}
		})
	}
}

// holmOverCandidates corrects for the number of chances the run has to succeed. It is Go as soon as one candidate is, so among
// many worthless candidates some would hold its gates by accident: the Go of the contenders are one family. A candidate's
// p-value is that of its weakest gate, as all have to hold. NoGo needs no correction here: the run is NoGo only if every
// candidate is.
func holmOverCandidates(d *estimate.Data, j *judgement, p []tails, contenders []string) {
	weakest := map[string]float64{}
	for i, result := range j.gates {
		if result.Severity == experiment.Blocking && result.Op.Timed() && slices.Contains(contenders, result.Candidate) {
			weakest[result.Candidate] = max(weakest[result.Candidate], p[i].goes)
		}
	}
	var family []int
	for i, candidate := range j.candidates {
		if _, byTimes := weakest[candidate.Name]; byTimes {
			family = append(family, i)
		}
	}
	value := func(i int) float64 { return weakest[j.candidates[i].Name] }
	stepDown(family, value, (1-d.GateConfidence)/2, func(i int, level float64) {
		if candidate := &j.candidates[i]; candidate.Verdict == experiment.VerdictGo {
			candidate.Verdict = experiment.VerdictInconclusive
			candidate.Reason += fmt.Sprintf("; but it is one of %d candidates, and with so many chances that is not yet Go (Holm: p = %s, "+
				"needed %s)", len(family), quantity.Plain(value(i), 2), quantity.Plain(level, 2))
		}
	})
}

// stepDown is Holm's procedure: the smallest p-value is tested at the level shared by all, the next at the level shared by the
// rest, until one is not small enough; it and all after it are not rejected.
func stepDown(family []int, p func(int) float64, alpha float64, keep func(i int, level float64)) {
	slices.SortStableFunc(family, func(a, b int) int { return cmp.Compare(p(a), p(b)) })
	rejecting := true
	for step, i := range family {
		level := alpha / float64(len(family)-step)
		// A single test has been made already, by the interval itself.
		if rejecting = rejecting && (len(family)-step == 1 || p(i) <= level); !rejecting {
			keep(i, level)
		}
	}
}
