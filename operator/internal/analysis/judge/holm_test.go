package judge_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestHolm_NoGoOfManyGatesIsInconclusive(t *testing.T) {
	t.Parallel()
	// 1.02 times slower than allowed, with noise such that one gate alone is a narrow NoGo.
	one := assayv1alpha1.Gate{Name: "a", Metric: "throughput", At: fixture.At8, Candidate: "fused-m4r", Op: assayv1alpha1.RatioAtLeast,
		Bound: "1.5"}
	seconds := func(point record.Point, arm string) float64 {
		if point.Parameters["batchSize"] == "8" && arm != "loop" {
			return fixture.ScanSeconds(point, "loop") / 1.38
		}
		return fixture.ScanSeconds(point, "loop")
	}
	machine := fixture.Machine{Seed: 3, Noise: fixture.Noise{Block: 0.02, Arm: 0, Trial: 0.045, Sample: 0.01}, Seconds: seconds}
	alone := analyzed.SimulateScan(t, 8, machine, fixture.WithGates(one)).Analyze()
	if alone.Gates[0].Outcome != fixture.NoGo {
		t.Fatalf("alone the gate is %s: %s", alone.Gates[0].Outcome, alone.Gates[0].Message)
	}
	family := []assayv1alpha1.Gate{one}
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h"} {
		family = append(family, assayv1alpha1.Gate{Name: name, Metric: "latency", Candidate: "fused-m4r", Op: assayv1alpha1.RatioAtMost,
			Bound: "1.2"})
	}
	many := analyzed.SimulateScan(t, 8, machine, fixture.WithGates(family...)).Analyze()
	if got := many.Gates[0]; got.Outcome != fixture.Inconclusive || !strings.Contains(got.Message, "Holm") {
		t.Errorf("among %d gates it is %s: %s", len(many.Gates), got.Outcome, got.Message)
	}
	if diff := cmp.Diff(alone.Gates[0].Estimate, many.Gates[0].Estimate); diff != "" {
		t.Errorf("the correction changed the estimate:\n%s", diff)
	}
	for _, gate := range many.Gates[1:] {
		if gate.Outcome != fixture.Go {
			t.Errorf("%s: %s", gate.Title(), gate.Message)
		}
	}
}

func TestLevelGate_UsesTheReportedLevel(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulateScan(t, 6, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, nil)
	got := l.Analyze()
	compared := 0
	for _, gate := range got.Gates {
		if gate.Op != experiment.AtMost {
			continue
		}
		for _, a := range got.Arms {
			if a.Arm == gate.Candidate && a.Point == gate.Point && a.Metric == gate.Metric && a.Statistic == gate.Statistic {
				compared++
				if a.Estimate.Value != gate.Estimate.Value {
					t.Errorf("%s of %s at %s: %v is shown and %v judged", a.Metric, a.Arm, a.Point, a.Estimate.Value, gate.Estimate.Value)
				}
			}
		}
	}
	if compared != 8 {
		t.Errorf("%d levels compared", compared)
	}
}
