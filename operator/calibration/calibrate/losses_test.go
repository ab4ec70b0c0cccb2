package calibrate

import "testing"

func TestLosses_NoCandidateWinsByLostTrials(t *testing.T) {
	runs := 450
	if testing.Short() {
		runs = 90
	}
	share, err := Censored(runs, 1, func(what string) { t.Error(what) })
	if err != nil || share.Count != 0 || share.Of != runs {
		t.Errorf("%+v, %v", share, err)
	}
}
