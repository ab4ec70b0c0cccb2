package main

import (
	"testing"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/experiment"
)

func TestCheck_FailsOnlyIfTheRateIsCertain(t *testing.T) {
	for name, test := range map[string]struct {
		wrong, runs int
		fails       bool
	}{
		"no verdict is wrong": {0, 10, false},
		"nothing was run":     {0, 0, false},
		"one of ten, which one of ten checks has at the target rate": {1, 10, false},
		"three of ten":                         {3, 10, true},
		"three of three hundred is the target": {3, 300, false},
		"thirty of three hundred":              {30, 300, true},
	} {
		t.Run(name, func(t *testing.T) {
			tally := calibrate.RealTally{Runs: make([]calibrate.RealRun, test.runs)}
			for i := range test.runs {
				tally.Runs[i].Verdict = experiment.VerdictInconclusive
				if i < test.wrong {
					tally.Runs[i].Verdict = experiment.VerdictGo
				}
			}
			if got := checkReal([]calibrate.RealTally{tally}); (len(got) > 0) != test.fails {
				t.Errorf("the check prints %q", got)
			}
		})
	}
}
