package estimate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"github.com/HdrHistogram/hdrhistogram-go"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// windows is the step of the timer of Windows.
const windows = 1.0 / 64

// Arms of two platforms have two clocks, and the finer one does not reduce the error of the coarser one.
func TestRatio_CoarserClockOfOneArmWidens(t *testing.T) {
	t.Parallel()
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
			got := analyzed.AnalyzePair(t, fixture.Scenario{Trial: 0.01}, nil, func(arm string, _ int) float64 {
				return c.read(arm, map[string]float64{"old": c.old, "new": c.new}[arm]*math.Exp(c.noise*random.NormFloat64()))
			})
			estimate := got.Gates[0].Estimate
			if truth := c.new / c.old; estimate == nil || *estimate.Low > truth || *estimate.High < truth {
				t.Errorf("%s is the interval of %.3f", analysis.Describe(estimate), truth)
			}
			if got.Verdict == fixture.Go && c.new > c.old {
				t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
			}
		})
	}
}

// Steps that passed are half a step too few, however many readings are averaged. That cancels only where both arms have it.
func TestClockInterval_SpreadReadingsOfAnotherClock(t *testing.T) {
	t.Parallel()
	const step, seconds = 0.01, 0.2
	for name, both := range map[string]bool{"one arm has the clock": false, "both have it": true} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(13, 7))
			many := func(spec *fixture.RunSpec) { spec.Design.Blocks.Min, spec.Design.Blocks.Max = 40, 40 }
			got := analyzed.AnalyzePair(t, fixture.Scenario{Trial: 0.01}, many, func(arm string, _ int) float64 {
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

// The property holds for any two clocks and any phases of their readings.
func TestClockInterval_MixedClocksContainTheTruth(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	clocks := []float64{0, 1e-6, 1e-3, 1e-2, windows}
	random := rand.New(rand.NewPCG(17, 3))
	runs, missed := 0, 0
	for _, baseline := range clocks {
		for _, candidate := range clocks {
			for _, noise := range []float64{0, 0.002, 0.03} {
				for _, aligned := range []bool{true, false} {
					for range 4 {
						seconds, ratio := math.Exp(math.Log(0.02)+random.Float64()*math.Log(20)), math.Exp(0.1*random.NormFloat64())
						got := analyzed.AnalyzePair(t, fixture.Scenario{Trial: 0.01}, nil, func(arm string, _ int) float64 {
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
func TestClockStep_RateOfZeroIsIgnored(t *testing.T) {
	t.Parallel()
	const step = 0.01
	for _, statistic := range []assayv1alpha1.Statistic{"p50", "median", "mean", "max"} {
		for name, zeros := range map[string][]string{
			"no sample is 0": nil, "one of the candidates' is": {"fused-naive", "fused-m4r"}, "one of the baseline's is": {"loop"},
			"one of every arm's is": {"loop", "fused-naive", "fused-m4r"},
		} {
			gate := assayv1alpha1.Gate{Name: "g", Metric: "latency", Statistic: statistic, At: fixture.At8, Op: assayv1alpha1.RatioAtLeast,
				Bound: "1.1"}
			l := analyzed.SimulateScan(t, 10, fixture.Machine{Seed: 3, Noise: fixture.QuietNoise}, func(spec *fixture.RunSpec,
				template *fixture.TemplateSpec) {
				fixture.WithGates(gate)(spec, template)
				template.Metrics[0].Unit, template.Metrics[0].Direction = "queries/s", assayv1alpha1.HigherIsBetter
			})
			for i := range l.Attempts {
				a := &l.Attempts[i]
				metric := &record.Metric{Unit: "queries/s", Samples: slices.Repeat([]float64{1 / (3 * step)}, 30)}
				if a.Arm == "loop" {
					metric.Samples = slices.Repeat([]float64{1 / (4 * step)}, 30)
				}
				if slices.Contains(zeros, a.Arm) {
					metric.Samples[7] = 0
				}
				a.Result.Metrics["latency"] = metric
			}
			if got := l.Analyze().Gates[0]; got.Outcome != fixture.Inconclusive {
				t.Errorf("%s, %s: %s: %s", statistic, name, got.Outcome, got.Message)
			}
		}
	}
}

// On a machine that is so quiet that all trials of an arm are alike to a thousandth, two arms a little apart are no clock with two steps.
func TestClockStep_QuietMachineShowsNone(t *testing.T) {
	t.Parallel()
	for _, effect := range []float64{0.95, 0.98, 0.9998} {
		got := analyzed.AnalyzePair(t, fixture.Scenario{}, func(spec *fixture.RunSpec) { spec.Gates[0].Bound = "1.001" }, quietly(effect))
		if got.Verdict != fixture.Go || got.Ratios[0].Resolution != nil {
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

func TestClockStep_AllZeroReadingsAreInvalid(t *testing.T) {
	t.Parallel()
	atMost := func(spec *fixture.RunSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "5ms"}}
	}
	for name, c := range map[string]struct {
		old, new float64
		want     experiment.Verdict
		says     string
	}{
		"every arm reads 0":                       {0, 0, experiment.VerdictInvalid, "its clock is too coarse"},
		"the other arm shows a step of 10 ms":     {0.01, 0, fixture.Inconclusive, "spans the bound"},
		"the other arm shows a step of a hundred": {0.0001, 0, fixture.Go, "holds over"},
	} {
		t.Run(name, func(t *testing.T) {
			got := analyzed.AnalyzePair(t, fixture.Scenario{Trial: 0.01}, atMost, func(arm string, _ int) float64 {
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

// A histogram does not distinguish values in one bucket, which is about six per cent wide with one significant digit.
func TestHistogram_BucketsWidenIntervals(t *testing.T) {
	t.Parallel()
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
	// The candidate is slower by less than a bucket of one digit.
	const slower = 1.014
	for _, statistic := range []assayv1alpha1.Statistic{"p50", "p95", "median", "min", "max", "mean"} {
		for digits, sure := range map[int]bool{1: false, 3: true} {
			if testing.Short() && fixture.OmittedInShortForm(fmt.Sprint(statistic, digits)) {
				continue
			}
			gate := assayv1alpha1.Gate{Name: "same", Metric: "latency", Statistic: statistic, At: fixture.At8, Op: assayv1alpha1.RatioAtMost,
				Bound: "1.01"}
			l := analyzed.SimulateScan(t, 10, fixture.Machine{Seed: 3, Noise: fixture.Noise{Trial: 0.0002}, Seconds: fixture.SpeedUp(1 / slower)},
				fixture.WithGates(gate))
			for i := range l.Attempts {
				metrics := l.Attempts[i].Result.Metrics
				metrics["latency"] = &record.Metric{Unit: "s", Histogram: coarse(metrics["latency"].Samples, digits)}
			}
			found := l.Analyze().Gates[0]
			if *found.Estimate.Low > slower || *found.Estimate.High < slower || *found.Estimate.Low == *found.Estimate.High ||
				(found.Outcome == fixture.NoGo) != sure {
				t.Errorf("%s of %d digits: %s: %s", statistic, digits, found.Outcome, found.Message)
			}
		}
	}
}

// A time of 0 in a histogram is shorter than its unit by an unknown amount. A program that counts whole seconds has not shown that it takes
// less than 5 ms.
func TestHistogram_TimeOfZeroHasStepOfItsUnit(t *testing.T) {
	t.Parallel()
	type edit = func(*fixture.RunSpec, *fixture.TemplateSpec)
	level := func(statistic assayv1alpha1.Statistic, op assayv1alpha1.GateOperator, bound string) edit {
		return fixture.WithGates(assayv1alpha1.Gate{Name: "g", Metric: "latency", Statistic: statistic, At: fixture.At8, Op: op, Bound: bound})
	}
	rate := func(of edit) edit {
		return func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
			of(spec, template)
			template.Metrics[0].Unit, template.Metrics[0].Direction = "queries/s", assayv1alpha1.HigherIsBetter
		}
	}
	count := func(of edit) edit {
		return func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
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
			"a time below its unit":                   {level(statistic, assayv1alpha1.AtMost, "5ms"), "s", fixture.Inconclusive},
			"a time beyond its unit":                  {level(statistic, assayv1alpha1.AtMost, "2s"), "s", fixture.Go},
			"a rate below its unit":                   {rate(level(statistic, assayv1alpha1.AtLeast, "0.5")), "queries/s", fixture.Inconclusive},
			"a rate beyond its unit":                  {rate(level(statistic, assayv1alpha1.AtLeast, "2")), "queries/s", fixture.NoGo},
			"a count, which is known to the last one": {count(level(statistic, assayv1alpha1.AtMost, "0")), "faults", fixture.Go},
		} {
			if testing.Short() && fixture.OmittedInShortForm(string(statistic)+name) {
				continue
			}
			l := analyzed.SimulateScan(t, 10, fixture.Machine{Seed: 3, Noise: fixture.QuietNoise}, c.edit)
			for i := range l.Attempts {
				metrics := l.Attempts[i].Result.Metrics
				metrics["latency"] = &record.Metric{Unit: c.unit, Histogram: fixture.AsHistogram(t, make([]float64, len(metrics["latency"].Samples)))}
				metrics["latency"].Histogram.Scale = 1
			}
			if found := l.Analyze().Gates[0]; found.Outcome != c.want {
				t.Errorf("%s, %s: %s: %s", statistic, name, found.Outcome, found.Message)
			}
		}
	}
}

// TestNodes_WithFewBlocksCount counts wrong verdicts where the ratio depends on the node, and the truth is that over nodes: however the
// blocks are shared among them, and whether or not each says where it ran.
func TestNodes_WithFewBlocksCount(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
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
			exp := analyzed.SimulatePair(t, 1, nil)
			for run := range runs {
				ratio := map[string]float64{}
				for _, node := range nodes {
					if ratio[node] == 0 {
						ratio[node] = math.Exp(0.03 * random.NormFloat64())
					}
				}
				l := &analyzed.Run{Exp: exp.Exp, Waves: exp.Waves}
				l.Attempts = fixture.NewWorld(fixture.Scenario{Trial: 0.005}, 0, 31, uint64(run)).Run(exp.Exp, &exp.Waves[0])
				l.AssignNodes(t, nodes, ratio)
				if got := l.Analyze(); got.Verdict == fixture.Go || got.Verdict == fixture.NoGo {
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
func TestPercentile_NodesWithFewSamples(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	gate := assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p95", At: fixture.At8, Op: assayv1alpha1.RatioAtMost, Bound: "1.1",
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
				l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: uint64(seed), Noise: noise, Seconds: fixture.SpeedUp(1), Samples: 13},
					fixture.WithGates(gate))
				for i := range l.Attempts {
					a := &l.Attempts[i]
					node := string(rune('a' + fixture.BlockNumber(t, a)%2))
					a.Environment.Soft = map[string]any{"nodeName": node}
					if node == "b" && a.Arm == "fused-m4r" {
						for s := range a.Result.Metrics["latency"].Samples {
							a.Result.Metrics["latency"].Samples[s] *= c.slower
						}
					}
				}
				for _, ratio := range l.Analyze().Ratios {
					if ratio.Metric == "latency" && ratio.Statistic == "p95" && ratio.Candidate == gate.Candidate && ratio.Point == fixture.Point8 &&
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

// A timeout bounds times during a trial, in every unit. It does not bound CPU time, because a sleeping trial uses none.
func TestTimeout_CensorsElapsedTimesOnly(t *testing.T) {
	t.Parallel()
	// Every third trial is the last one of a visit, so that no trial follows it.
	timeout := func(l *analyzed.Run, arm string, every int) {
		seen := 0
		l.EachOf(arm, func(a *record.Attempt) {
			if seen++; seen%every == 0 {
				a.Outcome, a.ExitCode, a.Signal, a.Result, a.DurationSeconds = record.TimedOut, nil, ptr.To(9), nil, 300
				a.Resources = record.Resources{UserSeconds: ptr.To(0.1), SystemSeconds: ptr.To(0.0)}
			}
		})
	}
	of := func(metric, bound string) func(*fixture.RunSpec) {
		return func(spec *fixture.RunSpec) {
			spec.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: metric, Op: assayv1alpha1.RatioAtMost, Bound: bound}}
			fixture.CompletesGate("0.3", "")(spec)
		}
	}
	for name, c := range map[string]struct {
		metric string
		arm    string
		want   experiment.Verdict
	}{
		"a baseline that timed out did take as long":        {"process.wallTime", "old", fixture.Go},
		"a candidate that did is slower":                    {"process.wallTime", "new", fixture.NoGo},
		"a baseline that timed out used no CPU time for it": {"process.cpuTime", "old", fixture.Inconclusive},
		"a candidate that did has no CPU time to its name":  {"process.cpuTime", "new", fixture.Inconclusive},
		"nor time in user mode":                             {"process.userTime", "old", fixture.Inconclusive},
		"a baseline's own report need not include it":       {"time", "old", fixture.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 1, of(c.metric, "0.9"))
			for i := range l.Attempts {
				l.Attempts[i].Resources = record.Resources{UserSeconds: ptr.To(l.Attempts[i].DurationSeconds), SystemSeconds: ptr.To(0.01)}
			}
			timeout(l, c.arm, 3) // Half of the trials that count.
			if got := l.Analyze(); got.Verdict != c.want {
				t.Errorf("%s: %s\nwant %s", got.Verdict, got.Candidates[0].Reason, c.want)
			}
		})
	}
	for unit, scale := range map[string]float64{"s": 1, "ms": 1e3, "us": 1e6, "min": 1. / 60} {
		t.Run("a candidate that timed out meets no gate in "+unit, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.8, of("time", "1"))
			l.Exp.Plan.Metrics[0].Unit = unit
			for i := range l.Attempts {
				value := *l.Attempts[i].Result.Metrics["time"].Value
				l.Attempts[i].Result = &record.Result{Schema: record.ResultSchema, Workload: l.Attempts[i].Result.Workload,
					Metrics: map[string]*record.Metric{"time": {Unit: unit, Value: ptr.To(value * scale)}}}
			}
			timeout(l, "new", 15)
			got := l.Analyze()
			if got.Verdict == fixture.Go {
				t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
			}
			for _, arm := range got.Arms {
				// Two of the 20 trials that count took 300 s at least, and the others 0.8 s.
				want := (2*l.Exp.Plan.Workload.TimeoutSeconds + 18*0.8) / 20 * scale
				if arm.Arm == "new" && math.Abs(arm.Estimate.Value/want-1) > 0.05 {
					t.Errorf("the mean is %s, want about %g", analysis.Describe(&arm.Estimate), want)
				}
			}
		})
	}
}
