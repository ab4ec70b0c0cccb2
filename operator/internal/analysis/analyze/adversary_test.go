package analyze

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// scaleTime multiplies what an attempt of Pair took.
func scaleTime(a *record.Attempt, by float64) {
	result := *a.Result
	result.Metrics = map[string]*record.Metric{"time": {Unit: "s", Value: ptr.To(*a.Result.Metrics["time"].Value * by)}}
	a.Result, a.DurationSeconds = &result, a.DurationSeconds*by
}

// wave adds one more wave of ten blocks of Pair, in which the candidate's time is the baseline's times a factor.
func (l *simulatedRun) wave(t *testing.T, purpose record.Purpose, factor float64) {
	t.Helper()
	l.waveFrom(t, purpose, factor, 10*len(l.waves), 10)
}

// waveFrom is that with so many blocks, numbered from first.
func (l *simulatedRun) waveFrom(t *testing.T, purpose record.Purpose, factor float64, first, blocks int) {
	t.Helper()
	number := len(l.waves)
	wave, err := fixture.Wave(l.exp, number, first, blocks)
	if err != nil {
		t.Fatal(err)
	}
	wave.Purpose = purpose
	l.waves = append(l.waves, *wave)
	l.attempts = append(l.attempts, fixture.NewWorld(fixture.Scenario{Trial: 0.01}, math.Log(factor), uint64(number), 7).Run(l.exp, wave)...)
}

// through judges all waves.
func (l *simulatedRun) through() *analysis.Analysis {
	return Evidence(l.exp, record.Evidence{Waves: l.waves, Attempts: l.attempts, Problems: l.problems}, 9)
}

// point8 is the point that at8 names.
const point8 = "batchSize=8,pendingDelta=0"

// numbered is the number of an attempt's block.
func numbered(t *testing.T, a *record.Attempt) int {
	t.Helper()
	number, ok := record.BlockNumber(a.Block)
	if !ok {
		t.Fatal(a.Block)
	}
	return number
}

// A ledger from which something is left out, or in which something is called what it is not, would choose what is judged: it is named, and
// decides nothing.
func TestALedgerThatChoosesWhatIsJudgedDecidesNothing(t *testing.T) {
	without := func(numbers ...int) func(*testing.T, *simulatedRun) {
		return func(t *testing.T, l *simulatedRun) {
			l.keepOnly(func(a record.Attempt) bool { return !slices.Contains(numbers, numbered(t, &a)) })
			l.waves[0].Blocks = slices.DeleteFunc(slices.Clone(l.waves[0].Blocks), func(b record.Block) bool {
				number, _ := record.BlockNumber(b.ID)
				return slices.Contains(numbers, number)
			})
		}
	}
	planless := func(spoil func(*testing.T, *simulatedRun)) func(*testing.T, *simulatedRun) {
		return func(t *testing.T, l *simulatedRun) {
			spoil(t, l)
			l.waves = nil
		}
	}
	nothing := func(*testing.T, *simulatedRun) {}
	const contradicts = "waves/001/wave.json is missing, cannot be read or contradicts"
	warmups := func(t *testing.T, l *simulatedRun) {
		for i := range l.attempts {
			if a := &l.attempts[i]; a.Arm == "new" && numbered(t, a) < 2 && a.Slot > 0 && !a.Warmup {
				a.Warmup, a.Trial = true, record.TrialName(a.Block, a.Slot, true)
				a.ID = "simulated/" + a.Trial
				scaleTime(a, 1.4)
			}
		}
	}
	copies := func(t *testing.T, l *simulatedRun) {
		l.keepOnly(func(a record.Attempt) bool { return numbered(t, &a) < 3 })
		for i, n := 0, len(l.attempts); i < n; i++ {
			for block := numbered(t, &l.attempts[i]) + 3; block < 10; block += 3 {
				a := l.attempts[i]
				a.Block = record.BlockName(0, block)
				a.Trial = record.TrialName(a.Block, a.Slot, false)
				a.ID = "simulated/" + a.Trial
				a.Source.Key = "attempts/" + a.Block + "/" + a.ID + ".json"
				l.attempts = append(l.attempts, a)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil  func(*testing.T, *simulatedRun)
		want   experiment.Verdict
		reason string
	}{
		"nothing is left out":             {nothing, goes, ""},
		"nothing, and there is no plan":   {planless(nothing), goes, ""},
		"the last block of the plan":      {without(9), inconclusive, "ran in 9 blocks and spec.design.blocks.min asks for at least 10"},
		"two blocks and their plans":      {without(3, 7), inconclusive, "block 3 is missing"},
		"the first block and its plan":    {without(0), inconclusive, "block 0 is missing"},
		"two blocks of a run without one": {planless(without(3, 7)), inconclusive, "block 3 is missing"},
		"a later plan that cannot be read": {func(_ *testing.T, l *simulatedRun) {
			l.problems = []record.Problem{{Source: record.Source{Key: "waves/001/wave.json"}, Reason: "x"}}
		}, inconclusive, contradicts},
		"slow trials that warm up": {planless(warmups), inconclusive, "contradicts the experiment"},
		"nothing, and a second wave goes on": {
			func(t *testing.T, l *simulatedRun) { l.waveFrom(t, record.Screen, 0.94, 10, 3) }, goes, "",
		},
		"two blocks whose numbers a second wave has again": {func(t *testing.T, l *simulatedRun) {
			without(3, 7)(t, l)
			l.waveFrom(t, record.Screen, 0.94, 3, 5)
		}, inconclusive, "block 3 is missing"},
		"two blocks at the end, and a second wave begins with another number": {func(t *testing.T, l *simulatedRun) {
			without(8, 9)(t, l)
			l.waveFrom(t, record.Screen, 0.94, 7, 3)
		}, inconclusive, "w001-b0007 is missing, cannot be read or contradicts"},
		"the same, of a run without a plan": {planless(func(t *testing.T, l *simulatedRun) {
			without(8, 9)(t, l)
			l.waveFrom(t, record.Screen, 0.94, 7, 3)
		}), inconclusive, "w001-b0007 is missing, cannot be read or contradicts"},
		"a second wave whose numbers come before those of the first": {func(t *testing.T, l *simulatedRun) {
			without(0, 1, 2)(t, l)
			l.waveFrom(t, record.Screen, 0.94, 0, 3)
		}, inconclusive, "block 0 is missing"},
		"three blocks, each several times": {planless(copies), inconclusive, "one is a copy of the other"},
		"a bad wave that searches, in a run that searches nothing": {
			func(t *testing.T, l *simulatedRun) { l.wave(t, record.Search, 1.2) }, inconclusive, contradicts,
		},
		"a bad wave that confirms, in a run that confirms nothing": {
			func(t *testing.T, l *simulatedRun) { l.wave(t, record.Confirm, 1.2) }, inconclusive, contradicts,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := pair(t, 0.94, nil)
			c.spoil(t, l)
			got := l.through()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
			checkInvariants(t, got)
		})
	}
}

// What ran is an order, whatever the design names: where one arm always comes first, what the first place does looks like the arm.
func TestTheOrderThatRanIsJudgedNotTheOneThatIsNamed(t *testing.T) {
	places := func(of func(block int) []int, planned bool, order assayv1alpha1.Order) *analysis.Analysis {
		l := pair(t, 1, func(spec *runSpec) { spec.Design.Order = order })
		for i := range l.waves[0].Blocks {
			l.waves[0].Blocks[i].Order = of(i)
		}
		l.attempts = fixture.NewWorld(fixture.Scenario{Trial: 0.002}, math.Log(0.99), 1, 1).Run(l.exp, &l.waves[0])
		for i := range l.attempts {
			scaleTime(&l.attempts[i], 1-0.02*float64(l.attempts[i].Slot)) // Every trial is faster than the one before it.
		}
		if !planned {
			l.waves = nil
		}
		return l.analyze()
	}
	const baseline, candidate = "arm old ran before arm new in 10 of 10 blocks", "arm new ran before arm old in 10 of 10 blocks"
	always := func(order ...int) func(int) []int { return func(int) []int { return order } }
	turns := func(a, b []int) func(int) []int {
		return func(block int) []int {
			if block%2 == 0 {
				return a
			}
			return b
		}
	}
	for name, c := range map[string]struct {
		of     func(int) []int
		order  assayv1alpha1.Order
		want   experiment.Verdict
		reason string
	}{
		"the baseline always first, called ABBA":   {always(0, 0, 1, 1), assayv1alpha1.OrderABBA, inconclusive, baseline},
		"the candidate always first, called ABBA":  {always(1, 1, 0, 0), assayv1alpha1.OrderABBA, inconclusive, candidate},
		"the baseline always first, called Random": {always(0, 1), assayv1alpha1.OrderRandom, inconclusive, baseline},
		"forwards and backwards":                   {always(0, 1, 1, 0), assayv1alpha1.OrderABBA, goes, ""},
		"in turns":                                 {turns([]int{0, 1}, []int{1, 0}), assayv1alpha1.OrderRandom, inconclusive, "spans the bound"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, planned := range []bool{true, false} {
				got := places(c.of, planned, c.order)
				if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
					t.Errorf("planned %v: %s: %s\nwant %s: %s", planned, got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
				}
			}
		})
	}
}

