package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/fixture"
)

// The error rates of the calibration hold for every kind and size of a carry-over that reaches one trial, because neither changes an
// estimate.
func TestCarryOver_KindAndSizeChangeNoEstimate(t *testing.T) {
	for _, design := range []fixture.Design{{Arms: 2}, {Arms: 2, Points: 2}, {Arms: 3}, {Arms: 5, Blocks: 7}, {Arms: 16, Blocks: 4}} {
		of := func(effect func(fixture.Place) float64, seed uint64) (Tally, error) {
			s := fixture.Scenario{Name: "carry", Trial: 0.01, Design: design}
			if effect != nil {
				s.Effect = func(*rand.Rand) func(fixture.Place) float64 { return effect }
			}
			exp, err := fixture.ScenarioExperiment(s)
			if err != nil {
				return Tally{}, err
			}
			truth := math.Log(1.01)
			return one(exp, s.Lanes(), fixture.NewWorld(s, truth, seed, 1), truth)
		}
		for seed := range uint64(3) {
			want, err := of(nil, seed)
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range fixture.Carries {
				for _, size := range fixture.CarrySizes {
					got, err := of(kind.Effect(size), seed)
					if err != nil {
						t.Fatal(err)
					}
					// The rest of a longer carry-over can be excluded less often where there is one, which takes decisions and adds none.
					decided := func(t Tally) int { return t.Right + t.False() }
					if got.Covered != want.Covered || got.PlainCovered != want.PlainCovered || got.Blocks != want.Blocks || decided(got) > decided(want) {
						t.Errorf("%+v, seed %d: a carry-over of %g (%s) gives %+v, want %+v as without one", design, seed, size, kind, got, want)
					}
				}
			}
		}
	}
}
