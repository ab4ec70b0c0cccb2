package estimate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestClockInterval_IncludesResolution(t *testing.T) {
	t.Parallel()
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
			ratio := analyzed.AnalyzePair(t, fixture.Scenario{Trial: 0.01}, nil, c.times).Ratios[0]
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

// A unit is free text. Every unit of time and rate has a clock.
func TestClockStep_FoundInEveryUnitOfTime(t *testing.T) {
	t.Parallel()
	for unit, want := range map[string]experiment.Verdict{
		"ms": fixture.Inconclusive, "milliseconds": fixture.Inconclusive, "msec": fixture.Inconclusive, "sec": fixture.Inconclusive, "us/op": fixture.Inconclusive,
		"ms per query": fixture.Inconclusive, "rps": fixture.Inconclusive, "queries per second": fixture.Inconclusive, "1": fixture.Go, "By": fixture.Go,
	} {
		t.Run(unit, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) { spec.Gates[0].Bound = "0.99" })
			l.Exp.Plan.Metrics[0].Unit = unit
			for i := range l.Attempts {
				result := *l.Attempts[i].Result
				value := map[string]float64{"old": 15, "new": 14}[l.Attempts[i].Arm]
				result.Metrics = map[string]*record.Metric{"time": {Unit: unit, Value: &value}}
				l.Attempts[i].Result = &result
			}
			if got := l.Analyze(); got.Verdict != want {
				t.Errorf("%s: %s, want %s", got.Verdict, got.Candidates[0].Reason, want)
			}
		})
	}
}

// A phase is a time too. Repeated readings show a coarse clock, and a control may have moved by less than its step.
func TestPhases_HaveClockResolution(t *testing.T) {
	t.Parallel()
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
			l := analyzed.SimulatePair(t, 0.94, func(s *fixture.RunSpec) { s.Design.ControlPhases = []string{"load"} })
			for i := range l.Attempts {
				result := *l.Attempts[i].Result
				took := map[string]float64{"old": c.old, "new": c.new}[l.Attempts[i].Arm] * math.Exp(c.noise*random.NormFloat64())
				result.Phases = []record.Phase{{Name: "load", Samples: []float64{floor(c.step, took)}}}
				l.Attempts[i].Result = &result
			}
			got := l.Analyze()
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
			fixture.CheckInvariants(t, got)
		})
	}
}

func TestSerial_DependentBlocksWiden(t *testing.T) {
	t.Parallel()
	for name, wander := range map[string]float64{"blocks that wander": 0.05, "blocks that do not": 0} {
		t.Run(name, func(t *testing.T) {
			found := analyzed.AnalyzePair(t, fixture.Scenario{Trial: 0.005, Wander: wander, Persistence: 0.85}, func(spec *fixture.RunSpec) {
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

// The property holds for any undeclared step of a clock and any digits of its readings, also if these are constant or a few repeated
// values: the interval has a width and contains the truth.
func TestClockInterval_AnyStepContainsTheTruth(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	random := rand.New(rand.NewPCG(23, 29))
	uniform := func(low, high float64) float64 { return math.Exp(math.Log(low) + random.Float64()*math.Log(high/low)) }
	never, missed := 0, 0
	for range 400 {
		step := uniform(1e-3, 0.1)
		seconds, ratio, noise := uniform(step, 10*step), math.Exp(0.2*random.NormFloat64()), []float64{0, 1e-5, 1e-3}[random.IntN(3)]
		digit := []float64{1e-9, 1e-7, 1e-6, step / 1000}[random.IntN(4)]
		level := random.IntN(2) == 0
		own := random.IntN(2) == 0 // The candidate has a separate clock with a known step.
		edit := func(spec *fixture.RunSpec) {
			if level {
				spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "1s"}}
			}
		}
		different := map[float64]bool{}
		got := analyzed.AnalyzePair(t, fixture.Scenario{Trial: 0.01}, edit, func(arm string, _ int) float64 {
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

// The same readings have the same clock and result in every unit.
func TestClockStep_IndependentOfUnit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(31, 37))
	widened := 0
	clocks := 150
	if testing.Short() {
		clocks = 15
	}
	for range clocks {
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
			l := analyzed.SimulatePair(t, 1, nil)
			l.Exp.Plan.Metrics[0].Unit = unit
			for i := range l.Attempts {
				result := *l.Attempts[i].Result
				value := read(i) * math.Round(digit/1e-9) / math.Round(experiment.ClockUnit(unit)/1e-9)
				result.Metrics = map[string]*record.Metric{"time": {Unit: unit, Value: &value}}
				l.Attempts[i].Result = &result
			}
			ratio := &l.Analyze().Ratios[0]
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