// windows is the step of the timer of Windows.
const windows = 1.0 / 64

// Arms of two platforms have two clocks, and the finer one says nothing of what the coarser one cannot show.
func TestAnArmOnACoarserClockIsWidenedByIt(t *testing.T) {
	floor := func(step, seconds float64) float64 { return math.Floor(seconds/step) * step }
	digits := func(seconds, digit float64) float64 { return math.Round(seconds/digit) * digit }
	for name, c := range map[string]struct {
		old, new float64
		read     func(arm string, seconds float64) float64
		noise    float64
	}{
		"the candidate on 15.6 ms, the baseline on none": {0.034, 0.040, func(arm string, s float64) float64 {
			if arm == "new" {
				return floor(windows, s)
			}
			return s
		}, 0.01},
		"the same, written with four digits": {0.034, 0.040, func(arm string, s float64) float64 {
			if arm == "new" {
				return digits(floor(windows, s), 1e-4)
			}
			return digits(s, 1e-6)
		}, 0.01},
		"both on 15.6 ms, written in milliseconds": {0.0468, 0.0465, func(_ string, s float64) float64 {
			return digits(floor(windows, s), 1e-3)
		}, 0},
		"both on 15.6 ms, and both read two steps": {0.032, 0.046, func(_ string, s float64) float64 { return floor(windows, s) }, 0},
		"the candidate on 10 ms, the baseline on 1 us": {0.104, 0.1099, func(arm string, s float64) float64 {
			if arm == "new" {
				return floor(0.01, s)
			}
			return floor(1e-6, s)
		}, 0.002},
		"the candidate reads eight steps of 15.6 ms, which are 125 of the baseline's": {0.128, 0.13, func(arm string, s float64) float64 {
			if arm == "new" {
				return floor(windows, s)
			}
			return digits(floor(1e-3, s), 1e-3)
		}, 0.001},
		"the baseline on 10 ms, the candidate on 15.6 ms": {0.0401, 0.0468, func(arm string, s float64) float64 {
			if arm == "new" {
				return floor(windows, s)
			}
			return floor(0.01, s)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(11, 5))
			got := judged(t, fixture.Scenario{Trial: 0.01}, nil, func(arm string, _ int) float64 {
				return c.read(arm, map[string]float64{"old": c.old, "new": c.new}[arm]*math.Exp(c.noise*random.NormFloat64()))
			})
			estimate := got.Gates[0].Estimate
			if truth := c.new / c.old; estimate == nil || *estimate.Low > truth || *estimate.High < truth {
				t.Errorf("%s is the interval of %.3f", analysis.Describe(estimate), truth)
			}
			if got.Verdict == goes && c.new > c.old {
				t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
			}
		})
	}
}

