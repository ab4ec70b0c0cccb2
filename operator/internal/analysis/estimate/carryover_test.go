package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/combin"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// visit is the place of a trial: its arm, the arm of the visit before (-1 for none), its number in the visit, and its block and slot.
type visit struct{ arm, before, number, block, slot int }

// visiting returns a run of visits of three trials, by the order of the arms in every block, with figures whose logarithm is level.
func visiting(arms int, orders [][]int, level func(visit) float64) *trials {
	made := newTrials(seconds, 1, arms)
	made.chosen.Entered = map[*record.Attempt]selection.Entry{}
	for block, order := range orders {
		before := -1
		for i, arm := range order {
			for number := range experiment.VisitTrials {
				at := visit{arm, before, number, block, experiment.VisitTrials*i + number}
				added := made.add(selection.At(0, arm), fmt.Sprintf("b%02d", block), math.Exp(level(at)))
				if added.Slot = at.slot; number == 0 {
					made.chosen.Entered[added] = selection.Entry{After: selection.At(0, before), Known: before >= 0}
				}
			}
			before = arm
		}
	}
	return made
}

// inTurn are the orders of two arms, of which the second begins every other block.
func inTurn(blocks int) (out [][]int) {
	for i := range blocks {
		out = append(out, []int{i % 2, 1 - i%2})
	}
	return out
}

// everyOrder has every order of the arms once, so that each arm follows each other one equally often.
func everyOrder(arms int) [][]int { return combin.Permutations(arms, arms) }

// The trial of arm 1 after arm 0 is 0.1, 0.2 and 0.3 above the mean logarithm of the trials after themselves, which lie one below and one
// above the level of their block.
func TestAfter_Example(t *testing.T) {
	t.Parallel()
	made := visiting(2, inTurn(6), func(at visit) float64 {
		level := []float64{7, -1, 1}[at.number] + float64(at.block)
		switch {
		case at.number == 0 && at.before == 0:
			return float64(at.block) + []float64{0.1, 0.2, 0.3}[at.block/2]
		case at.number == 0 && at.before == 1:
			return float64(at.block) - 0.5
		}
		return level
	})
	d := made.data()
	after := d.After(0, 0, "time", "value")
	se := 0.1 / math.Sqrt(3)
	if !near(after.Value, math.Exp(0.2)) || !near(after.SE, se) || after.DF != 2 || after.Blocks != 3 {
		t.Errorf("after arm 0: %g with a standard error of %g over %d blocks, want %g with %g over 3", after.Value, after.SE, after.Blocks,
			math.Exp(0.2), se)
	}
	half := stats.StudentQuantile(0.995, 2) * se
	wantEnds(t, after, 0.99, 0.2-half, 0.2+half)
	if !near(after.Low, math.Exp(0.2-half)) || !near(after.High, math.Exp(0.2+half)) {
		t.Errorf("[%g, %g], want the interval at the gates' confidence", after.Low, after.High)
	}
	if other := d.After(0, 1, "time", "value"); !near(other.Value, math.Exp(-0.5)) || other.Blocks != 3 {
		t.Errorf("after arm 1: %g over %d blocks, want %g over 3", other.Value, other.Blocks, math.Exp(-0.5))
	}
}

// A trial that begins a block or follows a lost one is no trial after another arm, and one without figures of its arm after itself has none
// to be compared with.
func TestAfter_NeedsKnownPredecessorAndSettledTrials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		alter  func(*trials, *record.Attempt)
		blocks int
	}{
		"unaltered":              {func(*trials, *record.Attempt) {}, 4},
		"an unknown predecessor": {func(made *trials, a *record.Attempt) { made.chosen.Entered[a] = selection.Entry{} }, 3},
		"without the metric":     {func(_ *trials, a *record.Attempt) { delete(a.Result.Metrics, "time") }, 3},
		"a figure of 0":          {func(_ *trials, a *record.Attempt) { *a.Result.Metrics["time"].Value = 0 }, 3},
		"none that follows its own arm": {func(made *trials, a *record.Attempt) {
			made.chosen.Used = slices.DeleteFunc(made.chosen.Used, func(other *record.Attempt) bool {
				return other != a && other.Block == a.Block && other.Arm == a.Arm
			})
		}, 3},
		"a figure of 0 of one that follows its own arm": {func(made *trials, a *record.Attempt) {
			for _, other := range made.chosen.Used {
				if other.Block == a.Block && other.Arm == a.Arm && other != a {
					*other.Result.Metrics["time"].Value = 0
				}
			}
		}, 3},
	} {
		made := visiting(2, inTurn(8), func(at visit) float64 { return 0.01 * float64(at.slot*at.block) })
		at := slices.IndexFunc(made.chosen.Used, func(a *record.Attempt) bool { return made.chosen.Entered[a].Known && a.Arm == "arm1" })
		c.alter(made, made.chosen.Used[at])
		if got := made.data().After(0, 0, "time", "value"); got.Blocks != c.blocks {
			t.Errorf("%s: %d blocks, want %d", name, got.Blocks, c.blocks)
		}
	}
	if got := newTrials(seconds, 1, 2).data().After(0, 0, "time", "value"); got.Blocks != 0 || got.HasInterval() {
		t.Errorf("without trials: %+v", got)
	}
}

