package main

import (
	"slices"
	"testing"

	"assay.dev/assay/operator/calibration/studies/refresh"
)

func TestLocalRuns_OfTheTreeHaveALimitAndTheirResults(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads all ledgers")
	}
	runs, err := localRuns(t.Context(), "../../../..", "")
	if err != nil {
		t.Fatal(err)
	}
	published := 0
	for _, run := range runs {
		if run.Limit <= 0 {
			t.Errorf("%s has no budget of time", run.File)
		}
		if run.Published {
			published++
		}
		if !run.Measured.IsZero() && run.Took <= 0 {
			t.Errorf("%s was measured on %s in no time", run.File, run.Measured)
		}
	}
	if published < 50 {
		t.Errorf("%d of %d runs have a result: results are looked for in another folder than they are stored in", published, len(runs))
	}
	due := refresh.Stalest(runs)
	first := slices.IndexFunc(due, func(run refresh.Run) bool { return run.Published })
	if first >= 0 && slices.ContainsFunc(due[first:], func(run refresh.Run) bool { return !run.Published }) {
		t.Error("a run with a result is before one without")
	}
}
