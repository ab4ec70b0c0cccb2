package judge_test

import (
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// WithRejected equals the outcome of the same run with every limit off.
func TestWithRejected_EqualsRunWithoutLimits(t *testing.T) {
	t.Parallel()
	limits := assayv1alpha1.NoiseLimits{OtherWork: "off", Steal: "off"}
	tamper := beside(cpuNeighbour, nil, 3, 7)
	run := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 5, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.2)},
		fixture.WithGates(fixture.GainAt8("1.1")))
	open := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 5, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.2)}, func(
		spec *fixture.RunSpec, template *fixture.TemplateSpec) {
		fixture.WithGates(fixture.GainAt8("1.1"))(spec, template)
		spec.Environment = &assayv1alpha1.Environment{Noise: limits}
	})
	tamper(run)
	tamper(open)
	with, all := run.Analyze(), open.Analyze()
	for i, gate := range with.Gates {
		if !gate.Op.Timed() {
			continue
		}
		again := gate.WithRejected
		if again == nil || again.Outcome != all.Gates[i].Outcome || again.Estimate.Value != all.Gates[i].Estimate.Value ||
			*again.Estimate.Low != *all.Gates[i].Estimate.Low {
			t.Errorf("%s: with the rejected trials %+v, without limits %+v", gate.Title(), again, all.Gates[i])
		}
		if again.Rejected != 8 || again.Without != fixture.Go {
			t.Errorf("%s: %+v, want 8 trials of its two arms rejected, and Go without them", gate.Title(), again)
		}
		if all.Gates[i].WithRejected != nil {
			t.Errorf("%s: nothing was rejected and %+v is said", gate.Title(), all.Gates[i].WithRejected)
		}
	}
}

// A reading beyond a limit rejects one trial. The other arms of the block and the other trials of its arm remain.
func TestRejection_OtherTrialsOfTheBlockRemain(t *testing.T) {
	t.Parallel()
	run := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 5, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.2)},
		fixture.WithGates(fixture.GainAt8("1.1")))
	var hit *record.Attempt
	for i := range run.Attempts {
		a := &run.Attempts[i]
		if a.Block == "w000-b0004" && a.Arm == "fused-m4r" && !a.Warmup && a.Parameters["batchSize"] == "8" &&
			a.Parameters["pendingDelta"] == "0" && a.Slot%experiment.VisitTrials == 1 {
			hit = a
			break
		}
	}
	fixture.Neighbour{Slowdown: 3, OtherWork: 0.5}.Disturb(hit)
	got := run.Analyze()
	for _, gate := range got.Gates {
		if gate.Estimate.Blocks != 12 {
			t.Errorf("%s of %s rests on %d blocks, want all 12", gate.Title(), gate.Candidate, gate.Estimate.Blocks)
		}
	}
	if got.Trials.Used != 12*36-1 || got.LostBlocks != 0 {
		t.Errorf("%d trials used and %d blocks lost, want all but one and none", got.Trials.Used, got.LostBlocks)
	}
}

// A load that an arm sustains only in the trials that its own other work does not slow down is not one that it sustains.
func TestSearch_OwnNoiseIsNotExcused(t *testing.T) {
	t.Parallel()
	exp := searchExperiment(t, nil)
	machine := fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: served(map[string]float64{"loop": 1200, "fused-m4r": 1200})}
	trial := 0
	found := searchTo(t, exp, machine, func(a *record.Attempt) {
		if a.Arm == "fused-m4r" && a.Parameters["rate"] == "800" {
			if trial++; trial%2 == 0 {
				fixture.Neighbour{Slowdown: 3, OtherWork: 0.4}.Disturb(a)
			}
		}
	})
	for _, answer := range found.Search {
		want := map[string]string{"loop": "800", "fused-m4r": "400"}[answer.Arm]
		if answer.FeasibleMax != want {
			t.Errorf("%s sustains %s, want %s: %+v", answer.Arm, answer.FeasibleMax, want, answer)
		}
	}
}
