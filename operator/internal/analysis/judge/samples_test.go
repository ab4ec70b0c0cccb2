package judge_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/test/analyzed"

	"github.com/HdrHistogram/hdrhistogram-go"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// latencies gives every trial of the scan experiment new samples: number returns their count for the n-th trial of an arm, and factor
// their length relative to those of other trials.
func latencies(l *analyzed.Run, number func(arm string, n int) int, factor func(arm string, n int) float64) {
	random := rand.New(rand.NewPCG(3, 5))
	seen := map[string]int{}
	at := l.Attempts[0].StartedAt
	for i := range l.Attempts {
		a := &l.Attempts[i]
		n := seen[a.Arm+a.Point]
		seen[a.Arm+a.Point]++
		samples := make([]float64, number(a.Arm, n))
		sum := 0.0
		for j := range samples {
			samples[j] = 0.01 * factor(a.Arm, n) * math.Exp(0.05*random.NormFloat64())
			sum += samples[j]
		}
		a.Result.Metrics["latency"], a.Result.Phases = &record.Metric{Unit: "s", Samples: samples}, nil
		// Trials follow each other.
		a.StartedAt, a.DurationSeconds = at, sum
		at = at.Add(1e9).Add(secondsOf(sum))
	}
}

// A program chooses the number of samples of a trial, and whether it reports samples. No decision depends on it.
func TestSamples_NumberDecidesNothing(t *testing.T) {
	t.Parallel()
	const candidate = "fused-m4r"
	always := func(n int) func(string, int) int { return func(string, int) int { return n } }
	alike := func(string, int) float64 { return 1 }
	only := func(arm string, f func(n int) int) func(string, int) int {
		return func(of string, n int) int {
			if of == arm {
				return f(n)
			}
			return 30
		}
	}
	slower := func(by float64, slow func(n int) bool) func(string, int) float64 {
		return func(arm string, n int) float64 {
			if arm == candidate && slow(n) {
				return by
			}
			return 1
		}
	}
	even := func(n int) bool { return n%2 == 0 }
	// quarter selects a quarter of the trials that follow their own arm. A block has a warm-up and one visit, whose first trial does not
	// count.
	quarter := func(n int) bool { return n%8 == 2 }
	all := func(int) bool { return true }
	never := func(int) bool { return false }
	few := func(most int) func(n int) int {
		return func(n int) int {
			if even(n) {
				return 30
			}
			return most
		}
	}
	free := func(_ *fixture.RunSpec, template *fixture.TemplateSpec) { template.Metrics[0].SamplesFrom = "" }
	// Samplers that run for a second take more of a faster program's.
	adaptive := func(factor func(string, int) float64) func(string, int) int {
		random := rand.New(rand.NewPCG(7, 9))
		return func(arm string, n int) int { return int(100/factor(arm, n)) + random.IntN(4) }
	}
	faster := slower(0.8, all)
	slightly := slower(1.06, all)
	for name, c := range map[string]struct {
		edit      func(*fixture.RunSpec, *fixture.TemplateSpec)
		statistic assayv1alpha1.Statistic
		op        assayv1alpha1.GateOperator
		bound     string
		number    func(arm string, n int) int
		factor    func(arm string, n int) float64
		spoil     func(*analyzed.Run)
		want      experiment.Verdict
		says      string
	}{
		"as many as the parameter fixes": {statistic: "p95", number: always(30), factor: alike, want: fixture.Go},
		"a hundred times as many in its fast trials": {
			statistic: "p95", number: only(candidate, few(3000)), factor: slower(3, even), want: fixture.NoGo,
			says: "latency has 3000 samples and iterations fixes 30 (samplesFrom): those beyond outweigh other trials'",
		},
		"a hundred times as many in all of its trials": {
			statistic: "min", number: only(candidate, func(int) int { return 3000 }), factor: alike, want: fixture.NoGo, says: "latency has 3000 samples",
		},
		"more than the parameter fixes in all arms, of a ratio": {statistic: "median", number: always(31), factor: alike, want: fixture.Go},
		"fewer in all of its trials, of a level": {
			edit:      func(spec *fixture.RunSpec, _ *fixture.TemplateSpec) { spec.Arms[2].Parameters["iterations"] = "40" },
			statistic: "p90", op: assayv1alpha1.AtMost, bound: "15ms", number: only(candidate, func(int) int { return 30 }), factor: alike,
			want: fixture.Inconclusive, says: `latency of arm fused-m4r is computed from "30 samples of 40" in 24 trials, and iterations fixes the number`,
		},
		"fewer in all of its trials, of a level that is missed": {
			edit:      func(spec *fixture.RunSpec, _ *fixture.TemplateSpec) { spec.Arms[2].Parameters["iterations"] = "40" },
			statistic: "p90", op: assayv1alpha1.AtMost, bound: "5ms", number: only(candidate, func(int) int { return 30 }), factor: alike, want: fixture.NoGo,
		},
		"more in all of its trials, of a level": {
			edit:      func(spec *fixture.RunSpec, _ *fixture.TemplateSpec) { spec.Arms[2].Parameters["iterations"] = "40" },
			statistic: "p90", op: assayv1alpha1.AtMost, bound: "15ms", number: only(candidate, func(int) int { return 400 }), factor: alike,
			want: fixture.Inconclusive, says: `latency of arm fused-m4r is computed from "400 samples of 40" in 24 trials`,
		},
		"more than its fixed number in all of its trials, of a ratio": {
			edit:      func(spec *fixture.RunSpec, _ *fixture.TemplateSpec) { spec.Arms[2].Parameters["iterations"] = "40" },
			statistic: "p95", number: only(candidate, func(int) int { return 400 }), factor: alike,
			want: fixture.Inconclusive, says: `is computed from "400 samples of 40" in 24 trials of arm fused-m4r, and of "all samples" in 24 trials of arm loop`,
		},
		"one value in all of its trials, of a level": {
			statistic: "mean", op: assayv1alpha1.AtMost, bound: "15ms", number: always(30), factor: alike,
			spoil: func(l *analyzed.Run) { l.EachOf(candidate, aggregate(0)) }, want: fixture.Inconclusive, says: `is computed from "one value" in 24 trials`,
		},
		"one value where the parameter fixes one, of a level": {
			edit: func(spec *fixture.RunSpec, _ *fixture.TemplateSpec) {
				spec.Parameters = assayv1alpha1.ParameterValues{"iterations": "1"}
			},
			statistic: "mean", op: assayv1alpha1.AtMost, bound: "15ms", number: always(1), factor: alike,
			spoil: func(l *analyzed.Run) { l.EachOf(candidate, aggregate(0)) }, want: fixture.Go,
		},
		"all of them, of a level": {statistic: "p90", op: assayv1alpha1.AtMost, bound: "15ms", number: always(30), factor: alike, want: fixture.Go},

		"nothing fixes how many, and there are as many": {edit: free, statistic: "p95", number: always(30), factor: alike, want: fixture.Go},
		"a hundred times as many in its fast trials, and nothing fixes how many": {
			edit: free, statistic: "p95", number: only(candidate, few(3000)), factor: slower(3, even), want: fixture.Inconclusive,
			says: "with equal weights per trial it is ",
		},
		"the same, of a level": {
			edit: free, statistic: "p95", op: assayv1alpha1.AtMost, bound: "15ms", number: only(candidate, few(3000)), factor: slower(3, even),
			want: fixture.Inconclusive, says: "with equal weights per trial it is ",
		},
		"an arm that is slower in few trials, of which there are few samples": {
			edit: free, statistic: "p90", number: only(candidate, func(n int) int {
				if quarter(n) {
					return 5
				}
				return 300
			}), factor: slower(2, quarter), want: fixture.Inconclusive, says: "with equal weights per trial it is ",
		},
		"a hundred times as many in all trials of an arm, of its minimum": {
			edit: free, statistic: "min", bound: "0.99", number: only(candidate, func(int) int { return 3000 }), factor: alike, want: fixture.Inconclusive,
			says: `latency is computed from "3000 samples" in 24 trials of arm fused-m4r, and of "30 samples" in 24 trials of arm loop`,
		},
		"in some of them": {
			edit: free, statistic: "min", bound: "1.02", number: only(candidate, func(n int) int { return 30 + 270*(n%12/11) }), factor: alike,
			want: fixture.Inconclusive, says: `"30 samples" in 21 trials and "300 samples" in 3 trials`,
		},
		"an adaptive sampler, of a mean":       {edit: free, statistic: "mean", bound: "0.9", number: adaptive(faster), factor: faster, want: fixture.Go},
		"an adaptive sampler, of a median":     {edit: free, statistic: "median", bound: "0.9", number: adaptive(faster), factor: faster, want: fixture.Go},
		"an adaptive sampler, of a percentile": {edit: free, statistic: "p95", bound: "0.9", number: adaptive(faster), factor: faster, want: fixture.Go},
		"an adaptive sampler of a slower program": {
			edit: free, statistic: "p95", bound: "1", number: adaptive(slightly), factor: slightly, want: fixture.NoGo,
		},
		"one value, its largest": {
			edit: free, statistic: "max", bound: "1", number: always(30), factor: slower(1.05, all),
			spoil: func(l *analyzed.Run) { l.EachOf(candidate, aggregate(0)) }, want: fixture.Invalid,
			says: `the shape of metric latency is "one value" in the results of arm fused-m4r and "samples" in those of arm loop`,
		},
		"one value in some of its trials, of its mean": {
			edit: free, statistic: "mean", number: always(30), factor: slower(1, never),
			spoil: func(l *analyzed.Run) { l.EachOf(candidate, aggregate(20)) }, want: fixture.Inconclusive, says: `is computed from "one value" in `,
		},
		"one value in some of its trials, of a level": {
			edit: free, statistic: "max", op: assayv1alpha1.AtMost, bound: "15ms", number: always(30), factor: alike,
			spoil: func(l *analyzed.Run) { l.EachOf(candidate, aggregate(20)) }, want: fixture.Inconclusive, says: `is computed from "one value" in `,
		},
		"a histogram where the baseline has samples": {
			edit: free, statistic: "p95", number: always(30), factor: alike, spoil: func(l *analyzed.Run) { l.EachOf(candidate, histogram) },
			want: fixture.Inconclusive, says: `is computed from "samples in a histogram" in 24 trials of arm fused-m4r, and of "samples" in 24 trials of arm loop`,
		},
		"histograms of all arms": {
			edit: free, statistic: "p95", number: always(30), factor: alike, spoil: func(l *analyzed.Run) {
				for _, arm := range l.Exp.Arms {
					l.EachOf(arm.Name, histogram)
				}
			}, want: fixture.Go,
		},
		"one value of all arms": {
			edit: free, statistic: "mean", number: always(30), factor: alike, spoil: func(l *analyzed.Run) {
				for _, arm := range l.Exp.Arms {
					l.EachOf(arm.Name, aggregate(0))
				}
			}, want: fixture.Go,
		},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			gate := assayv1alpha1.Gate{Name: "gate", Metric: "latency", Statistic: c.statistic, At: fixture.At8, Op: cmp.Or(c.op,
				assayv1alpha1.RatioAtMost),
				Bound: cmp.Or(c.bound, "1.05"), Candidate: candidate}
			l := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1)}, func(
				spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(gate)(spec, template)
				if c.edit != nil {
					c.edit(spec, template)
				}
			})
			latencies(l, c.number, c.factor)
			if c.spoil != nil {
				c.spoil(l)
			}
			got := l.Analyze()
			if at := got.Candidates[1]; at.Verdict != c.want || !strings.Contains(at.Reason, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", at.Verdict, at.Reason, c.want, c.says)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// aggregate replaces the samples by one value, in all blocks except the first of the given number of slots.
func aggregate(fromSlot int) func(*record.Attempt) {
	return func(a *record.Attempt) {
		latency := a.Result.Metrics["latency"]
		if a.Slot < fromSlot {
			return
		}
		sum := 0.0
		for _, sample := range latency.Samples {
			sum += sample
		}
		a.Result.Metrics["latency"] = &record.Metric{Unit: latency.Unit, Value: ptr.To(sum / float64(len(latency.Samples)))}
	}
}

// histogram makes a histogram of the samples.
func histogram(a *record.Attempt) {
	latency := a.Result.Metrics["latency"]
	h := hdrhistogram.New(1, 1e9, 3)
	for _, sample := range latency.Samples {
		if err := h.RecordValue(int64(sample * 1e6)); err != nil {
			panic(err)
		}
	}
	data, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	a.Result.Metrics["latency"] = &record.Metric{Unit: latency.Unit, Histogram: &record.Histogram{
		Data: string(data), Count: h.TotalCount(), Scale: 1e-6,
	}}
}

// A load is not found feasible by samples that are left out in every trial.
func TestSearch_MissingSamplesAreUncertain(t *testing.T) {
	t.Parallel()
	exp := searchExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Search.SubjectTo = []assayv1alpha1.Constraint{{Metric: "latency", Statistic: "max", Op: assayv1alpha1.AtMost, Bound: "4ms"}}
	})
	for name, c := range map[string]struct {
		drop     bool
		feasible string
	}{"they are all there": {false, "200"}, "the slow one is left out": {true, ""}} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.Machine{
				Noise: fixture.Noise{Block: 0.01, Arm: 0.01}, Seconds: served(map[string]float64{"loop": 300, "fused-m4r": 700}),
			}
			found := searchTo(t, exp, machine, func(a *record.Attempt) {
				latency := a.Result.Metrics["latency"]
				latency.Samples[7] *= 3
				if c.drop {
					latency.Samples = slices.Delete(latency.Samples, 7, 8)
				}
			})
			if got := found.Search[1]; got.FeasibleMax != c.feasible {
				t.Errorf("%s meets every constraint (%s), want %q", got.FeasibleMax, got.Reason, c.feasible)
			}
		})
	}
}