// Steps that passed are half a step too few, however many readings are averaged. That cancels only where both arms have it.
func TestReadingsThatSpreadAreHalfAStepShortOfAnotherClock(t *testing.T) {
	const step, seconds = 0.01, 0.2
	for name, both := range map[string]bool{"one arm has the clock": false, "both have it": true} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(13, 7))
			many := func(spec *runSpec) { spec.Design.Blocks.Min, spec.Design.Blocks.Max = 40, 40 }
			got := judged(t, fixture.Scenario{Trial: 0.01}, many, func(arm string, _ int) float64 {
				took := seconds * math.Exp(0.03*random.NormFloat64())
				if arm == "new" || both {
					return math.Floor(took/step) * step
				}
				return took
			})
			gate := got.Gates[0]
			if *gate.Estimate.Low > 1 || *gate.Estimate.High < 1 || got.Ratios[0].Resolution.Widened == both {
				t.Errorf("%s: %s, resolution %+v", gate.Outcome, gate.Message, got.Ratios[0].Resolution)
			}
		})
	}
}

// TestIntervalsOfMixedClocksHoldTheTruth is the property: whatever the two clocks are, and at whatever phase they are read.
func TestIntervalsOfMixedClocksHoldTheTruth(t *testing.T) {
	clocks := []float64{0, 1e-6, 1e-3, 1e-2, windows}
	random := rand.New(rand.NewPCG(17, 3))
	runs, missed := 0, 0
	for _, baseline := range clocks {
		for _, candidate := range clocks {
			for _, noise := range []float64{0, 0.002, 0.03} {
				for _, aligned := range []bool{true, false} {
					for range 4 {
						seconds, ratio := math.Exp(math.Log(0.02)+random.Float64()*math.Log(20)), math.Exp(0.1*random.NormFloat64())
						got := judged(t, fixture.Scenario{Trial: 0.01}, nil, func(arm string, _ int) float64 {
							took, step := seconds*math.Exp(noise*random.NormFloat64()), baseline
							if arm == "new" {
								took, step = took*ratio, candidate
							}
							if step == 0 {
								return took
							}
							phase := 0.0
							if !aligned {
								phase = random.Float64()
							}
							return math.Floor(took/step+phase) * step
						})
						runs++
						if gate := got.Gates[0]; gate.Estimate != nil && gate.Estimate.Low != nil &&
							(*gate.Estimate.Low > ratio*(1+1e-9) || *gate.Estimate.High < ratio*(1-1e-9)) {
							missed++
							t.Logf("clocks of %g and %g s, aligned %v, noise %g, %.4g s, ratio %.4f: %s", baseline, candidate, aligned, noise, seconds, ratio,
								gate.Message)
						}
					}
				}
			}
		}
	}
	// At a confidence of 0.995 three are expected of 600, and more than ten once in a thousand times.
	if missed > 10 {
		t.Errorf("%d of %d intervals miss the truth", missed, runs)
	}
}

// A sample in which nothing was done has a rate of 0, which says nothing of the clock that the others were read by.
func TestARateOfZeroHidesNoClock(t *testing.T) {
	const step = 0.01
	for _, statistic := range []assayv1alpha1.Statistic{"p50", "median", "mean", "max"} {
		for name, zeros := range map[string][]string{
			"no sample is 0": nil, "one of the candidates' is": {"fused-naive", "fused-m4r"}, "one of the baseline's is": {"loop"},
			"one of every arm's is": {"loop", "fused-naive", "fused-m4r"},
		} {
			gate := assayv1alpha1.Gate{Name: "g", Metric: "latency", Statistic: statistic, At: at8, Op: assayv1alpha1.RatioAtLeast, Bound: "1.1"}
			l := simulated(t, 10, fixture.Machine{Seed: 3, Noise: quiet}, func(spec *runSpec, template *templateSpec) {
				gates(gate)(spec, template)
				template.Metrics[0].Unit, template.Metrics[0].Direction = "queries/s", assayv1alpha1.HigherIsBetter
			})
			for i := range l.attempts {
				a := &l.attempts[i]
				metric := &record.Metric{Unit: "queries/s", Samples: slices.Repeat([]float64{1 / (3 * step)}, 30)}
				if a.Arm == "loop" {
					metric.Samples = slices.Repeat([]float64{1 / (4 * step)}, 30)
				}
				if slices.Contains(zeros, a.Arm) {
					metric.Samples[7] = 0
				}
				a.Result.Metrics["latency"] = metric
			}
			if got := l.analyze().Gates[0]; got.Outcome != inconclusive {
				t.Errorf("%s, %s: %s: %s", statistic, name, got.Outcome, got.Message)
			}
		}
	}
}

// On a machine that is so quiet that all trials of an arm are alike to a thousandth, two arms a little apart are no clock with two steps.
func TestAQuietMachineIsNoClock(t *testing.T) {
	for _, effect := range []float64{0.95, 0.98, 0.9998} {
		got := judged(t, fixture.Scenario{}, func(spec *runSpec) { spec.Gates[0].Bound = "1.001" }, quietly(effect))
		if got.Verdict != goes || got.Ratios[0].Resolution != nil {
			t.Errorf("%g: %s: %s, resolution %+v", effect, got.Verdict, got.Candidates[0].Reason, got.Ratios[0].Resolution)
		}
	}
}

// quietly are times with a noise of a fiftieth of a per cent.
func quietly(effect float64) func(string, int) float64 {
	random := rand.New(rand.NewPCG(41, 43))
	return func(arm string, _ int) float64 {
		return 0.05 * map[string]float64{"old": 1, "new": effect}[arm] * math.Exp(0.0002*random.NormFloat64())
	}
}

