package judge_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// A ledger with missing or mislabelled objects would select the judged trials. It is reported, and no gate decides.
func TestEvidence_AlteredLedgerIsInconclusive(t *testing.T) {
	t.Parallel()
	without := func(numbers ...int) func(*testing.T, *analyzed.Run) {
		return func(t *testing.T, l *analyzed.Run) {
			l.Retain(func(a record.Attempt) bool { return !slices.Contains(numbers, fixture.BlockNumber(t, &a)) })
			l.Waves[0].Blocks = slices.DeleteFunc(slices.Clone(l.Waves[0].Blocks), func(b record.Block) bool {
				number, _ := record.BlockNumber(b.ID)
				return slices.Contains(numbers, number)
			})
		}
	}
	planless := func(spoil func(*testing.T, *analyzed.Run)) func(*testing.T, *analyzed.Run) {
		return func(t *testing.T, l *analyzed.Run) {
			spoil(t, l)
			l.Waves = nil
		}
	}
	nothing := func(*testing.T, *analyzed.Run) {}
	const contradicts = "waves/001/wave.json is missing, cannot be read or contradicts"
	warmups := func(t *testing.T, l *analyzed.Run) {
		for i := range l.Attempts {
			if a := &l.Attempts[i]; a.Arm == "new" && fixture.BlockNumber(t, a) < 2 && a.Slot > 0 && !a.Warmup {
				a.Warmup, a.Trial = true, record.TrialName(a.Block, a.Slot, true)
				a.ID = "simulated/" + a.Trial
				fixture.ScaleTime(a, 1.4)
			}
		}
	}
	copies := func(t *testing.T, l *analyzed.Run) {
		l.Retain(func(a record.Attempt) bool { return fixture.BlockNumber(t, &a) < 3 })
		for i, n := 0, len(l.Attempts); i < n; i++ {
			for block := fixture.BlockNumber(t, &l.Attempts[i]) + 3; block < 10; block += 3 {
				a := l.Attempts[i]
				a.Block = record.BlockName(0, block)
				a.Trial = record.TrialName(a.Block, a.Slot, false)
				a.ID = "simulated/" + a.Trial
				a.Source.Key = "attempts/" + a.Block + "/" + a.ID + ".json"
				l.Attempts = append(l.Attempts, a)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil  func(*testing.T, *analyzed.Run)
		want   experiment.Verdict
		reason string
	}{
		"nothing is left out":             {nothing, fixture.Go, ""},
		"nothing, and there is no plan":   {planless(nothing), fixture.Go, ""},
		"the last block of the plan":      {without(9), fixture.Inconclusive, "ran in 9 blocks and spec.design.blocks.min asks for at least 10"},
		"two blocks and their plans":      {without(3, 7), fixture.Inconclusive, "block 3 is missing"},
		"the first block and its plan":    {without(0), fixture.Inconclusive, "block 0 is missing"},
		"two blocks of a run without one": {planless(without(3, 7)), fixture.Inconclusive, "block 3 is missing"},
		"a later plan that cannot be read": {func(_ *testing.T, l *analyzed.Run) {
			l.Problems = []record.Problem{{Source: record.Source{Key: "waves/001/wave.json"}, Reason: "x"}}
		}, fixture.Inconclusive, contradicts},
		"slow trials that warm up": {planless(warmups), fixture.Inconclusive, "contradicts the experiment"},
		"nothing, and a second wave goes on": {
			func(t *testing.T, l *analyzed.Run) { l.AddWaveOf(t, record.Screen, 0.94, 10, 3) }, fixture.Go, "",
		},
		"two blocks whose numbers a second wave has again": {func(t *testing.T, l *analyzed.Run) {
			without(3, 7)(t, l)
			l.AddWaveOf(t, record.Screen, 0.94, 3, 5)
		}, fixture.Inconclusive, "block 3 is missing"},
		"two blocks at the end, and a second wave begins with another number": {func(t *testing.T, l *analyzed.Run) {
			without(8, 9)(t, l)
			l.AddWaveOf(t, record.Screen, 0.94, 7, 3)
		}, fixture.Inconclusive, "w001-b0007 is missing, cannot be read or contradicts"},
		"the same, of a run without a plan": {planless(func(t *testing.T, l *analyzed.Run) {
			without(8, 9)(t, l)
			l.AddWaveOf(t, record.Screen, 0.94, 7, 3)
		}), fixture.Inconclusive, "w001-b0007 is missing, cannot be read or contradicts"},
		"a second wave whose numbers come before those of the first": {func(t *testing.T, l *analyzed.Run) {
			without(0, 1, 2)(t, l)
			l.AddWaveOf(t, record.Screen, 0.94, 0, 3)
		}, fixture.Inconclusive, "block 0 is missing"},
		"three blocks, each several times": {planless(copies), fixture.Inconclusive, "one is a copy of the other"},
		"a bad wave that searches, in a run that searches nothing": {
			func(t *testing.T, l *analyzed.Run) { l.AddWave(t, record.Search, 1.2) }, fixture.Inconclusive, contradicts,
		},
		"a bad wave that confirms, in a run that confirms nothing": {
			func(t *testing.T, l *analyzed.Run) { l.AddWave(t, record.Confirm, 1.2) }, fixture.Inconclusive, contradicts,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			c.spoil(t, l)
			got := l.AnalyzeToWave9()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// The executed order counts, not the one in the design. If one arm always runs first, effects of the place and the arm are confounded.
func TestPlace_ExecutedOrderCounts(t *testing.T) {
	t.Parallel()
	places := func(of func(block int) []int, planned bool, order assayv1alpha1.Order) *analysis.Analysis {
		l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) { spec.Design.Order = order })
		for i := range l.Waves[0].Blocks {
			l.Waves[0].Blocks[i].Order = of(i)
		}
		l.Attempts = fixture.NewWorld(fixture.Scenario{Trial: 0.002}, math.Log(0.99), 1, 1).Run(l.Exp, &l.Waves[0])
		for i := range l.Attempts {
			fixture.ScaleTime(&l.Attempts[i], 1-0.02*float64(l.Attempts[i].Slot)) // Every trial is faster than the one before it.
		}
		if !planned {
			l.Waves = nil
		}
		return l.Analyze()
	}
	const baseline, candidate = "arm old ran before arm new in 10 of 10 blocks", "arm new ran before arm old in 10 of 10 blocks"
	always := func(order ...int) func(int) []int { return func(int) []int { return order } }
	forwards, backwards := []int{0, 0, 0, 1, 1, 1}, []int{1, 1, 1, 0, 0, 0}
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
		"the baseline always first, called ABBA":   {always(0, 0, 0, 1, 1, 1), assayv1alpha1.OrderABBA, fixture.Inconclusive, baseline},
		"the candidate always first, called ABBA":  {always(1, 1, 1, 0, 0, 0), assayv1alpha1.OrderABBA, fixture.Inconclusive, candidate},
		"the baseline always first, called Random": {always(0, 0, 0, 1, 1, 1), assayv1alpha1.OrderRandom, fixture.Inconclusive, baseline},
		"forwards and backwards":                   {turns(forwards, backwards), assayv1alpha1.OrderABBA, fixture.Go, ""},
		"in turns, called Random":                  {turns(forwards, backwards), assayv1alpha1.OrderRandom, fixture.Go, ""},
		"forwards and backwards, without visits": {always(0, 1, 1, 0), assayv1alpha1.OrderABBA, fixture.Inconclusive,
			"no trial of arm old in block w000-b0000 follows another trial of that arm"},
		"in turns, without visits": {turns([]int{0, 1}, []int{1, 0}), assayv1alpha1.OrderRandom, fixture.Inconclusive,
			"no trial of arm old in block w000-b0000 follows another trial of that arm"},
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

// A trial that gives fewer samples than its parameter fixes left some out, and slow ones are those that a program would.
func TestSamples_OmittedAreALoss(t *testing.T) {
	t.Parallel()
	gate := assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p95", At: fixture.At8, Op: assayv1alpha1.RatioAtMost,
		Bound:     "1.05",
		Candidate: "fused-m4r"}
	for name, c := range map[string]struct {
		spoil func(*analyzed.Run)
		want  experiment.Verdict
		says  string
	}{
		"all of them are there": {func(*analyzed.Run) {}, fixture.Go, ""},
		"the slowest three of 30 in each trial": {func(l *analyzed.Run) {
			l.EachOf("fused-m4r", func(a *record.Attempt) {
				samples := slices.Sorted(slices.Values(a.Result.Metrics["latency"].Samples))
				a.Result.Metrics["latency"].Samples = samples[:27]
			})
		}, fixture.NoGo, "latency has 27 samples and iterations fixes 30"},
		"one in one trial of the baseline": {func(l *analyzed.Run) {
			gate := slices.IndexFunc(l.Attempts, func(a record.Attempt) bool { return a.Arm == "loop" && !a.Warmup && a.Point == fixture.Point8 })
			latency := l.Attempts[gate].Result.Metrics["latency"]
			latency.Samples = latency.Samples[1:]
		}, fixture.Inconclusive, "the baseline does not complete"},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.2)},
				fixture.WithGates(gate))
			c.spoil(l)
			candidate := l.Analyze().Candidates[1]
			if candidate.Verdict != c.want || !strings.Contains(candidate.Reason, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", candidate.Verdict, candidate.Reason, c.want, c.says)
			}
		})
	}
}