// The logarithm of a trial is the sum of effects of the block, of the arm and of the arm before. Without noise, the effect of each arm on
// the next trial and the ratio after the same predecessor are exact if each arm follows each other one equally often.
func TestCarryOver_AdditiveEffectsAreExact(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 3))
	for _, c := range []struct {
		arms   int
		orders [][]int
	}{{2, inTurn(6)}, {2, inTurn(10)}, {3, everyOrder(3)}, {4, everyOrder(4)}, {5, everyOrder(5)}} {
		for range 5 {
			mine, carry := make([]float64, c.arms), make([]float64, c.arms)
			for arm := range c.arms {
				mine[arm], carry[arm] = 0.2*random.NormFloat64(), 0.2*random.NormFloat64()
			}
			d := visiting(c.arms, c.orders, func(at visit) float64 {
				level := mine[at.arm] + 0.3*math.Sin(float64(at.block))
				switch {
				case at.number > 0:
					return level + carry[at.arm]
				case at.before >= 0:
					return level + carry[at.before]
				}
				return level + 5 // The start of a block has no effect on figures.
			}).data()
			for arm := range c.arms {
				want := carry[arm]
				for other := range c.arms {
					if other != arm {
						want -= carry[other] / float64(c.arms-1)
					}
				}
				if got := d.After(0, arm, "time", "value"); math.Abs(math.Log(got.Value)-want) > 1e-9 {
					t.Errorf("%d arms: after arm %d %g, want %g", c.arms, arm, math.Log(got.Value), want)
				}
			}
			for arm := 1; arm < c.arms; arm++ {
				a, b := Quantity{selection.At(0, arm), "time", "value"}, Quantity{selection.At(0, 0), "time", "value"}
				itself := d.Ratio(0, arm, "time", "value")
				if want := mine[arm] + carry[arm] - mine[0] - carry[0]; math.Abs(math.Log(itself.Value)-want) > 1e-9 {
					t.Errorf("%d arms: arm %d after itself %g, want %g", c.arms, arm, math.Log(itself.Value), want)
				}
				equal, differs := d.AtEqualPredecessors(itself, a, b)
				if want := mine[arm] - mine[0]; math.Abs(math.Log(equal.Value)-want) > 1e-9 {
					t.Errorf("%d arms: arm %d after the same arms %g, want %g", c.arms, arm, math.Log(equal.Value), want)
				}
				if c.arms == 2 && !differs {
					t.Errorf("the ratios %g and %g without noise do not differ", itself.Value, equal.Value)
				}
			}
		}
	}
}

// Arm 1 after arm 0 is 1.1, 1.2 and 1.3 above itself, and arm 0 after arm 1 is 0.1 below, at, and 0.1 above itself. Both means have a
// standard error of 0.1/√3, their difference is 1.2, and with two arms half of it is added to the logarithm of the ratio after themselves.
func TestAtEqualPredecessors_Example(t *testing.T) {
	t.Parallel()
	entered := func(first float64) func(visit) float64 {
		return func(at visit) float64 {
			switch step := 0.1 * float64(at.block/2); {
			case at.number == 0 && at.before == 0:
				return first + step
			case at.number == 0 && at.before == 1:
				return -0.1 + step
			}
			return 0
		}
	}
	itself := studentInference(map[string]float64{"b00": 0.2, "b01": 0.4, "b02": 0.6, "b03": 0.4}, 0.99, true)
	variance := 0.02 / 3
	for first, want := range map[float64]struct {
		center  float64
		differs bool
	}{1.1: {0.4 + 0.6, true}, 0.1: {0.4 + 0.1, false}, -0.1: {0.4, false}, -1.5: {0.4 - 0.7, true}} {
		made := visiting(2, inTurn(6), entered(first))
		found, differs := made.data().AtEqualPredecessors(itself, made.of(1, "value"), made.of(0, "value"))
		se := math.Sqrt(itself.SE*itself.SE + variance/4)
		if !near(math.Log(found.Value), want.center) || !near(found.SE, se) || differs != want.differs || found.Blocks != 4 {
			t.Errorf("%g: %g with a standard error of %g, want %g with %g; differs %v", first, math.Log(found.Value), found.SE, want.center, se,
				differs)
		}
		// Welch: of itself with 3 degrees of freedom, and of the entries with 4.
		df := math.Pow(se, 4) / (math.Pow(itself.SE, 4)/3 + variance*variance/16/4)
		half := stats.StudentQuantile(0.995, df) * se
		wantEnds(t, found, 0.99, want.center-half, want.center+half)
		if !near(found.Low, math.Exp(want.center-half)) || !near(found.High, math.Exp(want.center+half)) {
			t.Errorf("%g: [%g, %g], want the interval at the gates' confidence", first, found.Low, found.High)
		}
	}
}

