package analyze

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// listBuilds gives an arm so many builds.
func listBuilds(arm *assayv1alpha1.Arm, n int) {
	for b := range n {
		name := fmt.Sprintf("b%d", b)
		arm.Builds = append(arm.Builds, assayv1alpha1.Build{Name: name, Program: "/builds/" + name})
	}
}

// pairOfBuilds is a run of two arms with so many builds, in so many blocks; accident is the logarithm of what a build's layout
// makes of its time, by arm and build.
func pairOfBuilds(t testing.TB, old, new, blocks int, seed uint64, noise float64, accident func(arm, build string) float64) *simulatedRun {
	t.Helper()
	exp, err := fixture.PairExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Design.Blocks.Min = int32(blocks)
		listBuilds(&spec.Arms[0], old)
		listBuilds(&spec.Arms[1], new)
	})
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	if err != nil {
		t.Fatal(err)
	}
	l := &simulatedRun{exp: exp, waves: []record.Wave{*wave},
		attempts: fixture.NewWorld(fixture.Scenario{Trial: noise}, 0, seed, 1).Run(exp, wave)}
	for i := range l.attempts {
		a := &l.attempts[i]
		value := *a.Result.Metrics["time"].Value * math.Exp(accident(a.Arm, a.Build))
		a.Result.Metrics["time"] = &record.Metric{Unit: "s", Value: &value}
	}
	return l
}

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

// asAttempted makes the plan one of what ran, with the commands that belong to it.
func (l *simulatedRun) asAttempted() {
	l.waves = nil
	for i := range l.attempts {
		for _, c := range l.exp.Cells {
			if a := &l.attempts[i]; l.exp.Arms[c.Arm].Name == a.Arm && c.Build == a.Build {
				a.Argv = c.Argv
			}
		}
	}
}

