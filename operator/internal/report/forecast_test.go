package report

import (
	"math"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// Runs that ten blocks do not decide continue for as many blocks as the forecast says. It is right in at least 40 of 50 of them.
func TestForecast_IsRightInFourOfFiveRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it judges 300 simulated runs")
	}
	exp, err := fixture.PairExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Design.Blocks, spec.Budget.Trials = assayv1alpha1.Blocks{Min: 10, Max: 1000}, 100_000
	})
	if err != nil {
		t.Fatal(err)
	}
	const runs, wanted, longest = 50, 40, 990
	for _, effect := range []float64{0.02, 0.04, 0.06} {
		right, tried := 0, 0
		for stream := uint64(0); tried < runs; stream++ {
			machine := fixture.Scenarios()[0]
			machine.Trial = 0.05
			world := fixture.NewWorld(machine, math.Log1p(effect), 7, stream)
			first, err := fixture.Wave(exp, 0, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			evidence := record.Evidence{Waves: []record.Wave{*first}, Attempts: world.Run(exp, first)}
			result := analyze.Evidence(exp, evidence, 0)
			more, _, known := forecast(result, &result.Gates[0])
			if !known || more > longest {
				continue // It is decided, or more blocks are needed than a run may have.
			}
			next, err := fixture.Wave(exp, 1, 10, more)
			if err != nil {
				t.Fatal(err)
			}
			evidence.Waves, evidence.Attempts = append(evidence.Waves, *next), append(evidence.Attempts, world.Run(exp, next)...)
			if tried++; analyze.Evidence(exp, evidence, 1).Gates[0].Outcome != experiment.VerdictInconclusive {
				right++
			}
		}
		if t.Logf("effect %g: the forecast is right in %d of %d runs", effect, right, tried); right < wanted {
			t.Errorf("effect %g: the forecast is right in %d of %d runs, want at least %d", effect, right, tried, wanted)
		}
	}
}

func TestMoreTime_UnitFitsDuration(t *testing.T) {
	for want, took := range map[string]time.Duration{
		"about 7 more blocks": 0, "about 1 more second": 700 * time.Millisecond, "about 90 more seconds": 90 * time.Second,
		"about 4 more minutes": 230 * time.Second, "about 3 more hours": 170 * time.Minute,
	} {
		if got := moreTime(7, took); got != want {
			t.Errorf("%s: %s, want %s", took, got, want)
		}
	}
}