// The origin of a trial's samples must not depend on its arm. A single value is an aggregate by the program, and an arm without a fixed
// number of samples may omit any.
func TestSamples_DifferentCompositionIsInconclusive(t *testing.T) {
	t.Parallel()
	gate := assayv1alpha1.Gate{Name: "gain", Metric: "latency", At: fixture.At8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05",
		Candidate: "fused-m4r"}
	aggregated := func(a *record.Attempt) {
		latency := a.Result.Metrics["latency"]
		least := slices.Min(latency.Samples)
		a.Result.Metrics["latency"] = &record.Metric{Unit: latency.Unit, Value: &least}
	}
	ownNumber := func(spec *fixture.RunSpec) { spec.Arms[2].Parameters["iterations"] = "40" }
	for name, c := range map[string]struct {
		edit  func(*fixture.RunSpec)
		spoil func(*analyzed.Run)
		want  experiment.Verdict
		says  string
	}{
		"all samples in all arms": {nil, nil, fixture.Go, ""},
		"a different single value in every trial": {nil, func(l *analyzed.Run) { l.EachOf("fused-m4r", aggregated) }, fixture.Inconclusive,
			`latency (samplesFrom: iterations) is computed from "one value" in 24 trials of arm fused-m4r, and of "all samples" in 24 trials of arm loop`},
		"one number of the baseline's":    {nil, func(l *analyzed.Run) { l.EachOf("loop", aggregated) }, fixture.Inconclusive, `of "one value" in 24 trials of arm loop`},
		"one number in one of its trials": {nil, func(l *analyzed.Run) { aggregated(l.LastOf("fused-m4r")) }, fixture.NoGo, "latency has 1 sample and iterations fixes 30"},
		"one number in its trials that the gate looks at, but for one": {nil, func(l *analyzed.Run) {
			one := true
			l.EachOf("fused-m4r", func(a *record.Attempt) {
				if a.Point == fixture.Point8 && one {
					one = false
				} else if a.Point == fixture.Point8 {
					aggregated(a)
				}
			})
		}, fixture.NoGo, "latency has 1 sample and iterations fixes 30"},
		"one number of all arms": {nil, func(l *analyzed.Run) {
			for _, arm := range []string{"loop", "fused-naive", "fused-m4r"} {
				l.EachOf(arm, aggregated)
			}
		}, fixture.Go, ""},
		"a fixed number of samples that it never has": {ownNumber, func(l *analyzed.Run) {
			l.EachOf("fused-m4r", func(a *record.Attempt) {
				latency := a.Result.Metrics["latency"]
				latency.Samples = latency.Samples[:min(30, len(latency.Samples))]
			})
		}, fixture.Inconclusive, `is computed from "30 samples of 40" in 24 trials of arm fused-m4r`},
		"a fixed number of samples that it has": {ownNumber, func(l *analyzed.Run) {
			l.EachOf("fused-m4r", func(a *record.Attempt) {
				latency := a.Result.Metrics["latency"]
				latency.Samples = slices.Concat(latency.Samples, latency.Samples)[:40]
			})
		}, fixture.Go, ""},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.2)}, func(
				spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(gate)(spec, template)
				if c.edit != nil {
					c.edit(spec)
				}
			})
			if c.spoil != nil {
				c.spoil(l)
			}
			candidate := l.Analyze().Candidates[1]
			if candidate.Verdict != c.want || !strings.Contains(candidate.Reason, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", candidate.Verdict, candidate.Reason, c.want, c.says)
			}
		})
	}
}

