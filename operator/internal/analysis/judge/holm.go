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

// holm corrects the NoGo of a candidate for the number of its gates. One NoGo of a Blocking gate makes the candidate NoGo, so with
// many gates and points some interval would miss its bound by accident. Within a candidate the NoGo outcomes of m gates are tested by
// Holm's step-down procedure (Holm 1979) at the level of one gate.
//
// Go needs no correction. A candidate is Go only if every gate is, and a test that all of several hypotheses fail has the level of each
// of them (intersection-union test, Berger 1982).
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
				results[i].Message += fmt.Sprintf("; not NoGo after correction for %d gates (Holm: p = %s, "+
					"needed %s)", len(family), quantity.Plain(p[i].fails, 2), quantity.Plain(level, 2))
			}
		})
	}
}

// holmOverCandidates corrects the Go of candidates for their number. One Go candidate makes the run Go, so among many candidates
// without an effect some would pass their gates by accident. The Go outcomes of the contenders are one family. The p-value of a
// candidate is the largest of its gates, because all have to hold. NoGo needs no correction here, because the run is NoGo only if every
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
			candidate.Reason += fmt.Sprintf("; not Go after correction for %d candidates (Holm: p = %s, "+
				"needed %s)", len(family), quantity.Plain(value(i), 2), quantity.Plain(level, 2))
		}
	})
}

// stepDown applies Holm's procedure. The smallest p-value is tested at alpha divided by the size of the family, the next at alpha divided
// by the number of the rest, until one exceeds its level. It calls notRejected for that one and for all after it.
func stepDown(family []int, p func(int) float64, alpha float64, notRejected func(i int, level float64)) {
	slices.SortStableFunc(family, func(a, b int) int { return cmp.Compare(p(a), p(b)) })
	rejecting := true
	for step, i := range family {
		level := alpha / float64(len(family)-step)
		// The interval itself has already made a single test.
		if rejecting = rejecting && (len(family)-step == 1 || p(i) <= level); !rejecting {
			notRejected(i, level)
		}
	}
}
