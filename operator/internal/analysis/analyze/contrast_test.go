package analyze

import (
	"math"
	"testing"

	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/simulate"
)

// TestAContrastWithTheBaselineIsTheRatioOfTheReport holds the two ways to one ratio together, on many machines: a value with a standard
// error here, and one with its interval there.
func TestAContrastWithTheBaselineIsTheRatioOfTheReport(t *testing.T) {
	compared := 0
	for seed := range uint64(20) {
		run := simulated(t, 6+int(seed), simulate.Machine{Seed: seed, Noise: quiet}, nil)
		found := run.analyze()
		for _, r := range found.Ratios {
			if len(r.PerBlock) == 0 || r.Series != nil && (r.Series.Dependent || r.Series.Skewed) {
				continue
			}
			of := contrast.Quantity{Point: r.Point, Metric: r.Metric, Statistic: r.Statistic}
			got, err := contrast.Of(found, run.exp, of, []string{r.Candidate}, []string{"loop"})
			if err != nil {
				t.Fatal(err)
			}
			half := stats.StudentQuantile((1+found.Confidence)/2, got.DF) * got.SE
			for name, pair := range map[string][2]float64{
				"value": {math.Exp(got.LogRatio), r.Estimate.Value}, "low": {math.Exp(got.LogRatio - half), *r.Estimate.Low},
				"high": {math.Exp(got.LogRatio + half), *r.Estimate.High},
			} {
				if math.Abs(pair[0]/pair[1]-1) > 1e-9 {
					t.Fatalf("seed %d, %s of %s: its %s is %v and the ratio's %v", seed, r.Candidate, of, name, pair[0], pair[1])
				}
			}
			if got.Blocks != r.Estimate.Blocks {
				t.Fatalf("%d blocks, and the ratio has %d", got.Blocks, r.Estimate.Blocks)
			}
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("only %d ratios were compared", compared)
	}
}
