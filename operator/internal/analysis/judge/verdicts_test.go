package judge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

func TestJudge_Verdicts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		edit    func(*fixture.RunSpec, *fixture.TemplateSpec)
		seconds func(record.Point, string) float64
		noise   fixture.Noise
		blocks  int
		tamper  func(*analyzed.Run)
		verdict experiment.Verdict
		best    string
		bestOf  string
		arms    fixture.Verdicts
		reason  string // Part of the reason of fused-m4r.
		without string // Part of no warning.
		warning string // Part of some warning.
	}{
		"the fast candidate is Go and best, the slow one is NoGo, the run is Go": {
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, reason: "all 8 blocking gates hold",
		},
		"a gain clearly below the bound is NoGo": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")), seconds: fixture.SpeedUp(1.3),
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "missed over the whole interval",
		},
		"a gain whose interval spans the bound is Inconclusive and says how many blocks it takes": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")), seconds: fixture.SpeedUp(1.5), noise: fixture.Noise{Block: 0.05, Arm: 0.05, Trial: 0.05, Sample: 0.01},
			verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive}, reason: "further blocks would decide",
		},
		"a regression within its allowance is Go by the upper end": {
			edit:    fixture.WithGates(assayv1alpha1.Gate{Name: "slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}),
			seconds: fixture.SpeedUp(1 / 1.02), verdict: fixture.Go, bestOf: "fused-m4r or fused-naive", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.Go},
		},
		"a regression beyond its allowance is NoGo": {
			edit:    fixture.WithGates(assayv1alpha1.Gate{Name: "slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}),
			seconds: fixture.SpeedUp(1 / 1.2), verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo},
		},
		"a regression whose interval spans the allowance is Inconclusive": {
			edit:    fixture.WithGates(assayv1alpha1.Gate{Name: "slower", Metric: "latency", At: fixture.At8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}),
			seconds: fixture.SpeedUp(1 / 1.05), noise: fixture.Noise{Block: 0.05, Arm: 0.05, Trial: 0.05, Sample: 0.01},
			verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive}, reason: "the interval spans the bound",
		},
		"an absolute gate with two blocks is Invalid": {
			edit: fixture.WithGates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: fixture.At8, Op: assayv1alpha1.AtMost, Bound: "20ms"}), blocks: 2,
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.Invalid, "fused-naive": fixture.Invalid}, reason: "2 of at least 3 blocks",
		},
		"a p95 gate is judged on merged samples": {
			edit:    fixture.WithGates(assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p95", At: fixture.At8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}),
			seconds: fixture.SpeedUp(1), verdict: fixture.Go, bestOf: "fused-m4r or fused-naive", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.Go}, reason: "its blocking gate holds",
		},
		"a p99 gate without a thousand samples is Invalid": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p99", At: fixture.At8, Op: assayv1alpha1.RatioAtMost,
					Bound: "1.05"})(spec, template)
				template.Metrics[0].SamplesFrom = ""
			},
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.Invalid, "fused-naive": fixture.Invalid}, reason: "p99 needs at least 1000 samples of each arm and there are 480 and 480",
		},
		"an absolute gate reads its bound in the metric's base unit": {
			edit:    fixture.WithGates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: fixture.At8, Op: assayv1alpha1.AtMost, Bound: "20ms"}),
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo},
		},
		"an absolute percentile gate works too": {
			edit:    fixture.WithGates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", Statistic: "p95", At: fixture.At8, Op: assayv1alpha1.AtMost, Bound: "20ms"}),
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo},
		},
		"an advisory gate never decides": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				advisory := fixture.GainAt8("100")
				advisory.Name, advisory.Severity = "dream", assayv1alpha1.Advisory
				fixture.WithGates(fixture.GainAt8("1.5"), advisory)(spec, template)
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo},
		},
		"a run with advisory gates only has no verdict": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				advisory := fixture.GainAt8("1.5")
				advisory.Severity = assayv1alpha1.Advisory
				fixture.WithGates(advisory)(spec, template)
			},
			arms: fixture.Verdicts{"fused-m4r": "", "fused-naive": ""}, reason: "no blocking gate applies",
		},
		"a run without gates has results and no verdict": {
			edit: fixture.WithGates(), arms: fixture.Verdicts{"fused-m4r": "", "fused-naive": ""},
		},
		"a gate for one candidate leaves the other without a verdict": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				one := fixture.GainAt8("1.5")
				one.Candidate = "fused-m4r"
				fixture.WithGates(one)(spec, template)
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": ""},
		},
		"a run with one arm is judged by absolute gates": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				spec.Arms = []assayv1alpha1.Arm{{Name: "fused-m4r", Parameters: assayv1alpha1.ParameterValues{"strategy": "fused-m4r"}}}
				fixture.WithGates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: fixture.At8, Op: assayv1alpha1.AtMost, Bound: "20ms"})(spec,
					template)
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go},
		},
		"of candidates that absolute gates call Go the one that gains most over the baseline is best, not the first": {
			edit: fixture.WithGates(
				assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual},
				assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: fixture.At8, Op: assayv1alpha1.AtMost, Bound: "10s"},
			),
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.Go},
		},
		"an output that differs is NoGo however fast it is, and its times are not looked at": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
			},
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "gives another output than the baseline", warning: "outputs differ",
		},
		"one differing output among many is NoGo": {
			edit:    fixture.WithGates(fixture.GainAt8("1.5")),
			tamper:  func(l *analyzed.Run) { l.LastOf("fused-m4r").Result.Parity.Digest = strings.Repeat("ab", 32) },
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "disagrees with itself",
		},
		"outputs over another number of items differ": {
			edit:    fixture.WithGates(fixture.GainAt8("1.5")),
			tamper:  func(l *analyzed.Run) { l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Items++ }) },
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "another output",
		},
		"a baseline that disagrees with itself makes everything Invalid": {
			tamper:  func(l *analyzed.Run) { l.LastOf("loop").Result.Parity.Digest = strings.Repeat("ab", 32) },
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.Invalid, "fused-naive": fixture.Invalid}, reason: "arm loop disagrees with itself", warning: "outputs differ",
		},
		"the outputs of arms with different inputs are not compared, with a warning": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("1.5"))(spec, template)
				spec.Parity = assayv1alpha1.ParityPerArm
			},
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "the arms have different inputs",
		},
		"an arm with different inputs must have equal outputs in all trials": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("1.5"))(spec, template)
				spec.Parity = assayv1alpha1.ParityPerArm
			},
			tamper:  func(l *analyzed.Run) { l.LastOf("fused-m4r").Result.Parity.Digest = strings.Repeat("ab", 32) },
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "disagrees with itself",
		},
		"outputs that may differ are not compared": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("1.5"))(spec, template)
				template.Parity = assayv1alpha1.ParityNone
			},
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo},
		},
		"fewer than three paired blocks are Invalid": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")), blocks: 2,
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.Invalid, "fused-naive": fixture.Invalid}, reason: "2 of at least 3 blocks",
		},
		"no attempt at all is Invalid": {
			tamper:  func(l *analyzed.Run) { l.Attempts = nil },
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.Invalid, "fused-naive": fixture.Invalid}, reason: "has no output",
		},
		"a candidate that always fails is NoGo, says why, and does not spoil the other": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-naive", func(a *record.Attempt) {
					a.Outcome, a.Result, a.Message, a.ExitCode = record.Failed, nil, "exit status 3", ptr.To(3)
				})
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "arm fused-naive lost 96 of 96 trials (96 failed), first w000-b0000-s00001",
		},
		"NoGo and Invalid together are Invalid, not NoGo": {
			edit: fixture.WithGates(fixture.GainAt8("100")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-naive", func(a *record.Attempt) { a.Outcome, a.Result = record.NotStarted, nil })
			},
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.Invalid},
		},
		"a candidate whose rate is 0 in every trial has the ratio 0": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) {
					a.Result.Metrics["throughput"] = &record.Metric{Unit: "queries/s", Value: ptr.To(0.0)}
				})
			},
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "throughput is 0 in every trial of arm fused-m4r and above 0 in every trial of arm loop",
		},
		"a metric in another unit is excluded, never converted": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) {
					a.Result.Metrics["latency"] = &record.Metric{Unit: "ms", Samples: []float64{1}}
				})
			},
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.Invalid, "fused-naive": fixture.NoGo},
			reason: `the unit of metric latency is "ms" in the results of arm fused-m4r and "s" in those of arm loop`, warning: "reporting something that cannot be used",
		},
		"a metric that is missing is a failure": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) { delete(a.Result.Metrics, "throughput") })
			},
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "metric throughput is absent", warning: "arm fused-m4r lost 96 of 96 trials",
		},
		"an optional metric may be missing, but a gate that needs it fails": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("1.5"))(spec, template)
				for i := range template.Metrics {
					template.Metrics[i].Optional = true
				}
			},
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) { delete(a.Result.Metrics, "throughput") })
			},
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "24 unusable", without: "metric throughput has no",
		},
		"a result without a parity digest does not count": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Parity = nil })
			},
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, warning: "reporting something",
		},
		"more than the machine can do raises a warning": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Ceilings[0].Achieved = ptr.To(80e9) })
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "arm fused-m4r claims 125 % of the ceiling readBandwidth",
		},
		"a limit is named with the instructions and the threads that it was measured with": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) {
					ceiling := &a.Result.Ceilings[0]
					ceiling.Achieved, ceiling.Instructions, ceiling.Threads = ptr.To(80e9), "avx2", 2
				})
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "the ceiling readBandwidth (avx2, 2 threads)",
		},
		"phases that do not add up raise a warning": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				l.EachOf("loop", func(a *record.Attempt) { a.Result.Phases = a.Result.Phases[1:] })
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "the phases of arm loop add up to 90 % of latency",
		},
		"an axis without effect raises a warning": {
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "the axis pendingDelta (0, 1) has no measurable effect",
		},
		"a prediction missed by more than a factor of two raises a warning": {
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "throughput of fused-m4r at batchSize=8,pendingDelta=0: predicted 1.500x, measured 6.500x [6.457, 6.543]: 4.3 times",
		},
		"a change in the other direction than predicted raises a warning": {
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "the effect has the opposite direction",
		},
		"attempts that did not have their CPUs to themselves raise a warning": {
			edit: fixture.WithGates(fixture.GainAt8("1.5")),
			tamper: func(l *analyzed.Run) {
				for i := range l.Attempts {
					if a := &l.Attempts[i]; fixture.BlockNumber(t, a) == 3 {
						a.Isolation.Level = "Shared"
					}
				}
			},
			verdict: fixture.Go, best: "fused-m4r", arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.NoGo}, warning: "of 288 attempts used 36 had isolation Shared",
		},
	}
	for name, c := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			noise, blocks := c.noise, c.blocks
			if noise == (fixture.Noise{}) {
				noise = fixture.QuietNoise
			}
			if blocks == 0 {
				blocks = 8
			}
			l := analyzed.SimulateScan(t, blocks, fixture.Machine{Seed: 1, Noise: noise, Seconds: c.seconds}, c.edit)
			if c.tamper != nil {
				c.tamper(l)
			}
			got := l.Analyze()
			for _, gate := range got.Gates {
				if e := gate.Estimate; e != nil && e.Value == 0 && e.Low == nil {
					t.Errorf("gate %s of %s says %q and shows an estimate of 0", gate.Gate, gate.Candidate, gate.Message)
				}
			}

			arms := fixture.Verdicts{}
			reason := ""
			for _, candidate := range got.Candidates {
				arms[candidate.Name] = candidate.Verdict
				if candidate.Name == "fused-m4r" {
					reason = candidate.Reason
				}
			}
			if diff := cmp.Diff(c.arms, arms); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
			if c.bestOf != "" && (got.Best != "" || got.BestText() != c.bestOf) {
				t.Errorf("best %q of %q, want %q", got.Best, got.BestOf, c.bestOf)
			}
			if got.Verdict != c.verdict || got.Best != c.best {
				t.Errorf("verdict %q, best %q; want %q, %q", got.Verdict, got.Best, c.verdict, c.best)
			}
			if !strings.Contains(reason, c.reason) {
				t.Errorf("reason %q, want one with %q", reason, c.reason)
			}
			said := slices.Concat(got.Warnings, got.Notes)
			if !slices.ContainsFunc(said, func(w string) bool { return strings.Contains(w, c.warning) }) && c.warning != "" {
				t.Errorf("warnings %q, want one with %q", got.Warnings, c.warning)
			}
			if slices.ContainsFunc(said, func(w string) bool { return strings.Contains(w, c.without) }) && c.without != "" {
				t.Errorf("warnings %q, want none with %q", got.Warnings, c.without)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}
