package analyze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// judged runs the pair of arms on a machine whose every trial reads what times says.
func judged(t *testing.T, scenario fixture.Scenario, edit func(*runSpec), times func(arm string, trial int) float64) *analysis.Analysis {
	t.Helper()
	exp, err := fixture.PairExperiment(edit)
	if err != nil {
		t.Fatal(err)
	}
	blocks := exp.Plan.Design.Blocks.Min
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.NewWorld(scenario, 0, 1, 1).Run(exp, wave)
	for i := range attempts {
		if times != nil {
			attempts[i].Result.Metrics["time"] = &record.Metric{Unit: "s", Value: ptr.To(times(attempts[i].Arm, i))}
		}
	}
	return Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
}

func TestIntervalsHoldWhatTheClockCannotTell(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	constant := func(old, new float64) func(string, int) float64 {
		return func(arm string, _ int) float64 {
			if arm == "old" {
				return old
			}
			return new
		}
	}
	floor := func(times func(string, int) float64) func(string, int) float64 {
		return func(arm string, trial int) float64 { return math.Floor(times(arm, trial)/1e-3) * 1e-3 }
	}
	cases := map[string]struct {
		times    func(string, int) float64
		truth    float64
		excludes bool
		relative float64
		widened  bool
	}{
		"14.0 and 14.2 ms both read 14":              {times: constant(0.014, 0.014), truth: 1.0142, relative: 1, widened: true},
		"a multiple that binary digits cannot write": {times: constant(0.035000000000000003, 0.035000000000000003), truth: 1.01, relative: 1, widened: true},
		"one arm reads a step more, always":          {times: constant(0.014, 0.015), truth: 1.005, relative: 1, widened: true},
		"a difference of many steps is still told": {times: func(arm string, i int) float64 {
			return math.Round(100*map[string]float64{"old": 1, "new": 1.5}[arm]+float64(i%5)) * 1e-3
		}, truth: 1, excludes: true, relative: 0.01},
		"readings of two neighbouring steps prove nothing":     {times: floor(func(_ string, i int) float64 { return 0.0149 + 0.0002*float64(i%2) }), truth: 1.03, relative: 1. / 14.5, widened: true},
		"readings that spread over steps are left alone":       {times: floor(func(string, int) float64 { return 0.1 * math.Exp(0.05*random.NormFloat64()) }), truth: 1.02, relative: 0.01},
		"times that differ in every digit have no step":        {times: func(string, int) float64 { return 0.014 * math.Exp(0.01*random.NormFloat64()) }, truth: 1.005},
		"differences of large times, wrong in the last digits": {times: func(_ string, i int) float64 { return (1.7e9 + 0.013 + 0.001*float64(i%5)) - 1.7e9 }, truth: 1, relative: 1. / 15},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ratio := judged(t, fixture.Scenario{Trial: 0.01}, nil, c.times).Ratios[0]
			low, high := *ratio.Estimate.Low, *ratio.Estimate.High
			if low == high {
				t.Errorf("an interval of width zero at %g", low)
			}
			if excludes := c.truth < low || c.truth > high; excludes != c.excludes {
				t.Errorf("[%g, %g] and the truth is %g", low, high, c.truth)
			}
			switch got := ratio.Resolution; {
			case c.relative == 0 && got != nil:
				t.Errorf("resolution %+v of a clock without steps", *got)
			case c.relative > 0 && (got == nil || math.Abs(got.Relative/c.relative-1) > 0.05 || got.Widened != c.widened):
				t.Errorf("resolution %+v, want a relative step of %.3f, widened %v", got, c.relative, c.widened)
			}
		})
	}
}