func secondsOf(seconds float64) time.Duration { return time.Duration(seconds * 1e9) }

// The best of two candidates is so by figures that are made of the same, whichever gates made both Go.
func TestBest_NeedsEqualSamples(t *testing.T) {
	t.Parallel()
	even := func(n int) bool { return n%2 == 0 }
	for name, c := range map[string]struct {
		statistic assayv1alpha1.Statistic
		number    func(arm string, n int) int
		slower    float64 // In half of the trials of the faster candidate.
		spoil     func(*analyzed.Run)
		best      string
	}{
		"the means of both are of samples":       {"mean", func(string, int) int { return 30 }, 1, nil, "fused-m4r"},
		"one mean is the program's own":          {"mean", func(string, int) int { return 30 }, 1, func(l *analyzed.Run) { l.EachOf("fused-m4r", aggregate(0)) }, ""},
		"the percentiles are of as many samples": {"p95", func(string, int) int { return 30 }, 1, nil, "fused-m4r"},
		"one is slower in the trials with few samples": {"p95", func(arm string, n int) int {
			if arm == "fused-m4r" && !even(n) {
				return 3000
			}
			return 30
		}, 2, nil, ""},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1)}, func(
				spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", Statistic: c.statistic, At: fixture.At8,
					Op: assayv1alpha1.AtMost, Bound: "1s"})(spec,
					template)
				template.Metrics[0].SamplesFrom = ""
			})
			latencies(l, c.number, func(arm string, n int) float64 {
				switch {
				case arm != "fused-m4r":
					return 1
				case even(n):
					return 0.8 * c.slower
				default:
					return 0.8
				}
			})
			if c.spoil != nil {
				c.spoil(l)
			}
			if got := l.Analyze(); got.Verdict != fixture.Go || got.Best != c.best {
				t.Errorf("%s, best %q of %q, want %q", got.Verdict, got.Best, got.BestOf, c.best)
			}
		})
	}
}
