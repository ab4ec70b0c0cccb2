package analysis

import (
	"cmp"
	"fmt"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// holm corrects for the number of chances a candidate has to fail. It is NoGo as soon as one of its Blocking gates is, so
// with many gates and points some interval would miss its bound by accident: within a candidate the NoGo of m gates are
// tested by Holm's step-down procedure (Holm 1979) at the level that one gate would have.
//
// Go needs no correction: a candidate is Go only if every gate is, and a test that all of several hypotheses fail has the
// level of each one of them (intersection-union test, Berger 1982).
func holm(d *data, results []GateResult, tails []float64) {
	families := map[string][]int{}
	for i, result := range results {
		if result.Severity == assayv1alpha1.Blocking && result.Op != assayv1alpha1.ParityEqual && result.Outcome != assayv1alpha1.VerdictInvalid {
			families[result.Candidate] = append(families[result.Candidate], i)
		}
	}
	alpha := (1 - d.confidence) / 2
	for _, family := range families {
		slices.SortStableFunc(family, func(a, b int) int { return cmp.Compare(tails[a], tails[b]) })
		rejecting := true
		for step, i := range family {
			level := alpha / float64(len(family)-step)
			if results[i].Outcome != assayv1alpha1.VerdictNoGo {
				continue
			}
			// A single test has been made already, by the interval itself.
			if rejecting = rejecting && (len(family)-step == 1 || tails[i] <= level); rejecting {
				continue
			}
			results[i].Outcome = assayv1alpha1.VerdictInconclusive
			results[i].Message += fmt.Sprintf("; but it is one of %d gates, and with so many chances that is not yet NoGo (Holm: p = %.2g, needed %.2g)", len(family), tails[i], level)
		}
	}
}
