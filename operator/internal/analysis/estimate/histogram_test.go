package estimate_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

func TestHistogram_EqualsSamples(t *testing.T) {
	t.Parallel()
	gate := assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p95", At: fixture.At8, Op: assayv1alpha1.RatioAtMost,
		Bound: "1.05"}
	l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates(gate))
	samples := l.Analyze()
	for i := range l.Attempts {
		metrics := l.Attempts[i].Result.Metrics
		metrics["latency"] = &record.Metric{Unit: "s", Histogram: fixture.AsHistogram(t, metrics["latency"].Samples)}
	}
	histograms := l.Analyze()
	if len(histograms.Excluded) > 0 {
		t.Fatal(histograms.Excluded)
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 2e-3*math.Abs(a) })
	for i := range samples.Arms {
		if diff := cmp.Diff(samples.Arms[i].Estimate.Value, histograms.Arms[i].Estimate.Value, near); diff != "" {
			t.Errorf("%s %s of %s (-samples +histograms):\n%s", samples.Arms[i].Statistic, samples.Arms[i].Metric, samples.Arms[i].Arm, diff)
		}
	}
	for i := range samples.Gates {
		a, b := samples.Gates[i], histograms.Gates[i]
		if a.Outcome != b.Outcome || !cmp.Equal(*a.Estimate.High, *b.Estimate.High, near) || a.Estimate.Samples != b.Estimate.Samples {
			t.Errorf("%s: %s with samples, %s with histograms", a.Title(), a.Message, b.Message)
		}
	}
}