func TestATimeThatAlwaysReadsZeroIsNotKnown(t *testing.T) {
	atMost := func(spec *runSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "5ms"}}
	}
	for name, c := range map[string]struct {
		old, new float64
		want     experiment.Verdict
		says     string
	}{
		"every arm reads 0":                       {0, 0, experiment.VerdictInvalid, "its clock shows nothing"},
		"the other arm shows a step of 10 ms":     {0.01, 0, inconclusive, "spans the bound"},
		"the other arm shows a step of a hundred": {0.0001, 0, goes, "holds over"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judged(t, fixture.Scenario{Trial: 0.01}, atMost, func(arm string, _ int) float64 {
				return map[string]float64{"old": c.old, "new": c.new}[arm]
			})
			if got.Gates[0].Outcome != c.want || !strings.Contains(got.Gates[0].Message, c.says) {
				t.Errorf("%s: %s", got.Gates[0].Outcome, got.Gates[0].Message)
			}
			for _, arm := range got.Arms {
				if e := arm.Estimate; e.Low != nil && *e.Low == *e.High {
					t.Errorf("an interval of width zero: %s", analysis.Describe(&e))
				}
			}
		})
	}
}

// A histogram cannot tell what lies in one of its buckets apart: with one significant digit that is some six per cent.
func TestTheBucketsOfAHistogramWidenItsIntervals(t *testing.T) {
	coarse := func(values []float64, digits int) *record.Histogram {
		h := hdrhistogram.New(1, 3_600_000_000_000, digits)
		for _, value := range values {
			if err := h.RecordValue(int64(value * 1e9)); err != nil {
				t.Fatal(err)
			}
		}
		encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		return &record.Histogram{Encoding: "hdr-v2-deflate-base64", Scale: 1e-9, Count: h.TotalCount(), Data: string(encoded)}
	}
	// The candidate is slower by what a bucket of one digit hides.
	const slower = 1.014
	for _, statistic := range []assayv1alpha1.Statistic{"p50", "p95", "median", "min", "max", "mean"} {
		for digits, sure := range map[int]bool{1: false, 3: true} {
			gate := assayv1alpha1.Gate{Name: "same", Metric: "latency", Statistic: statistic, At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "1.01"}
			l := simulated(t, 10, fixture.Machine{Seed: 3, Noise: fixture.Noise{Trial: 0.0002}, Seconds: factor(1 / slower)}, gates(gate))
			for i := range l.attempts {
				metrics := l.attempts[i].Result.Metrics
				metrics["latency"] = &record.Metric{Unit: "s", Histogram: coarse(metrics["latency"].Samples, digits)}
			}
			found := l.analyze().Gates[0]
			if *found.Estimate.Low > slower || *found.Estimate.High < slower || *found.Estimate.Low == *found.Estimate.High ||
				(found.Outcome == noGo) != sure {
				t.Errorf("%s of %d digits: %s: %s", statistic, digits, found.Outcome, found.Message)
			}
		}
	}
}

// What a histogram counts as 0 is shorter than its unit, and by how much nobody knows: a program that counts whole seconds has not shown
// that it takes less than 5 ms.
func TestATimeOfZeroInAHistogramIsAsCoarseAsItsUnit(t *testing.T) {
	type edit = func(*runSpec, *templateSpec)
	level := func(statistic assayv1alpha1.Statistic, op assayv1alpha1.GateOperator, bound string) edit {
		return gates(assayv1alpha1.Gate{Name: "g", Metric: "latency", Statistic: statistic, At: at8, Op: op, Bound: bound})
	}
	rate := func(of edit) edit {
		return func(spec *runSpec, template *templateSpec) {
			of(spec, template)
			template.Metrics[0].Unit, template.Metrics[0].Direction = "queries/s", assayv1alpha1.HigherIsBetter
		}
	}
	count := func(of edit) edit {
		return func(spec *runSpec, template *templateSpec) {
			of(spec, template)
			template.Metrics[0].Unit = "faults"
		}
	}
	for _, statistic := range []assayv1alpha1.Statistic{"p95", "median", "mean"} {
		for name, c := range map[string]struct {
			edit edit
			unit string
			want experiment.Verdict
		}{
			"a time below its unit":                   {level(statistic, assayv1alpha1.AtMost, "5ms"), "s", inconclusive},
			"a time beyond its unit":                  {level(statistic, assayv1alpha1.AtMost, "2s"), "s", goes},
			"a rate below its unit":                   {rate(level(statistic, assayv1alpha1.AtLeast, "0.5")), "queries/s", inconclusive},
			"a rate beyond its unit":                  {rate(level(statistic, assayv1alpha1.AtLeast, "2")), "queries/s", noGo},
			"a count, which is known to the last one": {count(level(statistic, assayv1alpha1.AtMost, "0")), "faults", goes},
		} {
			l := simulated(t, 10, fixture.Machine{Seed: 3, Noise: quiet}, c.edit)
			for i := range l.attempts {
				metrics := l.attempts[i].Result.Metrics
				metrics["latency"] = &record.Metric{Unit: c.unit, Histogram: asHistogram(t, make([]float64, len(metrics["latency"].Samples)))}
				metrics["latency"].Histogram.Scale = 1
			}
			if found := l.analyze().Gates[0]; found.Outcome != c.want {
				t.Errorf("%s, %s: %s: %s", statistic, name, found.Outcome, found.Message)
			}
		}
	}
}

// on gives every block of a run its node, and the candidate there a ratio of its own.
func (l *simulatedRun) on(t *testing.T, nodes []string, ratio map[string]float64) {
	for i := range l.attempts {
		a := &l.attempts[i]
		node := nodes[numbered(t, a)]
		a.Environment.Soft = map[string]any{}
		if node != "" {
			a.Environment.Soft["nodeName"] = node
		}
		if a.Arm == "new" {
			scaleTime(a, ratio[node])
		}
	}
}