// A failure counts as a loss also in an execution that does not count and in a warm-up.
func TestLosses_FailuresOutsideOfTheComparisonCount(t *testing.T) {
	t.Parallel()
	crash := func(a *record.Attempt) {
		a.Outcome, a.ExitCode, a.Signal, a.Result = record.Failed, nil, ptr.To(11), nil
	}
	// again is a second execution of the blocks below a number, whose first one was lost before its last trial.
	again := func(t *testing.T, l *analyzed.Run, below int, arms ...string) {
		var second []record.Attempt
		for i := range l.Attempts {
			if a := l.Attempts[i]; fixture.BlockNumber(t, &a) < below {
				a.ID, a.StartedAt = "second/"+a.Trial, a.StartedAt.Add(time.Hour)
				a.Source.Key = "attempts/" + a.Block + "/" + a.ID + ".json"
				second = append(second, a)
				if slices.Contains(arms, a.Arm) {
					crash(&l.Attempts[i])
				}
			}
		}
		l.Retain(func(a record.Attempt) bool { return fixture.BlockNumber(t, &a) >= below || a.Slot < 5 })
		l.Attempts = append(l.Attempts, second...)
	}
	// warmedUp has a warm-up of every arm in every block.
	warmedUp := func(l *analyzed.Run, arms ...string) {
		for i := range l.Waves[0].Blocks {
			block := &l.Waves[0].Blocks[i]
			for slot, cell := range block.Warmup {
				arm := l.Exp.Arms[l.Exp.Cells[cell].Arm].Name
				at := slices.IndexFunc(l.Attempts, func(a record.Attempt) bool { return a.Block == block.ID && a.Arm == arm && !a.Warmup })
				a := l.Attempts[at]
				a.Warmup, a.Slot, a.Trial = true, slot, record.TrialName(block.ID, slot, true)
				a.ID = "simulated/" + a.Trial
				a.Source.Key = "attempts/" + a.Block + "/" + a.ID + ".json"
				if slices.Contains(arms, arm) {
					crash(&a)
				}
				l.Attempts = append(l.Attempts, a)
			}
		}
	}
	repeated := func(below int, arms ...string) func(*testing.T, *analyzed.Run) {
		return func(t *testing.T, l *analyzed.Run) {
			again(t, l, below, arms...)
			warmedUp(l)
		}
	}
	warming := func(arms ...string) func(*testing.T, *analyzed.Run) {
		return func(_ *testing.T, l *analyzed.Run) { warmedUp(l, arms...) }
	}
	const clean = "a second execution of blocks in which nothing failed"
	for name, c := range map[string]struct {
		spoil func(*testing.T, *analyzed.Run)
		want  experiment.Verdict
		says  string
	}{
		clean:                                    {repeated(5), fixture.Go, ""},
		"one in which the candidate had crashed": {repeated(5, "new"), fixture.Inconclusive, "failed in an execution that does not count"},
		"one in which both had":                  {repeated(2, "new", "old"), fixture.Go, ""},
		"warm-ups of the candidate that crash":   {warming("new"), fixture.Inconclusive, "10 failed in a warm-up"},
		"warm-ups of both that crash":            {warming("new", "old"), fixture.Go, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, func(spec *fixture.RunSpec) { spec.Design.WarmupTrials = 1 })
			c.spoil(t, l)
			got := l.Analyze()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.says)
			}
			if warned := strings.Contains(strings.Join(got.Warnings, "\n"), "failed in"); warned != (name != clean) {
				t.Errorf("warnings %q", got.Warnings)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// A load of a search is judged as a gate is, by every finding that takes a decision from one.
func TestSearch_GateCapsApply(t *testing.T) {
	t.Parallel()
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
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			exp := searchExperiment(t, c.edit)
			found := searchTo(t, exp, fixture.Machine{Seconds: served(capacity), Noise: fixture.QuietNoise}, c.damage)
			for _, got := range found.Search {
				if got.FeasibleMax != c.want[got.Arm] {
					t.Errorf("%s: %q is feasible (%s), want %q", got.Arm, got.FeasibleMax, got.Reason, c.want[got.Arm])
				}
			}
		})
	}
}

