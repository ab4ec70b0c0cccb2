package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"assay.dev/assay/operator/internal/experiment"
)

// The step found is never smaller than the clock's, for any step and any number of values, and with enough values it is the clock's.
func TestCommonStep_IsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		step := math.Exp(10*random.Float64() - 15)
		var values []float64
		for range 2 + random.IntN(30) {
			values = append(values, float64(1+random.IntN(1000))*step)
		}
		slices.Sort(values)
		values = slices.Compact(values)
		got := commonStep(values, math.Inf(1))
		if got < step*0.999 || len(values) > 12 && got > step*1.001 {
			t.Fatalf("step %g of %d values, found %g", step, len(values), got)
		}
	}
}

// Trials that wait for most of their time differ by less than a hundred-thousandth, and each has a different time.
func TestClockStep_LongNearlyConstantTimesHaveAFineClock(t *testing.T) {
	// Seconds per query beside a timer of the kernel, as ten trials of the RMS24 study's run-document.yaml measured them.
	measured := []float64{0.694501546625, 0.694507460375, 0.69449754375, 0.694502565, 0.6945063795, 0.694510921125, 0.69449860525,
		0.694497562625, 0.69450206425, 0.69449547075}
	slices.Sort(measured)
	if step := commonStep(measured, lostSeconds); step != 0 {
		t.Errorf("a step of %g in %v", step, measured)
	}
	random := rand.New(rand.NewPCG(6, 6))
	for range 2000 {
		length := 0.2 * math.Exp(6*random.Float64()) // Up to 80 s.
		var values []float64
		for range 8 + random.IntN(30) {
			values = append(values, length+(4+50*random.Float64())*lostSeconds*random.NormFloat64())
		}
		slices.Sort(values)
		if step := commonStep(values, lostSeconds); step > length/2 {
			t.Fatalf("a step of %g in %v", step, values)
		}
	}
}

// The rounding of doubles of that size hides no step of any length.
func TestClockStep_FoundInDifferencesOfEpochTimes(t *testing.T) {
	random, found := rand.New(rand.NewPCG(7, 7)), 0
	for range 2000 {
		step := 0.05 * math.Exp(5*random.Float64()) // Up to 7 s.
		var values []float64
		for range 12 + random.IntN(30) {
			at := 1.79e9 + 1e6*random.Float64()
			values = append(values, (at+float64(1+random.IntN(4))*step)-at)
		}
		slices.Sort(values)
		values = slices.Compact(values)
		if len(values) < 4 {
			continue // They have some step by accident.
		}
		if got := commonStep(values, lostSeconds); math.Abs(got-step) > 1e-5*step {
			t.Fatalf("a step of %g in %v, found %g", step, values, got)
		}
		found++
	}
	if found < 1500 {
		t.Errorf("only %d of 2000 clocks were looked at", found)
	}
}

// The same times have the same clock in every unit.
func TestClockStep_ReadingsWithinAMicrosecondAreEqual(t *testing.T) {
	exp := &experiment.Experiment{Plan: experiment.Plan{Metrics: []experiment.Metric{
		{Name: "seconds", Unit: "s"}, {Name: "milliseconds", Unit: "ms/op"}, {Name: "rate", Unit: "queries/s"}, {Name: "cycles", Unit: "GHz"},
	}}}
	d := &Data{Exp: exp}
	for name, want := range map[string]float64{
		"seconds": 1e-6, "milliseconds": 1e-3, "rate": 1e-6, "cycles": math.Inf(1), "phase/search": 1e-6,
	} {
		if got := lostSeconds / experiment.ClockUnit(d.unitOf(name)); got != want && math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
}
