package calibrate

import "testing"

// Whatever a candidate does to itself, however it shows: where it is slower over all its trials, it is never Go.
func TestACandidateCannotExcuseItsOwnNoise(t *testing.T) {
	got, err := AttackBySelfNoise(480, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got.FalseGo > 0 {
		t.Errorf("%d of %d runs are Go although the candidate is slower over all its trials", got.FalseGo, got.Runs)
	}
}

// A neighbour who hits both arms at random does not cost the verdict, where the gain is far from what he adds, and never turns it.
func TestANeighbourOfBothArmsKeepsTheVerdict(t *testing.T) {
	got, err := BesideNeighbours(100, 1, 20, 0.2, 1.5, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	if got.Wrong > 0 || got.Right < 90 {
		t.Errorf("%+v, want no NoGo and nearly every run Go", got)
	}
}