// The best of several is an answer as a gate's is: it holds with the trials that noise limits leave out, and of arms that lost alike.
func TestBest_GateCapsApply(t *testing.T) {
	t.Parallel()
	// Both candidates are far faster than the loop, and fused-m4r is a tenth faster than fused-naive.
	seconds := func(point record.Point, arm string) float64 {
		return fixture.ScanSeconds(point, "loop") / map[string]float64{"loop": 1, "fused-naive": 2, "fused-m4r": 2.2}[arm]
	}
	machine := fixture.Machine{Seed: 4, Noise: fixture.QuietNoise, Seconds: seconds}
	// measured changes every n-th measured trial of an arm.
	measured := func(l *analyzed.Run, arm string, every int, change func(a *record.Attempt)) {
		seen := 0
		l.EachOf(arm, func(a *record.Attempt) {
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
	percentile := func(spec *fixture.RunSpec) {
		spec.Gates = []assayv1alpha1.Gate{{
			Name: "tail", Metric: "latency", Statistic: assayv1alpha1.StatisticP95, At: fixture.At8, Op: assayv1alpha1.RatioAtMost, Bound: "0.9",
		}}
	}
	// slower slows fused-m4r down in some blocks by less than the baseline differs from one block to the next.
	slower := func(in func(block int) bool) func(l *analyzed.Run) {
		return func(l *analyzed.Run) {
			l.EachOf("fused-m4r", func(a *record.Attempt) {
				if in(fixture.BlockNumber(t, a)) {
					fixture.Neighbour{Slowdown: 1.05}.Disturb(a)
				}
			})
			l.EachOf("loop", func(a *record.Attempt) {
				fixture.Neighbour{Slowdown: 1 + 0.1*float64(fixture.BlockNumber(t, a)%4)}.Disturb(a)
			})
		}
	}
	for name, c := range map[string]struct {
		spoil func(l *analyzed.Run)
		edit  func(*fixture.RunSpec)
		want  []string
	}{
		"a tenth is enough": {nil, nil, []string{"fused-m4r"}},
		"but not with a third of its trials half as fast beside their own noise": {func(l *analyzed.Run) {
			for _, arm := range []string{"loop", "fused-naive", "fused-m4r"} {
				slowdown := map[bool]float64{true: 1.5, false: 1}[arm == "fused-m4r"]
				measured(l, arm, 3, func(a *record.Attempt) { fixture.Neighbour{Slowdown: slowdown, OtherWork: 0.5}.Disturb(a) })
			}
		}, nil, both},
		"nor where the one ran before the other in every block, and both took turns with the baseline": {func(l *analyzed.Run) {
			wave := &l.Waves[0]
			for i := range wave.Blocks {
				places := map[string]int{"fused-naive": 1, "fused-m4r": 2, "loop": i % 2 * 3}
				slices.SortStableFunc(wave.Blocks[i].Order, func(a, b int) int {
					x, y := wave.Cells[a], wave.Cells[b]
					return cmp.Or(x.Point-y.Point, places[wave.Arms[x.Arm].Name]-places[wave.Arms[y.Arm].Name])
				})
			}
			l.Attempts = machine.Run(l.Exp, wave)
		}, nil, both},
		"nor where the other lost trials, and the baseline half as many": {func(l *analyzed.Run) {
			measured(l, "fused-naive", 9, fail)
			measured(l, "loop", 19, fail)
		}, fixture.CompletesGate("0.7", ""), both},
		"where both lost as many it is enough": {func(l *analyzed.Run) {
			measured(l, "fused-naive", 19, fail)
			measured(l, "fused-m4r", 19, fail)
		}, fixture.CompletesGate("0.7", ""), []string{"fused-m4r"}},
		"nor where blocks two fifths slower may be there": {
			nil, func(spec *fixture.RunSpec) { spec.Design.RareSlowdown = "40%" }, both,
		},
		"nor in a percentile where its blocks are the slower the later, beside the other and not beside the baseline": {
			slower(func(block int) bool { return block >= 6 }), percentile, both,
		},
		"where as many are slower in turns it is enough": {
			slower(func(block int) bool { return block%2 == 0 }), percentile, []string{"fused-m4r"},
		},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 12, machine, func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("1.1"))(spec, template)
				if c.edit != nil {
					c.edit(spec)
				}
			})
			if c.spoil != nil {
				c.spoil(l)
			}
			got := l.Analyze()
			best := slices.Clone(got.BestOf)
			if got.Best != "" {
				best = []string{got.Best}
			}
			slices.Sort(best)
			if got.Verdict != fixture.Go || !slices.Equal(best, c.want) {
				t.Errorf("%s: the best are %q, want %q; %+v", got.Verdict, best, c.want, got.Candidates)
			}
		})
	}
}
