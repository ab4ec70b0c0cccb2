package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
)

func scenario(t *testing.T, name string) fixture.Scenario {
	t.Helper()
	all := fixture.Scenarios()
	at := slices.IndexFunc(all, func(s fixture.Scenario) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("no scenario %s", name)
	}
	return all[at]
}

func TestSimulate_IndependentOfTheNumberOfWorkers(t *testing.T) {
	one, err := Simulate(scenario(t, "adaptive"), 40, 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	three, err := Simulate(scenario(t, "adaptive"), 40, 7, 3)
	if err != nil {
		t.Fatal(err)
	}
	counts := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Scenario" }, cmp.Ignore())
	if diff := cmp.Diff(one, three, counts); diff != "" {
		t.Errorf("one worker and three (-one +three):\n%s", diff)
	}
}

func TestSimulate_Scenarios(t *testing.T) {
	cases := map[string]struct {
		scenario string
		check    func(t *testing.T, tallies []Tally)
	}{
		"a fixed design detects 5 % in its ten blocks": {"quiet", func(t *testing.T, tallies []Tally) {
			if last := tallies[3]; last.Right != last.Runs || last.Blocks != 10*last.Runs {
				t.Errorf("%d of %d right, %d blocks", last.Right, last.Runs, last.Blocks)
			}
		}},
		"an adaptive design continues to its precision": {"adaptive", func(t *testing.T, tallies []Tally) {
			for _, tally := range tallies {
				if mean := float64(tally.Blocks) / float64(tally.Runs); mean <= 10 || mean > 30 {
					t.Errorf("%v: %.1f blocks a run", tally.Effect, mean)
				}
			}
		}},
		"a confirmed design verifies a detection in ten fresh blocks": {"confirmed", func(t *testing.T, tallies []Tally) {
			if last := tallies[3]; last.Right != last.Runs || last.Blocks != 20*last.Runs {
				t.Errorf("%d of %d right, %d blocks", last.Right, last.Runs, last.Blocks)
			}
		}},
		"a difference below the resolution of the coarser clock is undecided": {"clock-candidate-0.001-0.2", func(t *testing.T, tallies []Tally) {
			for _, tally := range tallies {
				if tally.False() > 0 || tally.Covered < tally.Intervals-1 {
					t.Errorf("%v: %d wrong, %d of %d cover the truth", tally.Effect, tally.False(), tally.Covered, tally.Intervals)
				}
			}
		}},
		"one block on each of ten nodes estimates the variance between nodes": {"nodes-of-one-block", func(t *testing.T, tallies []Tally) {
			if same := tallies[0]; same.False() > 3 || same.Blocks != 10*same.Runs {
				t.Errorf("%d of %d wrong, %d blocks", same.False(), same.Runs, same.Blocks)
			}
		}},
		"a layout effect is a wrong verdict that a single run cannot detect": {"layout", func(t *testing.T, tallies []Tally) {
			if same := tallies[0]; same.False() < same.Runs/5 {
				t.Errorf("%d of %d wrong, too few to show the effect of the scenario", same.False(), same.Runs)
			}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.scenario != "quiet" {
				t.Skip("simulates 60 runs of a scenario: make nightly runs it")
			}
			tallies, err := Simulate(scenario(t, c.scenario), 60, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, tallies)
		})
	}
}

func TestSimulate_NullArmDetectsMostLayoutEffects(t *testing.T) {
	without, err := Simulate(scenario(t, "layout"), 200, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	with, err := Simulate(scenario(t, "layout-null-arm"), 200, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if 3*with[0].False() > 2*without[0].False() {
		t.Errorf("%d wrong verdicts with a null arm and %d without", with[0].False(), without[0].False())
	}
}

// TestShapes_MeanAndSpread checks the simulated noise, because another mean would look like a biased analysis.
func TestShapes_MeanAndSpread(t *testing.T) {
	spread := map[fixture.Shape]float64{fixture.Normal: 1, fixture.Heavy: 1, fixture.Outliers: math.Sqrt(1 + 0.02*0.98*100),
		fixture.Skewed: 1}
	for shape, want := range spread {
		t.Run("shape "+string(shape), func(t *testing.T) {
			random := rand.New(rand.NewPCG(11, 11))
			const draws = 400000
			var sum, squares float64
			for range draws {
				x := shape.Draw(random)
				sum += x
				squares += x * x
			}
			mean, deviation := sum/draws, math.Sqrt(squares/draws)
			// The variance of the heavy tail converges slowly.
			if math.Abs(mean) > 0.01 || math.Abs(deviation/want-1) > 0.1 {
				t.Errorf("mean %.4f, standard deviation %.3f, want 0 and %.3f", mean, deviation, want)
			}
		})
	}
}

func TestTally_EqualProgramsMakeGoAndNoGoWrong(t *testing.T) {
	var same, slower Tally
	for _, verdict := range []experiment.Verdict{"Go", "Go", "NoGo", "Inconclusive", "Invalid"} {
		same.add(conclude(&analysis.Analysis{Verdict: verdict}, 0, 0))
		slower.add(conclude(&analysis.Analysis{Verdict: verdict}, 0.02, 0))
	}
	if same.FalseGo != 2 || same.FalseNoGo != 1 || same.Right != 0 {
		t.Errorf("same: %d false Go, %d false NoGo, %d right", same.FalseGo, same.FalseNoGo, same.Right)
	}
	if slower.FalseGo != 2 || slower.FalseNoGo != 0 || slower.Right != 1 {
		t.Errorf("slower: %d false Go, %d false NoGo, %d right", slower.FalseGo, slower.FalseNoGo, slower.Right)
	}
}

func TestNewShare_Limits(t *testing.T) {
	cases := map[string]struct {
		count, of int
		low, high float64
	}{
		"none of many": {0, 2000, 0, 0.00192},
		"half":         {50, 100, 0.4038, 0.5962},
		"all of few":   {10, 10, 0.7225, 1},
		"none of none": {0, 0, 0, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := NewShare(c.count, c.of)
			if math.Abs(got.Low-c.low) > 1e-4 || math.Abs(got.High-c.high) > 1e-4 {
				t.Errorf("[%.4f, %.4f], want [%.4f, %.4f]", got.Low, got.High, c.low, c.high)
			}
		})
	}
}

func TestFigures_TakeTheWorstScenario(t *testing.T) {
	quiet, claimed, open := fixture.Scenario{Name: "quiet", Claimed: true}, fixture.Scenario{Name: "b", Claimed: true},
		fixture.Scenario{Name: "c"}
	tallies := []Tally{
		{Scenario: quiet, Runs: 1000, FalseGo: 2, Covered: 950, Intervals: 1000},
		{Scenario: quiet, Effect: 0.02, Runs: 1000, Right: 970, Covered: 950, Intervals: 1000},
		{Scenario: claimed, Runs: 1000, FalseGo: 3, FalseNoGo: 4, Covered: 940, Intervals: 1000},
		{Scenario: open, Runs: 1000, FalseGo: 400, Covered: 400, Intervals: 1000},
	}
	values := map[string]float64{}
	for _, f := range Figures(tallies) {
		values[f.Figure] = f.Value
	}
	want := map[string]float64{"verdict.aa.false_rate": 0.007, "verdict.power.effect2pct": 0.97, "verdict.coverage.95": 0.94,
		"verdict.coverage.95.highest": 0.95}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if missed := Check(Figures(tallies)); len(missed) > 0 {
		t.Errorf("missed %q", missed)
	}
	tallies[2].FalseGo = 40
	tallies[1].Right = 700
	tallies[2].Covered = 800
	if missed := Check(Figures(tallies)); len(missed) != 3 {
		t.Errorf("missed %q, want all three targets", missed)
	}
}

// The names of all figures are known before the simulation, because a user may select figures by name.
func TestFigures_NamesAreKnownBeforeTheSimulation(t *testing.T) {
	var tallies []Tally
	for _, s := range slices.Concat(fixture.Scenarios(), fixture.BuildScenarios()) {
		tallies = append(tallies, Tally{Scenario: s, Runs: 1, Intervals: 1})
		for _, effect := range []float64{0.02, 0.05} {
			tallies = append(tallies, Tally{Scenario: s, Effect: effect, Runs: 1, Intervals: 1})
		}
	}
	var names []string
	for _, f := range Figures(tallies) {
		names = append(names, f.Figure)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(SimulatedFigures)), slices.Sorted(slices.Values(names))); diff != "" {
		t.Errorf("figures (-known +made):\n%s", diff)
	}
}

func TestSimulate_IntervalsAreNotWidenedWithoutCause(t *testing.T) {
	// Student's interval is already wide there, because slow first trials cancel in the mean but not in the spread, and outliers increase
	// it.
	for _, name := range []string{"slots", "outliers"} {
		var covered, plain, of int
		tallies, err := Simulate(scenario(t, name), 200, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, tally := range tallies {
			covered, plain, of = covered+tally.Covered, plain+tally.PlainCovered, of+tally.Intervals
		}
		if covered < plain || covered-plain > of/200 {
			t.Errorf("%s: %d of %d intervals cover the truth, and %d plain ones; the widening is unnecessary", name, covered, of, plain)
		}
	}
}

func TestFigures_SelectedRowHasSimultaneousLimits(t *testing.T) {
	row := func(name string, covered int) Tally {
		return Tally{Scenario: fixture.Scenario{Name: name, Claimed: true}, Runs: 4000, Covered: covered, PlainCovered: covered - 1,
			Intervals: 4000}
	}
	highest := func(tallies ...Tally) Figure {
		figures := Figures(tallies)
		return figures[slices.IndexFunc(figures, func(f Figure) bool { return f.Figure == "verdict.coverage.95.highest" })]
	}
	alone := highest(row("a", 3888))
	picked := highest(row("a", 3888), row("b", 3800), row("c", 3800), row("d", 3800))
	if picked.Value != alone.Value || picked.Low >= alone.Low || picked.High <= alone.High {
		t.Errorf("alone %+v, picked from four %+v: want the same value and wider limits", alone, picked)
	}
	want := "row a, picked from 4, with limits that hold for all of them at once; the plain interval of the same blocks: 0.9718"
	if !strings.HasPrefix(picked.Note, want) {
		t.Errorf("note %q, want %q", picked.Note, want)
	}
}

func TestReplace_TextBetweenMarkers(t *testing.T) {
	got, err := Replace("a\n<!-- calibrate x -->\nold\n<!-- /calibrate x -->\nb\n", "x", "new\n")
	if want := "a\n<!-- calibrate x -->\nnew\n<!-- /calibrate x -->\nb\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, broken := range []string{"", "<!-- calibrate x -->\n", "<!-- /calibrate x -->"} {
		if _, err := Replace(broken, "x", ""); err == nil {
			t.Errorf("%q was accepted", broken)
		}
	}
}
