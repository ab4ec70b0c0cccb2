package explain_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
)

// The program is twice as slow, and the steps of its clock are as long as its time, so that no block shows it.
func TestClockWarning_CoarseClockIsReported(t *testing.T) {
	gate := assayv1alpha1.Gate{Name: "not-slower", Metric: "time", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}
	found := analyzed.AnalyzePair(t, fixture.Scenario{Trial: 0.01}, func(spec *fixture.RunSpec) { spec.Gates = []assayv1alpha1.Gate{gate} },
		func(arm string, _ int) float64 {
			return map[string]float64{"old": 0.001, "new": 0.002}[arm]
		})
	if result := found.Gates[0]; result.Outcome != experiment.VerdictInconclusive ||
		!strings.Contains(result.Message, "its clock has steps of 1 times the value") {
		t.Errorf("%s: %s", result.Outcome, result.Message)
	}
}