// Coverage of 99.5 % intervals where builds of two arms meet in pairs, crosswise, and where one arm is one build without an accident.
func TestIntervalsHoldAccidentsOfBuilds(t *testing.T) {
	const runs = 1500
	for _, tc := range []struct{ old, new, blocks int }{{10, 10, 10}, {5, 5, 30}, {10, 5, 10}, {6, 4, 12}, {0, 10, 10}} {
		t.Run(fmt.Sprintf("%d and %d builds in %d blocks", tc.old, tc.new, tc.blocks), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, uint64(tc.old*100+tc.new)))
			wrong := 0
			for run := range runs {
				accident := drawnOnce(random, 0.01)
				got := pairOfBuilds(t, tc.old, tc.new, tc.blocks, uint64(run), 0.01, func(arm, build string) float64 {
					if build == "" {
						return 0
					}
					return accident(arm, build)
				}).analyze()
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

func TestBuildsInTheAnalysis(t *testing.T) {
	// The second build of the candidate is 10 % faster; the others differ by next to nothing.
	lucky := func(arm, build string) float64 {
		if arm == "new" && build == "b1" {
			return -0.1
		}
		return 0
	}
	executes := func(l *simulatedRun, digest func(a *record.Attempt) string) {
		for i := range l.attempts {
			a := &l.attempts[i]
			a.Environment.Soft = maps.Clone(a.Environment.Soft)
			a.Environment.Soft["programDigest"] = digest(a)
		}
	}
	cases := map[string]struct {
		tamper  func(l *simulatedRun)
		outcome experiment.Verdict
		message string
		warning string
	}{
		"one lucky build of five decides nothing": {
			outcome: experiment.VerdictInconclusive, message: "it rests on 5 builds, so further builds would decide",
		},
		"builds that are one program are one build": {
			tamper: func(l *simulatedRun) {
				executes(l, func(a *record.Attempt) string { return "blake3:" + a.Arm })
			},
			outcome: experiment.VerdictInconclusive, message: "further blocks would decide",
			warning: "builds b0, b1, b2, b3, b4 of arm new executed the same program, so that they count as one",
		},
		"blocks that mix builds cannot tell them apart": {
			tamper: func(l *simulatedRun) {
				turn := 0
				for i := range l.attempts {
					if a := &l.attempts[i]; a.Arm == "new" {
						a.Build = fmt.Sprintf("b%d", turn%5)
						turn++
					}
				}
				l.asAttempted()
			},
			outcome: experiment.VerdictInvalid, message: "here blocks mix them",
		},
		"digests are those of a build": {
			tamper: func(l *simulatedRun) {
				executes(l, func(a *record.Attempt) string { return "blake3:" + a.Arm + a.Build })
			},
			outcome: experiment.VerdictInconclusive, message: "it rests on 5 builds",
		},
		"a build that was built again during the run": {
			tamper: func(l *simulatedRun) {
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
			l := pairOfBuilds(t, 5, 5, 10, 1, 0.0005, lucky)
			if tc.tamper != nil {
				tc.tamper(l)
			}
			got := l.analyze()
			if g := got.Gates[0]; g.Outcome != tc.outcome || !strings.Contains(g.Message, tc.message) {
				t.Errorf("%s: %s", g.Outcome, g.Message)
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, tc.warning) {
				t.Errorf("warnings:\n%s", warnings)
			}
			if name != "blocks that mix builds cannot tell them apart" {
				checkInvariants(t, got) // There a level has no interval either.
			}
		})
	}
}

func TestTheTurnsThatBuildsLostAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		old, new int
		damage   func(*record.Attempt) bool
		want     []analysis.LostTurn
	}{
		"nothing lost": {3, 3, func(*record.Attempt) bool { return true }, nil},
		"a block of noise": {3, 3, noisyBlock("w000-b0001"),
			[]analysis.LostTurn{{Block: "w000-b0001", Point: "", Arm: "old"}, {Block: "w000-b0001", Point: "", Arm: "new"}}},
		"an arm that never started":                  {3, 3, fate("w000-b0002", "new", record.NotStarted), []analysis.LostTurn{{Block: "w000-b0002", Point: "", Arm: "new"}}},
		"of an arm that is one build nothing":        {0, 3, noisyBlock("w000-b0001"), []analysis.LostTurn{{Block: "w000-b0001", Point: "", Arm: "new"}}},
		"what a program failed at is its turn":       {3, 3, fate("w000-b0002", "new", record.Failed), nil},
		"a block that left nothing is a block unrun": {3, 3, func(a *record.Attempt) bool { return a.Block != "w000-b0002" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := pairOfBuilds(t, tc.old, tc.new, 6, 1, 0.001, func(string, string) float64 { return 0 })
			var left []record.Attempt
			for i := range l.attempts {
				if tc.damage(&l.attempts[i]) {
					left = append(left, l.attempts[i])
				}
			}
			l.attempts = left
			got := slices.SortedFunc(slices.Values(l.analyze().LostTurns), func(a, b analysis.LostTurn) int {
				return -strings.Compare(a.Arm, b.Arm)
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("lost turns %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAttemptsOfUnknownBuildsAreForeign(t *testing.T) {
	cases := map[string]struct{ build, says string }{
		"none":      {"", "it does not name the build"},
		"unknown":   {"b9", `arm "new" has no build "b9"`},
		"another's": {"b0", "was planned for build"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := pairOfBuilds(t, 3, 3, 3, 1, 0.001, func(string, string) float64 { return 0 })
			for i := range l.attempts {
				if a := &l.attempts[i]; a.Arm == "new" && a.Build == "b1" {
					a.Build = tc.build
				}
			}
			got := l.analyze()
			if len(got.Excluded) != 2 || !strings.Contains(got.Excluded[0].Reason, tc.says) {
				t.Errorf("excluded %+v", got.Excluded)
			}
		})
	}
}

func TestTheAnalysisSaysWhatLayoutMayHaveDone(t *testing.T) {
	same := func(string, string) float64 { return 0 }
	for _, tc := range []struct {
		old, new int
		says     []string
	}{
		{0, 0, []string{"Every arm is one build: an effect below about 4.0 % may be an accident", "arms[].builds"}},
		{0, 5, []string{"old is one build (several are new (5)): an effect below about 2.8 %"}},
		{5, 5, []string{"Every arm is several builds, old (5), new (5)"}},
	} {
		got := pairOfBuilds(t, tc.old, tc.new, 5, 1, 0.001, same).analyze()
		for _, says := range tc.says {
			if !strings.Contains(got.Layout, says) {
				t.Errorf("%d and %d builds: %s", tc.old, tc.new, got.Layout)
			}
		}
	}
}