// TestNodesWithFewBlocksAreNodes counts wrong verdicts where the ratio depends on the node, and the truth is that over nodes: however the
// blocks are shared among them, and whether or not each says where it ran.
func TestNodesWithFewBlocksAreNodes(t *testing.T) {
	for name, nodes := range map[string][]string{
		"two nodes with one block each beside one with eight": {"a", "a", "a", "a", "a", "a", "a", "a", "b", "c"},
		"four nodes, three of them with one block":            {"a", "b", "a", "c", "a", "a", "d", "a", "a", "a"},
		"one, two, three and four blocks":                     {"a", "b", "b", "c", "c", "c", "d", "d", "d", "d"},
		"five nodes with two blocks":                          {"a", "a", "b", "b", "c", "c", "d", "d", "e", "e"},
		"ten nodes with one block":                            {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"},
		"three nodes, and a block that does not say where":    {"a", "a", "a", "b", "b", "b", "c", "c", "c", ""},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(23, 29))
			const runs = 200
			wrong := 0
			exp := pair(t, 1, nil)
			for run := range runs {
				ratio := map[string]float64{}
				for _, node := range nodes {
					if ratio[node] == 0 {
						ratio[node] = math.Exp(0.03 * random.NormFloat64())
					}
				}
				l := &simulatedRun{exp: exp.exp, waves: exp.waves}
				l.attempts = fixture.NewWorld(fixture.Scenario{Trial: 0.005}, 0, 31, uint64(run)).Run(exp.exp, &exp.waves[0])
				l.on(t, nodes, ratio)
				if got := l.analyze(); got.Verdict == goes || got.Verdict == noGo {
					wrong++
				}
			}
			// One in a hundred is expected, and more than eight of 200 once in four thousand times.
			if wrong > 8 {
				t.Errorf("%d of %d runs were decided, without a true difference", wrong, runs)
			}
		})
	}
}

// A percentile needs its samples of all nodes together. That a node has too few by itself must not hide that nodes differ.
func TestPercentilesOfNodesThatHaveFewSamplesEach(t *testing.T) {
	gate := assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p95", At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "1.1",
		Candidate: "fused-m4r"}
	const runs = 20
	for name, c := range map[string]struct {
		slower      float64
		least, most int // One in ten of those that are alike seems to differ, and more than six of 20 once in four hundred times.
	}{"nodes on which the candidate is alike": {1, 0, 6}, "nodes on which it is not": {1.09, runs, runs}} {
		t.Run(name, func(t *testing.T) {
			differ := 0
			for seed := range runs {
				noise := fixture.Noise{Arm: 0.004, Trial: 0.004, Sample: 0.01}
				l := simulated(t, 8, fixture.Machine{Seed: uint64(seed), Noise: noise, Seconds: factor(1), Samples: 13}, gates(gate))
				for i := range l.attempts {
					a := &l.attempts[i]
					node := string(rune('a' + numbered(t, a)%2))
					a.Environment.Soft = map[string]any{"nodeName": node}
					if node == "b" && a.Arm == "fused-m4r" {
						for s := range a.Result.Metrics["latency"].Samples {
							a.Result.Metrics["latency"].Samples[s] *= c.slower
						}
					}
				}
				for _, ratio := range l.analyze().Ratios {
					if ratio.Metric == "latency" && ratio.Statistic == "p95" && ratio.Candidate == gate.Candidate && ratio.Point == point8 &&
						ratio.NodesDiffer {
						differ++
					}
				}
			}
			if differ < c.least || differ > c.most {
				t.Errorf("nodes differ in %d of %d runs, want %d to %d", differ, runs, c.least, c.most)
			}
		})
	}
}

// A trial that gives fewer samples than its parameter fixes left some out, and slow ones are those that a program would.
func TestSamplesThatAreLeftOutAreALoss(t *testing.T) {
	gate := assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p95", At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05",
		Candidate: "fused-m4r"}
	for name, c := range map[string]struct {
		spoil func(*simulatedRun)
		want  experiment.Verdict
		says  string
	}{
		"all of them are there": {func(*simulatedRun) {}, goes, ""},
		"the slowest three of 30 in each trial": {func(l *simulatedRun) {
			l.each("fused-m4r", func(a *record.Attempt) {
				samples := slices.Sorted(slices.Values(a.Result.Metrics["latency"].Samples))
				a.Result.Metrics["latency"].Samples = samples[:27]
			})
		}, noGo, "latency has 27 samples and iterations fixes 30"},
		"one in one trial of the baseline": {func(l *simulatedRun) {
			gate := slices.IndexFunc(l.attempts, func(a record.Attempt) bool { return a.Arm == "loop" && !a.Warmup && a.Point == point8 })
			latency := l.attempts[gate].Result.Metrics["latency"]
			latency.Samples = latency.Samples[1:]
		}, inconclusive, "the baseline does not complete"},
	} {
		t.Run(name, func(t *testing.T) {
			l := simulated(t, 12, fixture.Machine{Seed: 1, Noise: quiet, Seconds: factor(1.2)}, gates(gate))
			c.spoil(l)
			candidate := l.analyze().Candidates[1]
			if candidate.Verdict != c.want || !strings.Contains(candidate.Reason, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", candidate.Verdict, candidate.Reason, c.want, c.says)
			}
		})
	}
}