func TestAtEqualPredecessors_NeedsEntriesOfBothArms(t *testing.T) {
	t.Parallel()
	logarithm := map[string]float64{"b00": 0.2, "b01": 0.4, "b02": 0.6}
	itself := studentInference(logarithm, 0.99, true)
	always := [][]int{{0, 1}, {0, 1}, {0, 1}, {0, 1}}
	for name, c := range map[string]struct {
		itself Inference
		orders [][]int
		known  bool
	}{
		"both arms enter in three blocks":     {itself, inTurn(6), true},
		"one arm enters in two blocks":        {itself, inTurn(5), false},
		"the second arm always follows":       {itself, always, false},
		"a ratio without an interval":         {studentInference(map[string]float64{"b00": 1}, 0.99, true), inTurn(6), false},
		"a difference that is no logarithm":   {studentInference(logarithm, 0.99, false), inTurn(6), false},
		"no trial that follows another arm's": {itself, nil, false},
	} {
		made := visiting(2, c.orders, func(at visit) float64 {
			return 0.3*float64(at.before+1) + 0.001*float64(at.block*at.slot%7)
		})
		found, differs := made.data().AtEqualPredecessors(c.itself, made.of(1, "value"), made.of(0, "value"))
		if known := found.Blocks > 0; known != c.known || differs && !known {
			t.Errorf("%s: %+v, differs %v", name, found, differs)
		}
	}
}

// Arms that enter alike differ as often as the level of the gates says.
func TestAtEqualPredecessors_DiffersByChanceAtTheLevel(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs = 3000
	random, differ := rand.New(rand.NewPCG(7, 7)), 0
	itself := studentInference(map[string]float64{"b00": 0.2, "b01": 0.4, "b02": 0.6}, 0.9, true)
	for range runs {
		made := visiting(2, inTurn(10), func(visit) float64 { return 0.01 * random.NormFloat64() })
		d := made.data()
		d.GateConfidence = 0.9
		if _, differs := d.AtEqualPredecessors(itself, made.of(1, "value"), made.of(0, "value")); differs {
			differ++
		}
	}
	if share := float64(differ) / runs; share < 0.08 || share > 0.12 {
		t.Errorf("%.3f of the runs differ, want 0.1", share)
	}
}

func TestCarryOver_ListsEveryArmWithAnInterval(t *testing.T) {
	t.Parallel()
	made := visiting(3, everyOrder(3), func(at visit) float64 {
		if at.number == 0 && at.before >= 0 {
			return 0.1 * float64(at.before)
		}
		return 0.1 * float64(at.arm)
	})
	list := func(parity *selection.Parity) map[string]float64 {
		out := map[string]float64{}
		for _, found := range CarryOver(made.data(), parity) {
			if found.Point != "p=0" || found.Metric != "time" || found.Statistic != "value" || !found.Estimate.Ratio || found.Estimate.Blocks != 4 {
				t.Errorf("%+v", found)
			}
			out[found.Arm] = found.Estimate.Value
		}
		return out
	}
	all, want := list(&selection.Parity{}), map[string]float64{"arm0": -0.15, "arm1": 0, "arm2": 0.15}
	for arm, effect := range want {
		if math.Abs(math.Log(all[arm])-effect) > 1e-5 {
			t.Errorf("%s: %g, want %g", arm, all[arm], math.Exp(effect))
		}
	}
	if got := list(&selection.Parity{Wrong: map[string]string{"arm2": "it differs"}}); len(all) != 3 || len(got) != 2 || got["arm2"] != 0 {
		t.Errorf("%v, and %v if the output of arm2 is wrong", all, got)
	}
	made.exp.Plan.Metrics[0].Statistic = experiment.StatisticP95
	if got := CarryOver(made.data(), &selection.Parity{}); len(got) > 0 {
		t.Errorf("a percentile has no figure of a trial: %+v", got)
	}
	made = visiting(2, inTurn(4), func(at visit) float64 { return float64(at.slot) })
	if got := CarryOver(made.data(), &selection.Parity{}); len(got) > 0 {
		t.Errorf("two blocks are too few for an interval: %+v", got)
	}
}

