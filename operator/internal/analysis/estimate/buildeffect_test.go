package estimate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func drawnOnce(random *rand.Rand, size float64) func(arm, build string) float64 {
	known := map[string]float64{}
	return func(arm, build string) float64 {
		key := arm + "/" + build
		if _, ok := known[key]; !ok {
			known[key] = size * random.NormFloat64()
		}
		return known[key]
	}
}

// Coverage of 99.5 % intervals where builds of two arms meet in pairs, crosswise, and where one arm is one build without an accident.
func TestBuilds_IntervalIncludesLayoutEffects(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs = 1500
	for _, tc := range []struct{ old, new, blocks int }{{10, 10, 10}, {5, 5, 30}, {10, 5, 10}, {6, 4, 12}, {0, 10, 10}} {
		t.Run(fmt.Sprintf("%d and %d builds in %d blocks", tc.old, tc.new, tc.blocks), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, uint64(tc.old*100+tc.new)))
			wrong := 0
			for run := range runs {
				accident := drawnOnce(random, 0.01)
				got := analyzed.PairOfBuilds(t, tc.old, tc.new, tc.blocks, uint64(run), 0.01, func(arm, build string) float64 {
					if build == "" {
						return 0
					}
					return accident(arm, build)
				}).Analyze()
				if got.Gates[0].Outcome != experiment.VerdictInconclusive {
					wrong++
				}
			}
			if share := float64(wrong) / runs; share > 0.012 {
				t.Errorf("%d of %d verdicts are wrong (%.4f)", wrong, runs, share)
			}
		})
	}
}

func TestBuilds_InTheAnalysis(t *testing.T) {
	t.Parallel()
	// The second build of the candidate is 10 % faster; the others differ by next to nothing.
	lucky := func(arm, build string) float64 {
		if arm == "new" && build == "b1" {
			return -0.1
		}
		return 0
	}
	executes := func(l *analyzed.Run, digest func(a *record.Attempt) string) {
		for i := range l.Attempts {
			a := &l.Attempts[i]
			a.Environment.Soft = maps.Clone(a.Environment.Soft)
			a.Environment.Soft["programDigest"] = digest(a)
		}
	}
	cases := map[string]struct {
		tamper  func(l *analyzed.Run)
		outcome experiment.Verdict
		message string
		warning string
	}{
		"one lucky build of five decides nothing": {
			outcome: experiment.VerdictInconclusive, message: "it rests on 5 builds, so further builds would decide",
		},
		"builds that are one program are one build": {
			tamper: func(l *analyzed.Run) {
				executes(l, func(a *record.Attempt) string { return "blake3:" + a.Arm })
			},
			outcome: experiment.VerdictInconclusive, message: "further blocks would decide",
			warning: "builds b0, b1, b2, b3, b4 of arm new executed the same program, so that they count as one",
		},
		"blocks that mix builds cannot tell them apart": {
			tamper: func(l *analyzed.Run) {
				turn := 0
				for i := range l.Attempts {
					if a := &l.Attempts[i]; a.Arm == "new" {
						a.Build = fmt.Sprintf("b%d", turn%5)
						turn++
					}
				}
				l.ReplanAsAttempted()
			},
			outcome: experiment.VerdictInvalid, message: "here blocks mix them",
		},
		"digests are those of a build": {
			tamper: func(l *analyzed.Run) {
				executes(l, func(a *record.Attempt) string { return "blake3:" + a.Arm + a.Build })
			},
			outcome: experiment.VerdictInconclusive, message: "it rests on 5 builds",
		},
		"a build that was built again during the run": {
			tamper: func(l *analyzed.Run) {
				executes(l, func(a *record.Attempt) string {
					if a.Arm == "new" && a.Build == "b2" && a.Block > "w000-b0005" {
						return "blake3:again"
					}
					return "blake3:" + a.Arm + a.Build
				})
			},
			outcome: experiment.VerdictInvalid, message: "arm new changed during the run: of its build b2 programDigest is blake3:again in",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.PairOfBuilds(t, 5, 5, 10, 1, 0.0005, lucky)
			if tc.tamper != nil {
				tc.tamper(l)
			}
			got := l.Analyze()
			if g := got.Gates[0]; g.Outcome != tc.outcome || !strings.Contains(g.Message, tc.message) {
				t.Errorf("%s: %s", g.Outcome, g.Message)
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, tc.warning) {
				t.Errorf("warnings:\n%s", warnings)
			}
			if name != "blocks that mix builds cannot tell them apart" {
				fixture.CheckInvariants(t, got) // There a level has no interval either.
			}
		})
	}
}
