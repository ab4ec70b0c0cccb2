package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// Self-inflicted noise of any kind never makes a slower candidate Go.
func TestSelfNoise_SlowerCandidateIsNeverGo(t *testing.T) {
	got, err := AttackBySelfNoise(480, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got.Count > 0 {
		t.Errorf("%d of %d runs are Go although the candidate is slower over all its trials", got.Count, got.Of)
	}
}

// A neighbour that slows both arms at random neither prevents nor reverses the verdict if the gain is much larger than its effect.
func TestSelfNoise_NeighbourOfBothArmsRetainsTheVerdict(t *testing.T) {
	const runs, blocks, share, gain = 100, 20, 0.2, 0.1
	neighbour := fixture.Neighbour{Slowdown: 1.5, OtherWork: 0.4}
	verdicts := map[experiment.Verdict]int{}
	for i := range uint64(runs) {
		random := rand.New(rand.NewPCG(1, i))
		l, err := newRejectionRun(blocks)
		if err != nil {
			t.Fatal(err)
		}
		verdicts[l.judge(-math.Log1p(gain), random, func(attempts map[string][]*record.Attempt) {
			for _, arm := range []string{"old", "new"} {
				for _, attempt := range attempts[arm] {
					if random.Float64() < share {
						neighbour.Disturb(attempt)
					}
				}
			}
		}).Verdict]++
	}
	if verdicts[experiment.VerdictNoGo] > 0 || verdicts[experiment.VerdictGo] < 90 {
		t.Errorf("%v of %d runs, want no NoGo and nearly every run Go", verdicts, runs)
	}
}