// The candidate's effect on the trials after it halves with every trial, and the baseline's effect is its opposite. The figures of both
// arms then change from the first trial that counts to the second by the difference of a half and a quarter, in opposite directions.
func TestLingering_DecayingEffectIsFound(t *testing.T) {
	t.Parallel()
	decaying := func(baseline, candidate, noise float64, random *rand.Rand) func(visit) float64 {
		return func(at visit) float64 {
			level := 0.3*float64(at.arm) + noise*random.NormFloat64()
			if at.before >= 0 {
				level += []float64{baseline, candidate}[at.before] * math.Pow(0.5, float64(at.number))
			}
			return level
		}
	}
	random := rand.New(rand.NewPCG(2, 2))
	made := visiting(2, inTurn(10), decaying(-0.1, 0.1, 1e-6, random))
	far, significant := made.data().Lingering(made.of(1, "value"), made.of(0, "value"), 1)
	// Each arm's trials that count are 0.05 and 0.025 off after the other arm, in opposite directions, and less in the blocks that it begins.
	if !significant || far < 0.015 || far > 0.08 {
		t.Errorf("%g, significant %v; want 0.015 to 0.08", far, significant)
	}
	if back, _ := made.data().Lingering(made.of(0, "value"), made.of(1, "value"), 1); !near(back, far) {
		t.Errorf("%g, and %g with the arms exchanged", far, back)
	}
	found := 0
	for range 50 {
		made := visiting(2, inTurn(40), decaying(0, 0.1, 0.005, random))
		if _, significant := made.data().Lingering(made.of(1, "value"), made.of(0, "value"), 1); significant {
			found++
		}
	}
	if found < 45 {
		t.Errorf("an effect of the candidate alone is found in %d of 50 runs", found)
	}
}

// A drift, a curve over the block and an effect on the next trial only are no effects of an arm that last.
func TestLingering_CommonDriftIsNotFound(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	for name, level := range map[string]func(visit) float64{
		"nothing":                     func(visit) float64 { return 0 },
		"a linear drift":              func(at visit) float64 { return 0.05 * float64(at.slot) },
		"a curve":                     func(at visit) float64 { return 0.01 * float64(at.slot*at.slot) },
		"a drift over the run":        func(at visit) float64 { return 0.02 * float64(at.block) },
		"a slower candidate":          func(at visit) float64 { return 0.4 * float64(at.arm) },
		"an effect on the next trial": func(at visit) float64 { return 0.3 * float64(at.before*max(0, 1-at.number)) },
		"a warm-up inside each visit": func(at visit) float64 { return 0.1 / float64(1+at.number) },
	} {
		const runs = 200
		found := 0
		for range runs {
			made := visiting(2, inTurn(10), func(at visit) float64 { return level(at) + 0.005*random.NormFloat64() })
			if _, significant := made.data().Lingering(made.of(1, "value"), made.of(0, "value"), 1); significant {
				found++
			}
		}
		// At a level of 1 % there are two by chance, and more than eight in one of a thousand such tests.
		if found > 8 {
			t.Errorf("%s: found in %d of %d runs", name, found, runs)
		}
	}
}

// Several comparisons share the level, and a visit with one trial that counts shows no change.
func TestLingering_SharesTheLevel(t *testing.T) {
	t.Parallel()
	values := []float64{0.1, 0.12, 0.08, 0.11, 0.09, 0.1}
	made := visiting(2, inTurn(6), func(at visit) float64 {
		if at.arm == 1 && at.number <= 1 {
			return values[at.block] * float64(2-at.number)
		}
		return 0
	})
	d, a, b := made.data(), made.of(1, "value"), made.of(0, "value")
	for _, comparisons := range []float64{1, 10, 1e6} {
		half := stats.StudentQuantile(1-0.005/comparisons, 5) * math.Sqrt(0.001/5/6)
		if _, significant := d.Lingering(a, b, comparisons); significant != (half < 0.1) {
			t.Errorf("%g comparisons: significant %v; the half width is %g", comparisons, significant, half)
		}
	}
	made.chosen.Used = slices.DeleteFunc(made.chosen.Used, func(a *record.Attempt) bool { return a.Slot%experiment.VisitTrials == 2 })
	if bias, significant := made.data().Lingering(a, b, 1); bias != 0 || significant {
		t.Errorf("without a second trial that counts: %g, %v", bias, significant)
	}
}
