package judge_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// places is an effect on the trials of a simulated run without a random part.
func places(effect func(fixture.Place) float64) func(*rand.Rand) func(fixture.Place) float64 {
	return func(*rand.Rand) func(fixture.Place) float64 { return effect }
}

// dropsCache are the times of two commands that take equally long after each other, of which the candidate drops its file's page cache.
// Every further arm is a copy of the baseline.
func dropsCache(at fixture.Place) float64 {
	switch mine, after := at.Arm == 1, at.Before == 1; {
	case mine && after:
		return math.Log(0.1138)
	case mine:
		return math.Log(0.0742)
	case after:
		return math.Log(0.1295)
	default:
		return math.Log(0.0685)
	}
}

// decaying is an effect of the candidate on the trials of other arms after it, of which each of those trials leaves the given rest.
func decaying(size, rest float64) func(*rand.Rand) func(fixture.Place) float64 {
	return func(*rand.Rand) func(fixture.Place) float64 {
		left := 0.0
		return func(at fixture.Place) float64 {
			if at.Before == 1 {
				left = size
			}
			if at.Arm == 1 {
				return 0
			}
			out := left
			left *= rest
			return out
		}
	}
}

// simulate runs a scenario in which the candidate's time is the baseline's times a factor.
func simulate(t *testing.T, scenario fixture.Scenario, factor float64, seed uint64) *analyzed.Run {
	t.Helper()
	exp, err := fixture.ScenarioExperiment(scenario)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, int(scenario.Design.Blocks))
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.NewWorld(scenario, math.Log(factor), seed, 1).Run(exp, wave)
	return &analyzed.Run{Exp: exp, Waves: []record.Wave{*wave}, Attempts: attempts}
}

// timed returns the gate on the time of a candidate.
func timed(t *testing.T, got *analysis.Analysis, candidate string) analysis.GateResult {
	t.Helper()
	at := slices.IndexFunc(got.Gates, func(g analysis.GateResult) bool { return g.Metric == "time" && g.Candidate == candidate })
	if at < 0 {
		t.Fatalf("no gate on the time of %s among %+v", candidate, got.Gates)
	}
	return got.Gates[at]
}

func capsOf(gate analysis.GateResult) []analysis.CapReason {
	var out []analysis.CapReason
	for _, one := range gate.Caps {
		out = append(out, one.Reason)
	}
	return out
}

// The candidate takes 1.66 times as long after itself, and about as long after the same arm. In an order in which arms mostly follow each
// other, the baseline takes 1.3 times as long as the candidate.
func TestCarryOver_ProgramThatDropsItsCacheIsNoGo(t *testing.T) {
	t.Parallel()
	for _, arms := range []int{2, 4} {
		for _, blocks := range []int32{10, 20} {
			for _, noise := range []float64{0.02, 0.05} {
				t.Run(fmt.Sprintf("%d arms, %d blocks, noise %g", arms, blocks, noise), func(t *testing.T) {
					t.Parallel()
					design := fixture.Design{Arms: arms, Blocks: blocks}
					scenario := fixture.Scenario{Trial: noise, Effect: places(dropsCache), Design: design}
					for seed := range uint64(20) {
						got := simulate(t, scenario, 1, seed).Analyze()
						gate := timed(t, got, "new")
						if gate.Outcome != fixture.NoGo || math.Abs(gate.Estimate.Value-1.66) > 0.1 {
							t.Errorf("seed %d: %s, %s, want NoGo at about 1.66", seed, gate.Outcome, gate.Message)
						}
						if reason := find(t, got.Candidates, "new"); reason.Verdict != fixture.NoGo {
							t.Errorf("seed %d: the candidate is %s: %s", seed, reason.Verdict, reason.Reason)
						}
						for _, want := range []string{"with the same arm before both the ratio is ", "arm new changes the machine"} {
							if !strings.Contains(gate.Message, want) {
								t.Errorf("seed %d: %q does not contain %q", seed, gate.Message, want)
							}
						}
						for arm := 2; arm < arms; arm++ {
							if same := find(t, got.Candidates, fmt.Sprintf("other-%d", arm)); same.Verdict != fixture.Inconclusive {
								t.Errorf("seed %d: %s equals the baseline and is %s: %s", seed, same.Name, same.Verdict, same.Reason)
							}
						}
					}
				})
			}
		}
	}
}

// The effects on the next trial are in the analysis, with their intervals.
func TestCarryOver_EffectOnTheNextTrialIsReported(t *testing.T) {
	t.Parallel()
	got := simulate(t, fixture.Scenario{Trial: 0.02, Effect: places(dropsCache), Design: fixture.Design{Blocks: 20}}, 1, 1).Analyze()
	want := map[string]float64{"new": 0.1295 / 0.0685, "old": 0.0742 / 0.1138}
	for _, c := range got.CarryOver {
		if c.Metric != "time" || want[c.Arm] == 0 {
			t.Errorf("unexpected %+v", c)
			continue
		}
		if *c.Estimate.Low > want[c.Arm] || *c.Estimate.High < want[c.Arm] {
			t.Errorf("after %s: %s, want %.3f", c.Arm, analysis.Describe(&c.Estimate), want[c.Arm])
		}
		delete(want, c.Arm)
	}
	if len(want) > 0 {
		t.Errorf("no effects of %v in %+v", want, got.CarryOver)
	}
}

func TestCarryOver_NoEffectChangesNoMessage(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{0.9, 1, 1.1} {
		gate := timed(t, simulate(t, fixture.Scenario{Trial: 0.02, Design: fixture.Design{Blocks: 10}}, factor, 1).Analyze(), "new")
		if strings.Contains(gate.Message, "follows itself") || len(gate.Caps) > 0 {
			t.Errorf("factor %g: %+v of %q", factor, gate.Caps, gate.Message)
		}
	}
}

