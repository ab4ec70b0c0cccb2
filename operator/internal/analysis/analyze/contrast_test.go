package analyze

import (
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// TestAContrastWithTheBaselineIsTheRatioOfTheReport holds the two ways to one ratio together, on many machines: a value with a standard
// error here, and one with its interval there.
func TestAContrastWithTheBaselineIsTheRatioOfTheReport(t *testing.T) {
	compared, widened := 0, 0
	for seed := range uint64(40) {
		run := simulated(t, 6+int(seed/2), fixture.Machine{Seed: seed, Noise: quiet}, nil)
		if seed%2 == 1 {
			run.coarse([]float64{1e-3, 4e-3, 0.0156}[seed/2%3])
		}
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
			if got.DF < float64(got.Blocks-1) {
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
	if compared < 100 || widened < 20 {
		t.Errorf("only %d ratios were compared, and the clock widened %d", compared, widened)
	}
}

// coarse reads all times by a clock with such a step: those of the baseline, and every other trial of the others.
func (l *simulatedRun) coarse(step float64) {
	for i := range l.attempts {
		a := &l.attempts[i]
		if latency := a.Reported().Metrics["latency"]; latency != nil && (a.Arm == "loop" || i%2 == 0) {
			for j := range latency.Samples {
				latency.Samples[j] = max(1, math.Floor(latency.Samples[j]/step)) * step
			}
		}
	}
}

// A correlation that the design declares is allowed for where there are blocks enough, in what combines runs as at gates.
func TestAContrastOfTooFewBlocksForTheDeclaredCorrelationIsNone(t *testing.T) {
	for blocks, want := range map[int]string{5: "to allow for the correlation of 0.5", 6: ""} {
		run := simulated(t, 12, fixture.Machine{Seed: 3, Noise: quiet}, func(spec *runSpec, template *templateSpec) {
			onePoint()(spec, template)
			spec.Design.BlockCorrelation = "0.5"
		})
		run.keepOnly(func(a record.Attempt) bool { return numbered(t, &a) < blocks })
		found := run.analyze()
		of := contrast.Quantity{Point: found.Ratios[0].Point, Metric: "latency", Statistic: "median"}
		if _, err := contrast.Of(found, run.exp, of, []string{"fused-m4r"}, []string{"loop"}); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d blocks: %v, want %q", blocks, err, want)
		}
	}
}
