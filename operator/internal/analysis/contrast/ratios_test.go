package contrast_test

import (
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// TestContrast_WithBaselineEqualsRatio holds the two ways to one ratio together, on many machines: a value with a standard
// error here, and one with its interval there.
func TestContrast_WithBaselineEqualsRatio(t *testing.T) {
	seeds, compared, widened := 40, 0, 0
	if testing.Short() {
		seeds = 4
	}
	for seed := range uint64(seeds) {
		run := analyzed.SimulateScan(t, 6+int(seed/2), fixture.Machine{Seed: seed, Noise: fixture.QuietNoise}, nil)
		if seed%2 == 1 {
			run.CoarsenClock([]float64{1e-3, 4e-3, 0.0156}[seed/2%3])
		}
		found := run.Analyze()
		for _, r := range found.Ratios {
			if len(r.PerBlock) == 0 || r.Series != nil && (r.Series.Dependent || r.Series.Skewed) {
				continue
			}
			of := contrast.Quantity{Point: r.Point, Metric: r.Metric, Statistic: r.Statistic}
			got, err := contrast.Of(found, run.Exp, of, []string{r.Candidate}, []string{"loop"})
			if err != nil {
				t.Fatal(err)
			}
			if got.DF < float64(got.Blocks-1-r.Terms) {
				continue // Its blocks depend on each other where the trials in them explain that to the ratio.
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
			if r.Resolution != nil && r.Resolution.Widened {
				widened++
			}
		}
	}
	if compared < 2*seeds || widened < seeds/2 {
		t.Errorf("only %d ratios were compared, and the clock widened %d", compared, widened)
	}
}

// A declared correlation needs enough blocks, in a contrast as at gates.
func TestContrast_TooFewBlocksForCorrelationIsAnError(t *testing.T) {
	for blocks, want := range map[int]string{5: "the correlation of 0.5", 6: ""} {
		run := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 3, Noise: fixture.QuietNoise}, func(spec *fixture.RunSpec,
			template *fixture.TemplateSpec) {
			fixture.OnePoint()(spec, template)
			spec.Design.BlockCorrelation = "0.5"
		})
		run.Retain(func(a record.Attempt) bool { return fixture.BlockNumber(t, &a) < blocks })
		found := run.Analyze()
		of := contrast.Quantity{Point: found.Ratios[0].Point, Metric: "latency", Statistic: "median"}
		if _, err := contrast.Of(found, run.Exp, of, []string{"fused-m4r"}, []string{"loop"}); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d blocks: %v, want %q", blocks, err, want)
		}
	}
}