// A unit is free text, and what it calls a time or a rate is read by a clock.
func TestAClockHasStepsWhateverItsUnitIsCalled(t *testing.T) {
	for unit, want := range map[string]experiment.Verdict{
		"ms": inconclusive, "milliseconds": inconclusive, "msec": inconclusive, "sec": inconclusive, "us/op": inconclusive,
		"ms per query": inconclusive, "rps": inconclusive, "queries per second": inconclusive, "1": goes, "By": goes,
	} {
		t.Run(unit, func(t *testing.T) {
			l := pair(t, 1, func(spec *runSpec) { spec.Gates[0].Bound = "0.99" })
			l.exp.Plan.Metrics[0].Unit = unit
			for i := range l.attempts {
				result := *l.attempts[i].Result
				value := map[string]float64{"old": 15, "new": 14}[l.attempts[i].Arm]
				result.Metrics = map[string]*record.Metric{"time": {Unit: unit, Value: &value}}
				l.attempts[i].Result = &result
			}
			if got := l.analyze(); got.Verdict != want {
				t.Errorf("%s: %s, want %s", got.Verdict, got.Candidates[0].Reason, want)
			}
		})
	}
}

// A phase is a time too: it did not last as long to its last digit again and again, and whether a control moved less than a step of its
// clock nobody knows.
func TestPhasesAreReadByAClock(t *testing.T) {
	floor := func(step, seconds float64) float64 { return math.Floor(seconds/step) * step }
	for name, c := range map[string]struct {
		step     float64
		old, new float64
		noise    float64
		widened  bool
		moved    bool
	}{
		"10.1 and 19.9 ms both read 10":        {step: 0.01, old: 0.0101, new: 0.0199, widened: true},
		"a clock of a microsecond":             {step: 1e-6, old: 0.0101, new: 0.0101, noise: 0.01},
		"a clock of a microsecond, twice that": {step: 1e-6, old: 0.0101, new: 0.0199, noise: 0.01, moved: true},
		"ten steps and twice that":             {step: 0.01, old: 0.1, new: 0.2, noise: 0.1, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 5))
			l := pair(t, 0.94, func(s *runSpec) { s.Design.ControlPhases = []string{"load"} })
			for i := range l.attempts {
				result := *l.attempts[i].Result
				took := map[string]float64{"old": c.old, "new": c.new}[l.attempts[i].Arm] * math.Exp(c.noise*random.NormFloat64())
				result.Phases = []record.Phase{{Name: "load", Samples: []float64{floor(c.step, took)}}}
				l.attempts[i].Result = &result
			}
			got := l.analyze()
			estimates := []*analysis.Estimate{got.Controls[0].Estimate}
			for i := range got.Phases {
				estimates = append(estimates, &got.Phases[i].Estimate)
			}
			for i, truth := range []float64{c.new / c.old, c.old, c.new} {
				if low, high := *estimates[i].Low, *estimates[i].High; low == high || c.widened && (truth < low || truth > high) {
					t.Errorf("%s is the interval of %.4g", analysis.Describe(estimates[i]), truth)
				}
			}
			if got.Controls[0].Moved != c.moved {
				t.Errorf("moved %v: %s", got.Controls[0].Moved, got.Controls[0].Message)
			}
			checkInvariants(t, got)
		})
	}
}

