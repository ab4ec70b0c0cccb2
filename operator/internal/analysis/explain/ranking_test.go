package explain_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestRankingWarnings_ReversedOrder(t *testing.T) {
	turning := func(point record.Point, arm string) float64 {
		seconds := fixture.ScanSeconds(point, "loop")
		switch {
		case arm == "fused-m4r" && point.Parameters["batchSize"] == "8":
			return seconds / 2
		case arm == "fused-m4r":
			return seconds * 1.2
		}
		return seconds
	}
	cases := map[string]struct {
		seconds func(record.Point, string) float64
		tamper  func(*analyzed.Run)
		warning string
	}{
		"arms that keep their order raise nothing":      {seconds: fixture.SpeedUp(1.2)},
		"arms that are equal have no ranking to change": {seconds: fixture.SpeedUp(1)},
		"a gain that is there in batches only changes no ranking": {seconds: func(point record.Point, arm string) float64 {
			if point.Parameters["batchSize"] == "8" {
				return fixture.SpeedUp(1.2)(point, arm)
			}
			return fixture.SpeedUp(1)(point, arm)
		}},
		"arms that change places along the sweep are named with both places": {
			seconds: turning, warning: "the ranking of fused-m4r and loop by latency changes with scale: fused-m4r has 1.2",
		},
		"phases that change places along the sweep are named with both places": {
			seconds: fixture.SpeedUp(1.2),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) {
					if a.Parameters["batchSize"] == "8" {
						a.Result.Phases[0].Samples, a.Result.Phases[1].Samples = a.Result.Phases[1].Samples, a.Result.Phases[0].Samples
					}
				})
			},
			warning: "the ranking of the phases of arm fused-m4r changes with scale",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: c.seconds}, fixture.WithGates())
			if c.tamper != nil {
				c.tamper(l)
			}
			var found []string
			for _, warning := range l.Analyze().Notes {
				if strings.Contains(warning, "the ranking of") {
					found = append(found, warning)
				}
			}
			switch {
			case c.warning == "" && len(found) > 0:
				t.Errorf("warns %q", found)
			case c.warning != "" && (len(found) == 0 || !strings.Contains(found[0], c.warning)):
				t.Errorf("warns %q, want one with %q", found, c.warning)
			}
		})
	}
}

func TestBuildWarnings_TwoBuildsAreReported(t *testing.T) {
	l := analyzed.SimulateScan(t, 4, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates())
	l.LastOf("fused-m4r").Result.Workload.Version = "0.2.0"
	if warnings := strings.Join(l.Analyze().Warnings, "\n"); !strings.Contains(warnings, "the trials of arm fused-m4r ran 2 builds") {
		t.Errorf("warnings %q", warnings)
	}
}