// Where a trial's samples come from must not depend on its arm: one number in place of all is what the program made of them, and an arm
// whose own number of samples nobody keeps to may leave out any.
func TestArmsWhoseFiguresAreMadeOfOtherSamplesAreNotCompared(t *testing.T) {
	gate := assayv1alpha1.Gate{Name: "gain", Metric: "latency", At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05", Candidate: "fused-m4r"}
	aggregated := func(a *record.Attempt) {
		latency := a.Result.Metrics["latency"]
		least := slices.Min(latency.Samples)
		a.Result.Metrics["latency"] = &record.Metric{Unit: latency.Unit, Value: &least}
	}
	ownNumber := func(spec *runSpec) { spec.Arms[2].Parameters["iterations"] = "40" }
	for name, c := range map[string]struct {
		edit  func(*runSpec)
		spoil func(*simulatedRun)
		want  experiment.Verdict
		says  string
	}{
		"all samples in all arms": {nil, nil, goes, ""},
		"one number of its own in every trial": {nil, func(l *simulatedRun) { l.each("fused-m4r", aggregated) }, inconclusive,
			`latency (samplesFrom: iterations) is made of "one value" in 24 trials of arm fused-m4r, and of "all samples" in 24 trials of arm loop`},
		"one number of the baseline's":    {nil, func(l *simulatedRun) { l.each("loop", aggregated) }, inconclusive, `of "one value" in 24 trials of arm loop`},
		"one number in one of its trials": {nil, func(l *simulatedRun) { aggregated(l.lastOf("fused-m4r")) }, noGo, "latency has 1 sample and iterations fixes 30"},
		"one number in its trials that the gate looks at, but for one": {nil, func(l *simulatedRun) {
			one := true
			l.each("fused-m4r", func(a *record.Attempt) {
				if a.Point == point8 && one {
					one = false
				} else if a.Point == point8 {
					aggregated(a)
				}
			})
		}, noGo, "latency has 1 sample and iterations fixes 30"},
		"one number of all arms": {nil, func(l *simulatedRun) {
			for _, arm := range []string{"loop", "fused-naive", "fused-m4r"} {
				l.each(arm, aggregated)
			}
		}, goes, ""},
		"a number of samples of its own that it never has": {ownNumber, func(l *simulatedRun) {
			l.each("fused-m4r", func(a *record.Attempt) {
				latency := a.Result.Metrics["latency"]
				latency.Samples = latency.Samples[:min(30, len(latency.Samples))]
			})
		}, inconclusive, `is made of "30 samples of 40" in 24 trials of arm fused-m4r`},
		"a number of samples of its own that it has": {ownNumber, func(l *simulatedRun) {
			l.each("fused-m4r", func(a *record.Attempt) {
				latency := a.Result.Metrics["latency"]
				latency.Samples = slices.Concat(latency.Samples, latency.Samples)[:40]
			})
		}, goes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := simulated(t, 12, fixture.Machine{Seed: 1, Noise: quiet, Seconds: factor(1.2)}, func(spec *runSpec, template *templateSpec) {
				gates(gate)(spec, template)
				if c.edit != nil {
					c.edit(spec)
				}
			})
			if c.spoil != nil {
				c.spoil(l)
			}
			candidate := l.analyze().Candidates[1]
			if candidate.Verdict != c.want || !strings.Contains(candidate.Reason, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", candidate.Verdict, candidate.Reason, c.want, c.says)
			}
		})
	}
}

// What failed did fail, also where it is not what is compared: in an execution that does not count, or while warming up.
func TestFailuresOutsideOfWhatIsComparedAreLosses(t *testing.T) {
	crash := func(a *record.Attempt) {
		a.Outcome, a.ExitCode, a.Signal, a.Result = record.Failed, nil, ptr.To(11), nil
	}
	// again is a second execution of the blocks below a number, whose first one was lost before its last trial.
	again := func(t *testing.T, l *simulatedRun, below int, arms ...string) {
		var second []record.Attempt
		for i := range l.attempts {
			if a := l.attempts[i]; numbered(t, &a) < below {
				a.ID, a.StartedAt = "second/"+a.Trial, a.StartedAt.Add(time.Hour)
				a.Source.Key = "attempts/" + a.Block + "/" + a.ID + ".json"
				second = append(second, a)
				if slices.Contains(arms, a.Arm) {
					crash(&l.attempts[i])
				}
			}
		}
		l.keepOnly(func(a record.Attempt) bool { return numbered(t, &a) >= below || a.Slot < 3 })
		l.attempts = append(l.attempts, second...)
	}
	// warmedUp has a warm-up of every arm in every block.
	warmedUp := func(l *simulatedRun, arms ...string) {
		for i := range l.waves[0].Blocks {
			block := &l.waves[0].Blocks[i]
			for slot, cell := range block.Warmup {
				arm := l.exp.Arms[l.exp.Cells[cell].Arm].Name
				at := slices.IndexFunc(l.attempts, func(a record.Attempt) bool { return a.Block == block.ID && a.Arm == arm && !a.Warmup })
				a := l.attempts[at]
				a.Warmup, a.Slot, a.Trial = true, slot, record.TrialName(block.ID, slot, true)
				a.ID = "simulated/" + a.Trial
				a.Source.Key = "attempts/" + a.Block + "/" + a.ID + ".json"
				if slices.Contains(arms, arm) {
					crash(&a)
				}
				l.attempts = append(l.attempts, a)
			}
		}
	}
	repeated := func(below int, arms ...string) func(*testing.T, *simulatedRun) {
		return func(t *testing.T, l *simulatedRun) {
			again(t, l, below, arms...)
			warmedUp(l)
		}
	}
	warming := func(arms ...string) func(*testing.T, *simulatedRun) {
		return func(_ *testing.T, l *simulatedRun) { warmedUp(l, arms...) }
	}
	const clean = "a second execution of blocks in which nothing failed"
	for name, c := range map[string]struct {
		spoil func(*testing.T, *simulatedRun)
		want  experiment.Verdict
		says  string
	}{
		clean:                                    {repeated(5), goes, ""},
		"one in which the candidate had crashed": {repeated(5, "new"), inconclusive, "failed in an execution that does not count"},
		"one in which both had":                  {repeated(2, "new", "old"), goes, ""},
		"warm-ups of the candidate that crash":   {warming("new"), inconclusive, "10 failed in a warm-up"},
		"warm-ups of both that crash":            {warming("new", "old"), goes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := pair(t, 0.94, func(spec *runSpec) { spec.Design.WarmupTrials = 1 })
			c.spoil(t, l)
			got := l.analyze()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.says)
			}
			if warned := strings.Contains(strings.Join(got.Warnings, "\n"), "failed in"); warned != (name != clean) {
				t.Errorf("warnings %q", got.Warnings)
			}
			checkInvariants(t, got)
		})
	}
}