func TestDecisionsThatBlocksCannotCarry(t *testing.T) {
	faster := func(spec *runSpec) { spec.Gates[0].Bound = "1" }
	cases := map[string]struct {
		scenario fixture.Scenario
		edit     func(*runSpec)
		outcome  any
		message  string
	}{
		"5 % faster is Go":                {fixture.Scenario{Trial: 0.002}, faster, goes, "holds over"},
		"in the same order always":        {fixture.Scenario{Trial: 0.002}, func(spec *runSpec) { spec.Design.Order = "Sequential" }, inconclusive, "spec.design.order: Sequential"},
		"with a rare slowdown declared":   {fixture.Scenario{Trial: 0.002}, func(spec *runSpec) { spec.Design.RareSlowdown = "20%" }, inconclusive, "spans the bound"},
		"a small rare slowdown leaves it": {fixture.Scenario{Trial: 0.002}, func(spec *runSpec) { spec.Design.RareSlowdown = "2%" }, goes, "holds over"},
		"with a correlation declared":     {fixture.Scenario{Trial: 0.02}, func(spec *runSpec) { spec.Design.BlockCorrelation = "0.85" }, inconclusive, "spans the bound"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			world := fixture.NewWorld(c.scenario, math.Log(0.95), 1, 1)
			exp, err := fixture.PairExperiment(c.edit)
			if err != nil {
				t.Fatal(err)
			}
			wave, err := fixture.Wave(exp, 0, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			found := Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: world.Run(exp, wave)}, 0)
			if gate := found.Gates[0]; fmt.Sprint(gate.Outcome) != fmt.Sprint(c.outcome) || !strings.Contains(gate.Message, c.message) {
				t.Errorf("%s: %s; want %v and %q", gate.Outcome, gate.Message, c.outcome, c.message)
			}
			if !strings.Contains(found.Unseen, "fewer than one block in 10") {
				t.Errorf("unseen %q", found.Unseen)
			}
		})
	}
}

func TestBlocksThatFollowEachOtherWidenTheInterval(t *testing.T) {
	for name, wander := range map[string]float64{"blocks that wander": 0.05, "blocks that do not": 0} {
		t.Run(name, func(t *testing.T) {
			found := judged(t, fixture.Scenario{Trial: 0.005, Wander: wander, Persistence: 0.85}, func(spec *runSpec) {
				spec.Design.Blocks.Min, spec.Design.Blocks.Max = 30, 30
			}, nil)
			series := found.Ratios[0].Series
			if series == nil || series.Autocorrelation == nil || series.Skewness == nil || series.Dependent != (wander > 0) {
				t.Fatalf("series %+v", series)
			}
			if follows := *series.Autocorrelation > 0.5; follows != (wander > 0) {
				t.Errorf("autocorrelation %.2f", *series.Autocorrelation)
			}
		})
	}
}

// TestACoarseClockIsNamed has a program that is twice as slow by a clock with steps of its own time: no block would tell.
func TestACoarseClockIsNamed(t *testing.T) {
	gate := assayv1alpha1.Gate{Name: "not-slower", Metric: "time", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}
	found := judged(t, fixture.Scenario{Trial: 0.01}, func(spec *runSpec) { spec.Gates = []assayv1alpha1.Gate{gate} },
		func(arm string, _ int) float64 {
			return map[string]float64{"old": 0.001, "new": 0.002}[arm]
		})
	if result := found.Gates[0]; result.Outcome != experiment.VerdictInconclusive ||
		!strings.Contains(result.Message, "its clock has steps of 1 times the value") {
		t.Errorf("%s: %s", result.Outcome, result.Message)
	}
}