// formerOrder replaces the visits of a block by the forwards and backwards order of earlier plans.
func formerOrder(wave *record.Wave, block int) {
	if wave.Blocks[block].Order = []int{0, 1, 1, 0}; block%2 == 1 {
		wave.Blocks[block].Order = []int{1, 0, 0, 1}
	}
}

func TestCarryOver_OrderWithoutVisitsIsInconclusive(t *testing.T) {
	t.Parallel()
	all, eighth := func(int) bool { return true }, func(block int) bool { return block == 7 }
	for name, c := range map[string]struct {
		factor float64
		former func(block int) bool
		where  string
	}{
		"a faster candidate, every block forwards and backwards": {0.9, all, "old in block w000-b0000"},
		"a slower candidate, every block forwards and backwards": {1.1, all, "old in block w000-b0000"},
		"a faster candidate, one such block":                     {0.9, eighth, "new in block w000-b0007"},
	} {
		why := fmt.Sprintf("no trial of arm %s follows another trial of that arm", c.where)
		for _, plans := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, plans %v", name, plans), func(t *testing.T) {
				t.Parallel()
				l := analyzed.SimulatePair(t, c.factor, nil)
				want := map[bool]experiment.Verdict{true: fixture.Go, false: fixture.NoGo}[c.factor < 1]
				if gate := l.Analyze().Gates[0]; gate.Outcome != want {
					t.Fatalf("with visits: %s: %s, want %s", gate.Outcome, gate.Message, want)
				}
				for block := range l.Waves[0].Blocks {
					if c.former(block) {
						formerOrder(&l.Waves[0], block)
					}
				}
				l.Attempts = fixture.NewWorld(fixture.Scenario{Trial: 0.01}, math.Log(c.factor), 1, 1).Run(l.Exp, &l.Waves[0])
				if !plans {
					l.Waves = nil
				}
				got := l.Analyze()
				gate := got.Gates[0]
				if gate.Outcome != fixture.Inconclusive || !slices.Contains(capsOf(gate), analysis.CapNoVisits) ||
					!strings.Contains(gate.Message, why) {
					t.Errorf("%s, %+v, %s; want %s and %q", gate.Outcome, gate.Caps, gate.Message, analysis.CapNoVisits, why)
				}
				if reason := find(t, got.Candidates, "new").Reason; !strings.Contains(reason, why) {
					t.Errorf("reason %q, want one with %q", reason, why)
				}
				ofAll := func(d analysis.Doubt) bool { return d.Reason == analysis.CapNoVisits && len(d.Arms) == 0 }
				if !slices.ContainsFunc(got.Doubts, ofAll) {
					t.Errorf("no doubt about all arms: %+v", got.Doubts)
				}
			})
		}
	}
}

// Half of the effect remains after every trial, so the first trial of a visit does not contain all of it.
func TestCarryOver_LongerThanOneTrialIsCapped(t *testing.T) {
	t.Parallel()
	drift := places(func(at fixture.Place) float64 { return 0.01 * float64(at.Slot) })
	for name, c := range map[string]struct {
		effect func(*rand.Rand) func(fixture.Place) float64
		factor float64
		want   experiment.Verdict
		caps   []analysis.CapReason
	}{
		"equal arms, one trial long": {decaying(0.2, 0), 1, fixture.Inconclusive, nil},
		"equal arms, half remains":   {decaying(0.2, 0.5), 1, fixture.Inconclusive, []analysis.CapReason{analysis.CapCarryOver}},
		"a slower candidate whose effect hides it, half remains": {decaying(0.2, 0.5), 1.01, fixture.Inconclusive,
			[]analysis.CapReason{analysis.CapCarryOver}},
		"a far faster candidate, half remains":               {decaying(0.05, 0.5), 0.5, fixture.Go, nil},
		"a far slower candidate, half remains":               {decaying(-0.05, 0.5), 2, fixture.NoGo, nil},
		"a drift common to both arms, a faster candidate":    {drift, 0.95, fixture.Go, nil},
		"a drift common to both arms, equal arms":            {drift, 1, fixture.Inconclusive, nil},
		"a drift common to both arms, and a slower one":      {drift, 1.05, fixture.NoGo, nil},
		"no effect beyond the first trial, faster candidate": {decaying(0.2, 0), 0.97, fixture.Go, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				scenario := fixture.Scenario{Trial: 0.005, Effect: c.effect, Design: fixture.Design{Blocks: 20}}
				gate := timed(t, simulate(t, scenario, c.factor, seed).Analyze(), "new")
				if got := capsOf(gate); gate.Outcome != c.want || !slices.Equal(got, c.caps) {
					t.Errorf("seed %d: %s with %v, want %s with %v: %s", seed, gate.Outcome, got, c.want, c.caps, gate.Message)
				}
			}
		})
	}
}

// Doubts name the two arms, also without a gate between them.
func TestCarryOver_LongerThanOneTrialIsADoubtAboutItsArms(t *testing.T) {
	t.Parallel()
	scenario := fixture.Scenario{Trial: 0.005, Effect: decaying(0.2, 0.5), Design: fixture.Design{Blocks: 80, Arms: 3}}
	got := simulate(t, scenario, 1, 1).Analyze()
	for arms, want := range map[string]bool{"new old": true, "other-2 new": true, "other-2 old": false} {
		found := slices.ContainsFunc(got.Doubts, func(d analysis.Doubt) bool {
			return d.Reason == analysis.CapCarryOver && strings.Join(d.Arms, " ") == arms
		})
		if found != want {
			t.Errorf("a doubt about %s: %v, want %v: %+v", arms, found, want, got.Doubts)
		}
	}
}