// A timeout bounds what goes by while a trial runs, in whatever unit. It bounds no CPU time: a trial that sleeps uses none.
func TestATimeoutBoundsTheTimeThatGoesByAndNoOther(t *testing.T) {
	timeout := func(l *simulatedRun, arm string, every int) {
		seen := 0
		l.each(arm, func(a *record.Attempt) {
			if seen++; seen%every == 0 {
				a.Outcome, a.ExitCode, a.Signal, a.Result, a.DurationSeconds = record.TimedOut, nil, ptr.To(9), nil, 300
				a.Resources = record.Resources{UserSeconds: ptr.To(0.1), SystemSeconds: ptr.To(0.0)}
			}
		})
	}
	of := func(metric, bound string) func(*runSpec) {
		return func(spec *runSpec) {
			spec.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: metric, Op: assayv1alpha1.RatioAtMost, Bound: bound}}
			completes("0.3", "")(spec)
		}
	}
	for name, c := range map[string]struct {
		metric string
		arm    string
		want   experiment.Verdict
	}{
		"a baseline that timed out did take as long":         {"process.wallTime", "old", goes},
		"a candidate that did is slower":                     {"process.wallTime", "new", noGo},
		"a baseline that timed out used no CPU time for it":  {"process.cpuTime", "old", inconclusive},
		"a candidate that did has no CPU time to its name":   {"process.cpuTime", "new", inconclusive},
		"nor time in user mode":                              {"process.userTime", "old", inconclusive},
		"what a baseline reports of itself need not hold it": {"time", "old", inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			l := pair(t, 1, of(c.metric, "0.9"))
			for i := range l.attempts {
				l.attempts[i].Resources = record.Resources{UserSeconds: ptr.To(l.attempts[i].DurationSeconds), SystemSeconds: ptr.To(0.01)}
			}
			timeout(l, c.arm, 2)
			if got := l.analyze(); got.Verdict != c.want {
				t.Errorf("%s: %s\nwant %s", got.Verdict, got.Candidates[0].Reason, c.want)
			}
		})
	}
	for unit, scale := range map[string]float64{"s": 1, "ms": 1e3, "us": 1e6, "min": 1. / 60} {
		t.Run("a candidate that timed out meets no gate in "+unit, func(t *testing.T) {
			l := pair(t, 0.8, of("time", "1"))
			l.exp.Plan.Metrics[0].Unit = unit
			for i := range l.attempts {
				value := *l.attempts[i].Result.Metrics["time"].Value
				l.attempts[i].Result = &record.Result{Schema: record.ResultSchema, Workload: l.attempts[i].Result.Workload,
					Metrics: map[string]*record.Metric{"time": {Unit: unit, Value: ptr.To(value * scale)}}}
			}
			timeout(l, "new", 10)
			got := l.analyze()
			if got.Verdict == goes {
				t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
			}
			for _, arm := range got.Arms {
				// Two of 20 trials took 300 s at least, and the others 0.8 s.
				want := (2*l.exp.Plan.Workload.TimeoutSeconds + 18*0.8) / 20 * scale
				if arm.Arm == "new" && math.Abs(arm.Estimate.Value/want-1) > 0.05 {
					t.Errorf("the mean is %s, want about %g", analysis.Describe(&arm.Estimate), want)
				}
			}
		})
	}
}

// A load of a search is judged as a gate is, by every finding that takes a decision from one.
func TestASearchIsDoubtedByWhatDoubtsAGate(t *testing.T) {
	capacity := map[string]float64{"loop": 300, "fused-m4r": 700}
	seen := 0
	for name, c := range map[string]struct {
		edit   func(*assayv1alpha1.BenchmarkRunSpec)
		damage func(*record.Attempt)
		want   map[string]string // The highest feasible load by arm.
	}{
		"nothing is in doubt": {nil, nil, map[string]string{"loop": "200", "fused-m4r": "400"}},
		"arms that keep their places": {
			func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Design.Order = assayv1alpha1.OrderSequential }, nil,
			map[string]string{"loop": "", "fused-m4r": ""},
		},
		"blocks three times as slow that may be there": {
			func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Design.RareSlowdown = "200%" }, nil,
			map[string]string{"loop": "100", "fused-m4r": "200"},
		},
		"half of an arm's trials at a load that are of another experiment": {
			nil, func(a *record.Attempt) {
				if a.Arm == "fused-m4r" && a.Point == "rate=400" {
					if seen++; seen%2 == 0 {
						a.Experiment = "sha256:0"
					}
				}
			}, map[string]string{"loop": "200", "fused-m4r": "200"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			exp := searchExperiment(t, c.edit)
			found := searchTo(t, exp, fixture.Machine{Seconds: served(capacity), Noise: quiet}, c.damage)
			for _, got := range found.Search {
				if got.FeasibleMax != c.want[got.Arm] {
					t.Errorf("%s: %q is feasible (%s), want %q", got.Arm, got.FeasibleMax, got.Reason, c.want[got.Arm])
				}
			}
		})
	}
}