// TestAClockOfAnyStepDecidesOnlyWhatItShows is the property: whatever step a clock has, nobody being told, and with whatever digits its
// readings are written, be it that they never move or that they are the same few: the interval has a width and holds the truth.
func TestAClockOfAnyStepDecidesOnlyWhatItShows(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 29))
	uniform := func(low, high float64) float64 { return math.Exp(math.Log(low) + random.Float64()*math.Log(high/low)) }
	never, missed := 0, 0
	for range 400 {
		step := uniform(1e-3, 0.1)
		seconds, ratio, noise := uniform(step, 10*step), math.Exp(0.2*random.NormFloat64()), []float64{0, 1e-5, 1e-3}[random.IntN(3)]
		digit := []float64{1e-9, 1e-7, 1e-6, step / 1000}[random.IntN(4)]
		level := random.IntN(2) == 0
		own := random.IntN(2) == 0 // The candidate has a clock of its own, that everybody knows.
		edit := func(spec *runSpec) {
			if level {
				spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "1s"}}
			}
		}
		different := map[float64]bool{}
		got := judged(t, fixture.Scenario{Trial: 0.01}, edit, func(arm string, _ int) float64 {
			took, step := seconds*math.Exp(noise*random.NormFloat64()), step
			if arm == "new" {
				if took *= max(ratio, step/seconds); own {
					step = 1e-6
				}
			}
			read := math.Round(math.Floor(took/step)*step/digit) * digit
			different[read] = true
			return read
		})
		if len(different) < 3 {
			never++
		}
		truth := max(ratio, step/seconds)
		if level {
			truth *= seconds
		}
		estimate := got.Gates[0].Estimate
		if estimate == nil || estimate.Low == nil || estimate.High == nil {
			continue
		}
		if *estimate.Low == *estimate.High {
			t.Errorf("step %g, digit %g: %s has no width", step, digit, analysis.Describe(estimate))
		}
		if *estimate.Low > truth*(1+1e-9) || *estimate.High < truth*(1-1e-9) {
			missed++
			t.Logf("step %g, digit %g, noise %g, %g s: %s is the interval of %.4f", step, digit, noise, seconds, analysis.Describe(estimate), truth)
		}
	}
	// At a confidence of 0.995 two are expected of 400, and more than eight once in a thousand times.
	if missed > 8 || never < 50 {
		t.Errorf("%d intervals miss the truth; in %d runs no reading moved", missed, never)
	}
}

// The same readings are of the same clock, and say the same, whatever unit they are written in.
func TestAClockHasTheSameStepsInEveryUnit(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 37))
	widened := 0
	for range 150 {
		step, digit := []float64{windows, 1.0 / 60, 0.01, 1e-3}[random.IntN(4)], []float64{1e-3, 1e-4, 1e-6}[random.IntN(3)]
		seconds, noise := step*(2+8*random.Float64()), []float64{0, 1e-3, 0.02}[random.IntN(3)]
		readings := map[int]float64{}
		read := func(i int) float64 {
			if _, ok := readings[i]; !ok {
				began := math.Floor(1000 * random.Float64())
				steps := math.Floor(seconds*math.Exp(noise*random.NormFloat64())/step + random.Float64())
				at := func(steps float64) float64 { return math.Round(steps * step / digit) }
				readings[i] = at(began+steps) - at(began)
			}
			return readings[i]
		}
		var first *analysis.RatioResult
		for _, unit := range []string{"s", "ms", "us", "ns", "ms/op"} {
			l := pair(t, 1, nil)
			l.exp.Plan.Metrics[0].Unit = unit
			for i := range l.attempts {
				result := *l.attempts[i].Result
				value := read(i) * math.Round(digit/1e-9) / math.Round(experiment.ClockUnit(unit)/1e-9)
				result.Metrics = map[string]*record.Metric{"time": {Unit: unit, Value: &value}}
				l.attempts[i].Result = &result
			}
			ratio := &l.analyze().Ratios[0]
			if first == nil {
				first = ratio
			}
			alike := func(a, b *float64) bool {
				return (a == nil) == (b == nil) && (a == nil || math.Abs(*a / *b - 1) < 1e-6)
			}
			resolved := (ratio.Resolution == nil) == (first.Resolution == nil)
			if resolved && ratio.Resolution != nil {
				widened++
				resolved = alike(&ratio.Resolution.Relative, &first.Resolution.Relative)
			}
			if !resolved || !alike(ratio.Estimate.Low, first.Estimate.Low) || !alike(ratio.Estimate.High, first.Estimate.High) {
				t.Errorf("steps of %g s, digits of %g s, %.4g s and noise of %g: %s in %s, resolution %+v, and %s in s, resolution %+v", step, digit,
					seconds, noise, analysis.Describe(&ratio.Estimate), unit, ratio.Resolution, analysis.Describe(&first.Estimate), first.Resolution)
			}
		}
	}
	if widened == 0 {
		t.Error("no clock was found")
	}
}
