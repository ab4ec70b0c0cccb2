package judge

import (
	"math/rand/v2"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

// judgedTwice is a gate "at most the baseline" with an outcome, an estimate and an interval without the rejected trials, and with them.
func judgedTwice(outcome experiment.Verdict, value, low, high float64, again experiment.Verdict, with float64) *analysis.GateResult {
	spread := func(value, low, high float64) *analysis.Estimate {
		return &analysis.Estimate{Value: value, Unit: "1", Ratio: true, Low: &low, High: &high, Blocks: 20}
	}
	return &analysis.GateResult{
		Op: experiment.RatioAtMost, Bound: ptr.To(1.0), Outcome: outcome, Estimate: spread(value, low, high),
		WithRejected: &analysis.Recomputed{Outcome: again, Without: outcome, Rejected: 46, Estimate: spread(with, with/2, with*2)},
	}
}

// The interval without the rejected trials, moved to the estimate with them, ends at 0.95/0.90 of that estimate. The limit is 0.9474.
func TestRejectionDecides_LimitIsTheSameForGoAndNoGo(t *testing.T) {
	const value, low, high = 0.90, 0.85, 0.95
	for name, tc := range map[string]struct {
		again   experiment.Verdict
		with    float64
		decides bool
	}{
		"the same estimate, less certain":      {experiment.VerdictInconclusive, 0.90, false},
		"an estimate that is better":           {experiment.VerdictInconclusive, 0.80, false},
		"just inside of the limit":             {experiment.VerdictInconclusive, 0.947, false},
		"just outside of the limit":            {experiment.VerdictInconclusive, 0.948, true},
		"the estimate moves across the bound":  {experiment.VerdictInconclusive, 1.01, true},
		"the opposite outcome":                 {experiment.VerdictNoGo, 1.20, true},
		"no outcome, with the same estimate":   {experiment.VerdictInvalid, 0.90, false},
		"the same outcome, with any estimates": {experiment.VerdictGo, 0.99, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rejectionDecides(nil, nil, judgedTwice(experiment.VerdictGo, value, low, high, tc.again, tc.with)); (got != "") != tc.decides {
				t.Errorf("Go: %q", got)
			}
			// The reciprocal of every figure, with the other outcomes, is the same situation for a NoGo.
			again := map[experiment.Verdict]experiment.Verdict{
				experiment.VerdictGo: experiment.VerdictNoGo, experiment.VerdictNoGo: experiment.VerdictGo,
			}
			other, known := again[tc.again]
			if !known {
				other = tc.again
			}
			mirrored := judgedTwice(experiment.VerdictNoGo, 1/value, 1/high, 1/low, other, 1/tc.with)
			if got := rejectionDecides(nil, nil, mirrored); (got != "") != tc.decides {
				t.Errorf("NoGo: %q", got)
			}
		})
	}
}

func TestRejectionDecides_GoAndNoGoAlikeForAnyFigures(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		high := 0.5 + 0.49*random.Float64()
		low := high * (0.5 + 0.5*random.Float64())
		value, with := low+(high-low)*random.Float64(), 0.3+random.Float64()
		goes := judgedTwice(experiment.VerdictGo, value, low, high, experiment.VerdictInconclusive, with)
		fails := judgedTwice(experiment.VerdictNoGo, 1/value, 1/high, 1/low, experiment.VerdictInconclusive, 1/with)
		if a, b := rejectionDecides(nil, nil, goes) != "", rejectionDecides(nil, nil, fails) != ""; a != b {
			t.Fatalf("%g [%g, %g], with them %g: Go is doubted %t, NoGo %t", value, low, high, with, a, b)
		}
	}
}