// The best of several is an answer as a gate's is: it holds with the trials that noise limits leave out, and of arms that lost alike.
func TestTheBestIsDoubtedByWhatDoubtsAGate(t *testing.T) {
	// Both candidates are far faster than the loop, and fused-m4r is a tenth faster than fused-naive.
	seconds := func(point record.Point, arm string) float64 {
		return fixture.ScanSeconds(point, "loop") / map[string]float64{"loop": 1, "fused-naive": 2, "fused-m4r": 2.2}[arm]
	}
	machine := fixture.Machine{Seed: 4, Noise: quiet, Seconds: seconds}
	// measured changes one in so many measured trials of an arm.
	measured := func(l *simulatedRun, arm string, every int, change func(a *record.Attempt)) {
		seen := 0
		l.each(arm, func(a *record.Attempt) {
			if a.Warmup {
				return
			}
			if seen++; seen%every == 0 {
				change(a)
			}
		})
	}
	fail := func(a *record.Attempt) { a.Outcome, a.ExitCode, a.Result = record.Failed, ptr.To(1), nil }
	both := []string{"fused-m4r", "fused-naive"}
	percentile := func(spec *runSpec) {
		spec.Gates = []assayv1alpha1.Gate{{
			Name: "tail", Metric: "latency", Statistic: assayv1alpha1.StatisticP95, At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "0.9",
		}}
	}
	// slower slows fused-m4r down in some blocks by less than the baseline differs from one block to the next.
	slower := func(in func(block int) bool) func(l *simulatedRun) {
		return func(l *simulatedRun) {
			l.each("fused-m4r", func(a *record.Attempt) {
				if in(numbered(t, a)) {
					fixture.Neighbour{Slowdown: 1.05}.Disturb(a)
				}
			})
			l.each("loop", func(a *record.Attempt) {
				fixture.Neighbour{Slowdown: 1 + 0.1*float64(numbered(t, a)%4)}.Disturb(a)
			})
		}
	}
	for name, c := range map[string]struct {
		spoil func(l *simulatedRun)
		edit  func(*runSpec)
		want  []string
	}{
		"a tenth is enough": {nil, nil, []string{"fused-m4r"}},
		"but not with a third of its trials half as fast beside their own noise": {func(l *simulatedRun) {
			for _, arm := range []string{"loop", "fused-naive", "fused-m4r"} {
				slowdown := map[bool]float64{true: 1.5, false: 1}[arm == "fused-m4r"]
				measured(l, arm, 3, func(a *record.Attempt) { fixture.Neighbour{Slowdown: slowdown, OtherWork: 0.5}.Disturb(a) })
			}
		}, nil, both},
		"nor where the one ran before the other in every block, and both took turns with the baseline": {func(l *simulatedRun) {
			wave := &l.waves[0]
			for i := range wave.Blocks {
				places := map[string]int{"fused-naive": 1, "fused-m4r": 2, "loop": i % 2 * 3}
				slices.SortStableFunc(wave.Blocks[i].Order, func(a, b int) int {
					x, y := wave.Cells[a], wave.Cells[b]
					return cmp.Or(x.Point-y.Point, places[wave.Arms[x.Arm].Name]-places[wave.Arms[y.Arm].Name])
				})
			}
			l.attempts = machine.Run(l.exp, wave)
		}, nil, both},
		"nor where the other lost trials, and the baseline half as many": {func(l *simulatedRun) {
			measured(l, "fused-naive", 9, fail)
			measured(l, "loop", 19, fail)
		}, completes("0.7", ""), both},
		"where both lost as many it is enough": {func(l *simulatedRun) {
			measured(l, "fused-naive", 19, fail)
			measured(l, "fused-m4r", 19, fail)
		}, completes("0.7", ""), []string{"fused-m4r"}},
		"nor where blocks two fifths slower may be there": {
			nil, func(spec *runSpec) { spec.Design.RareSlowdown = "40%" }, both,
		},
		"nor in a percentile where its blocks are the slower the later, beside the other and not beside the baseline": {
			slower(func(block int) bool { return block >= 6 }), percentile, both,
		},
		"where as many are slower in turns it is enough": {
			slower(func(block int) bool { return block%2 == 0 }), percentile, []string{"fused-m4r"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := simulated(t, 12, machine, func(spec *runSpec, template *templateSpec) {
				gates(gainAt8("1.1"))(spec, template)
				if c.edit != nil {
					c.edit(spec)
				}
			})
			if c.spoil != nil {
				c.spoil(l)
			}
			got := l.analyze()
			best := slices.Clone(got.BestOf)
			if got.Best != "" {
				best = []string{got.Best}
			}
			slices.Sort(best)
			if got.Verdict != goes || !slices.Equal(best, c.want) {
				t.Errorf("%s: the best are %q, want %q; %+v", got.Verdict, best, c.want, got.Candidates)
			}
		})
	}
}

// No time is negative, whatever it is the time of. What is no time may be.
func TestANegativeTimeIsNoMeasurement(t *testing.T) {
	for unit, want := range map[string]experiment.Verdict{
		"s": noGo, "ms": noGo, "milliseconds": noGo, "ns/op": noGo, "s per query": noGo, "degrees": goes, "degrees/s": goes,
	} {
		l := pair(t, 1, nil)
		l.exp.Plan.Metrics[0].Unit = unit
		l.exp.Plan.Gates[0].Op, l.exp.Plan.Gates[0].Bound = experiment.AtMost, ptr.To(1.0)
		for i := range l.attempts {
			a := &l.attempts[i]
			value := *a.Result.Metrics["time"].Value
			if a.Arm == "new" {
				value = -value
			}
			result := *a.Result
			result.Metrics = map[string]*record.Metric{"time": {Unit: unit, Value: &value}}
			a.Result = &result
		}
		if got := l.analyze(); got.Verdict != want {
			t.Errorf("%s: %s: %s, want %s", unit, got.Verdict, got.Candidates[0].Reason, want)
		}
	}
}

// A time that nobody could have waited for was not measured, in whatever unit, by whomever.
func TestATimeOfCenturiesIsNoMeasurement(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(a *record.Attempt)
		want  experiment.Verdict
	}{
		"a baseline that took two centuries":           {func(a *record.Attempt) { scaleTime(a, 6e9) }, goes},
		"one that took three hundred million years":    {func(a *record.Attempt) { scaleTime(a, 1e16) }, experiment.VerdictInvalid},
		"one whose process did, by the runner's clock": {func(a *record.Attempt) { a.DurationSeconds = 1e16 }, experiment.VerdictInvalid},
		"one whose process computed for as long": {func(a *record.Attempt) {
			a.Resources.UserSeconds = ptr.To(1e16)
		}, experiment.VerdictInvalid},
		"one whose server did": {func(a *record.Attempt) {
			used := record.Resources{SystemSeconds: ptr.To(1e16)}
			a.Roles = []record.RoleSeen{{Name: "server", Resources: &used}, {Name: "client", Result: true}}
		}, experiment.VerdictInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			l := pair(t, 0.94, nil)
			l.each("old", c.spoil)
			if got := l.analyze(); got.Verdict != c.want {
				t.Errorf("%s: %s\nwant %s", got.Verdict, got.Candidates[0].Reason, c.want)
			}
		})
	}
}
