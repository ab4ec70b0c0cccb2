package analyze

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

var update = flag.Bool("update", false, "write the golden files")

type (
	runSpec      = assayv1alpha1.BenchmarkRunSpec
	templateSpec = assayv1alpha1.BenchmarkTemplateSpec
	verdicts     = map[string]experiment.Verdict
)

const (
	goes         = experiment.VerdictGo
	noGo         = experiment.VerdictNoGo
	inconclusive = experiment.VerdictInconclusive
	invalid      = experiment.VerdictInvalid
)

var quiet = fixture.Noise{Block: 0.02, Arm: 0.003, Trial: 0.003, Sample: 0.01}

// simulatedRun is a run, ready to be tampered with.
type simulatedRun struct {
	exp      *experiment.Experiment
	waves    []record.Wave
	attempts []record.Attempt
	problems []record.Problem
}

func (l *simulatedRun) analyze() *analysis.Analysis {
	return ours(Evidence(l.exp, record.Evidence{Waves: l.waves, Attempts: l.attempts, Problems: l.problems}, 0))
}

// ours demands of whatever a ledger says that it is read again.
func ours(result *analysis.Analysis) *analysis.Analysis {
	if err := result.Validate(); err != nil {
		panic(err)
	}
	return result
}

// each applies a change to the attempts of an arm.
func (l *simulatedRun) each(arm string, change func(attempt *record.Attempt)) {
	for i := range l.attempts {
		if l.attempts[i].Arm == arm {
			change(&l.attempts[i])
		}
	}
}

// keepOnly drops the attempts that do not match.
func (l *simulatedRun) keepOnly(keep func(attempt record.Attempt) bool) {
	l.attempts = slices.DeleteFunc(l.attempts, func(a record.Attempt) bool { return !keep(a) })
}

// simulated runs the scan experiment on a machine.
func simulated(t testing.TB, blocks int, machine fixture.Machine, edit func(*runSpec, *templateSpec)) *simulatedRun {
	t.Helper()
	exp, err := fixture.ScanExperiment(edit)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	if err != nil {
		t.Fatal(err)
	}
	if machine.Seconds == nil {
		machine.Seconds = fixture.ScanSeconds
	}
	return &simulatedRun{exp: exp, waves: []record.Wave{*wave}, attempts: machine.Run(exp, wave)}
}

func gates(gates ...assayv1alpha1.Gate) func(*runSpec, *templateSpec) {
	return func(spec *runSpec, _ *templateSpec) { spec.Gates, spec.Predictions = gates, nil }
}

// factor makes every candidate faster than the loop by a factor, everywhere.
func factor(by float64) func(record.Point, string) float64 {
	return func(point record.Point, arm string) float64 {
		if arm == "loop" {
			return fixture.ScanSeconds(point, arm)
		}
		return fixture.ScanSeconds(point, "loop") / by
	}
}

var at8 = assayv1alpha1.ParameterValues{"batchSize": "8", "pendingDelta": "0"}

func gainAt8(bound string) assayv1alpha1.Gate {
	return assayv1alpha1.Gate{Name: "gain", Metric: "throughput", At: at8, Op: assayv1alpha1.RatioAtLeast, Bound: bound}
}

func TestVerdicts(t *testing.T) {
	cases := map[string]struct {
		edit    func(*runSpec, *templateSpec)
		seconds func(record.Point, string) float64
		noise   fixture.Noise
		blocks  int
		tamper  func(*simulatedRun)
		verdict experiment.Verdict
		best    string
		bestOf  string
		arms    verdicts
		reason  string // Part of the reason of fused-m4r.
		without string // Part of no warning.
		warning string // Part of some warning.
	}{
		"the fast candidate is Go and best, the slow one is NoGo, the run is Go": {
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, reason: "all 8 blocking gates hold",
		},
		"a gain clearly below the bound is NoGo": {
			edit: gates(gainAt8("1.5")), seconds: factor(1.3),
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: "missed over the whole interval",
		},
		"a gain whose interval spans the bound is Inconclusive and says how many blocks it takes": {
			edit: gates(gainAt8("1.5")), seconds: factor(1.5), noise: fixture.Noise{Block: 0.05, Arm: 0.05, Trial: 0.05, Sample: 0.01},
			verdict: inconclusive, arms: verdicts{"fused-m4r": inconclusive, "fused-naive": inconclusive}, reason: "further blocks would decide",
		},
		"a regression within its allowance is Go by the upper end": {
			edit:    gates(assayv1alpha1.Gate{Name: "slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}),
			seconds: factor(1 / 1.02), verdict: goes, bestOf: "fused-m4r or fused-naive", arms: verdicts{"fused-m4r": goes, "fused-naive": goes},
		},
		"a regression beyond its allowance is NoGo": {
			edit:    gates(assayv1alpha1.Gate{Name: "slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}),
			seconds: factor(1 / 1.2), verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo},
		},
		"a regression whose interval spans the allowance is Inconclusive": {
			edit:    gates(assayv1alpha1.Gate{Name: "slower", Metric: "latency", At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}),
			seconds: factor(1 / 1.05), noise: fixture.Noise{Block: 0.05, Arm: 0.05, Trial: 0.05, Sample: 0.01},
			verdict: inconclusive, arms: verdicts{"fused-m4r": inconclusive, "fused-naive": inconclusive}, reason: "the interval spans the bound",
		},
		"an absolute gate with two blocks is Invalid": {
			edit: gates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: at8, Op: assayv1alpha1.AtMost, Bound: "20ms"}), blocks: 2,
			verdict: invalid, arms: verdicts{"fused-m4r": invalid, "fused-naive": invalid}, reason: "2 of at least 3 blocks",
		},
		"a p95 gate is judged on merged samples": {
			edit:    gates(assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p95", At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}),
			seconds: factor(1), verdict: goes, bestOf: "fused-naive or fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": goes}, reason: "its blocking gate holds",
		},
		"a p99 gate without a thousand samples is Invalid": {
			edit: func(spec *runSpec, template *templateSpec) {
				gates(assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: "p99", At: at8, Op: assayv1alpha1.RatioAtMost,
					Bound: "1.05"})(spec, template)
				template.Metrics[0].SamplesFrom = ""
			},
			verdict: invalid, arms: verdicts{"fused-m4r": invalid, "fused-naive": invalid}, reason: "p99 needs at least 1000 samples of each arm and there are 480 and 480",
		},
		"an absolute gate reads its bound in the metric's base unit": {
			edit:    gates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: at8, Op: assayv1alpha1.AtMost, Bound: "20ms"}),
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo},
		},
		"an absolute percentile gate works too": {
			edit:    gates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", Statistic: "p95", At: at8, Op: assayv1alpha1.AtMost, Bound: "20ms"}),
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo},
		},
		"an advisory gate never decides": {
			edit: func(spec *runSpec, template *templateSpec) {
				advisory := gainAt8("100")
				advisory.Name, advisory.Severity = "dream", assayv1alpha1.Advisory
				gates(gainAt8("1.5"), advisory)(spec, template)
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo},
		},
		"a run with advisory gates only has no verdict": {
			edit: func(spec *runSpec, template *templateSpec) {
				advisory := gainAt8("1.5")
				advisory.Severity = assayv1alpha1.Advisory
				gates(advisory)(spec, template)
			},
			arms: verdicts{"fused-m4r": "", "fused-naive": ""}, reason: "no blocking gate applies",
		},
		"a run without gates has results and no verdict": {
			edit: gates(), arms: verdicts{"fused-m4r": "", "fused-naive": ""},
		},
		"a gate for one candidate leaves the other without a verdict": {
			edit: func(spec *runSpec, template *templateSpec) {
				one := gainAt8("1.5")
				one.Candidate = "fused-m4r"
				gates(one)(spec, template)
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": ""},
		},
		"a run with one arm is judged by absolute gates": {
			edit: func(spec *runSpec, template *templateSpec) {
				spec.Arms = []assayv1alpha1.Arm{{Name: "fused-m4r", Parameters: assayv1alpha1.ParameterValues{"strategy": "fused-m4r"}}}
				gates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: at8, Op: assayv1alpha1.AtMost, Bound: "20ms"})(spec, template)
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes},
		},
		"of candidates that absolute gates call Go the one that gains most over the baseline is best, not the first": {
			edit: gates(
				assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual},
				assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: at8, Op: assayv1alpha1.AtMost, Bound: "10s"},
			),
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": goes},
		},
		"an output that differs is NoGo however fast it is, and its times are not looked at": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
			},
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: "gives another output than the baseline", warning: "outputs differ",
		},
		"one differing output among many is NoGo": {
			edit:    gates(gainAt8("1.5")),
			tamper:  func(l *simulatedRun) { l.lastOf("fused-m4r").Result.Parity.Digest = strings.Repeat("ab", 32) },
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: "disagrees with itself",
		},
		"outputs over another number of items differ": {
			edit:    gates(gainAt8("1.5")),
			tamper:  func(l *simulatedRun) { l.each("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Items++ }) },
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: "another output",
		},
		"a baseline that disagrees with itself makes everything Invalid": {
			tamper:  func(l *simulatedRun) { l.lastOf("loop").Result.Parity.Digest = strings.Repeat("ab", 32) },
			verdict: invalid, arms: verdicts{"fused-m4r": invalid, "fused-naive": invalid}, reason: "arm loop disagrees with itself", warning: "outputs differ",
		},
		"arms with inputs of their own are not compared by their outputs, which the report says": {
			edit: func(spec *runSpec, template *templateSpec) {
				gates(gainAt8("1.5"))(spec, template)
				spec.Parity = assayv1alpha1.ParityPerArm
			},
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "the arms have different inputs",
		},
		"an arm with inputs of its own must still agree with itself": {
			edit: func(spec *runSpec, template *templateSpec) {
				gates(gainAt8("1.5"))(spec, template)
				spec.Parity = assayv1alpha1.ParityPerArm
			},
			tamper:  func(l *simulatedRun) { l.lastOf("fused-m4r").Result.Parity.Digest = strings.Repeat("ab", 32) },
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: "disagrees with itself",
		},
		"outputs that may differ are not compared": {
			edit: func(spec *runSpec, template *templateSpec) {
				gates(gainAt8("1.5"))(spec, template)
				template.Parity = assayv1alpha1.ParityNone
			},
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo},
		},
		"fewer than three paired blocks are Invalid": {
			edit: gates(gainAt8("1.5")), blocks: 2,
			verdict: invalid, arms: verdicts{"fused-m4r": invalid, "fused-naive": invalid}, reason: "2 of at least 3 blocks",
		},
		"no attempt at all is Invalid": {
			tamper:  func(l *simulatedRun) { l.attempts = nil },
			verdict: invalid, arms: verdicts{"fused-m4r": invalid, "fused-naive": invalid}, reason: "gave no output",
		},
		"a candidate that always fails is NoGo, says why, and does not spoil the other": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("fused-naive", func(a *record.Attempt) {
					a.Outcome, a.Result, a.Message, a.ExitCode = record.Failed, nil, "exit status 3", ptr.To(3)
				})
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "arm fused-naive lost 64 of 64 trials (64 failed), first w000-b0000-s00001",
		},
		"NoGo and Invalid together are Invalid, not NoGo": {
			edit: gates(gainAt8("100")),
			tamper: func(l *simulatedRun) {
				l.each("fused-naive", func(a *record.Attempt) { a.Outcome, a.Result = record.NotStarted, nil })
			},
			verdict: invalid, arms: verdicts{"fused-m4r": noGo, "fused-naive": invalid},
		},
		"a candidate whose figures are not positive gives a gate on a ratio nothing, which is a failure": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) {
					a.Result.Metrics["throughput"] = &record.Metric{Unit: "queries/s", Value: ptr.To(0.0)}
				})
			},
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: "value of metric throughput is 0, and the ratio",
		},
		"a metric in another unit is excluded, never converted": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) {
					a.Result.Metrics["latency"] = &record.Metric{Unit: "ms", Samples: []float64{1}}
				})
			},
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: `metric latency has unit "ms" and the template has "s"`, warning: "reporting something that cannot be used",
		},
		"a metric that is missing is a failure": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) { delete(a.Result.Metrics, "throughput") })
			},
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: "metric throughput is absent", warning: "arm fused-m4r lost 64 of 64 trials",
		},
		"a metric that is optional may be missing, but where a gate needs it that is a failure all the same": {
			edit: func(spec *runSpec, template *templateSpec) {
				gates(gainAt8("1.5"))(spec, template)
				for i := range template.Metrics {
					template.Metrics[i].Optional = true
				}
			},
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) { delete(a.Result.Metrics, "throughput") })
			},
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, reason: "16 unusable", without: "metric throughput has no",
		},
		"a result without a parity digest does not count": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) { a.Result.Parity = nil })
			},
			verdict: noGo, arms: verdicts{"fused-m4r": noGo, "fused-naive": noGo}, warning: "reporting something",
		},
		"more than the machine can do raises a warning": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) { a.Result.Ceilings[0].Achieved = ptr.To(80e9) })
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "arm fused-m4r claims 125 % of the ceiling readBandwidth",
		},
		"a limit is named with the instructions and the threads that it was measured with": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("fused-m4r", func(a *record.Attempt) {
					ceiling := &a.Result.Ceilings[0]
					ceiling.Achieved, ceiling.Instructions, ceiling.Threads = ptr.To(80e9), "avx2", 2
				})
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "the ceiling readBandwidth (avx2, 2 threads)",
		},
		"phases that do not add up raise a warning": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				l.each("loop", func(a *record.Attempt) { a.Result.Phases = a.Result.Phases[1:] })
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "the phases of arm loop add up to 90 % of latency",
		},
		"an axis without effect raises a warning": {
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "the axis pendingDelta (0, 1) has no measurable effect",
		},
		"a prediction missed by more than a factor of two raises a warning": {
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "throughput of fused-m4r at batchSize=8,pendingDelta=0: predicted 1.500x, measured 6.486x [6.468, 6.505]: 4.3 times",
		},
		"a change in the other direction than predicted raises a warning": {
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "the change goes the other way",
		},
		"attempts that did not have their CPUs to themselves raise a warning": {
			edit: gates(gainAt8("1.5")),
			tamper: func(l *simulatedRun) {
				for i := range l.attempts {
					if a := &l.attempts[i]; numbered(t, a) == 3 {
						a.Isolation.Level = "Shared"
					}
				}
			},
			verdict: goes, best: "fused-m4r", arms: verdicts{"fused-m4r": goes, "fused-naive": noGo}, warning: "of 192 attempts used 24 had isolation Shared",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			noise, blocks := c.noise, c.blocks
			if noise == (fixture.Noise{}) {
				noise = quiet
			}
			if blocks == 0 {
				blocks = 8
			}
			l := simulated(t, blocks, fixture.Machine{Seed: 1, Noise: noise, Seconds: c.seconds}, c.edit)
			if c.tamper != nil {
				c.tamper(l)
			}
			got := l.analyze()
			for _, gate := range got.Gates {
				if e := gate.Estimate; e != nil && e.Value == 0 && e.Low == nil {
					t.Errorf("gate %s of %s says %q and shows an estimate of 0", gate.Gate, gate.Candidate, gate.Message)
				}
			}

			arms := verdicts{}
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
			if !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, c.warning) }) && c.warning != "" {
				t.Errorf("warnings %q, want one with %q", got.Warnings, c.warning)
			}
			if slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, c.without) }) && c.without != "" {
				t.Errorf("warnings %q, want none with %q", got.Warnings, c.without)
			}
			checkInvariants(t, got)
		})
	}
}

func (l *simulatedRun) lastOf(arm string) *record.Attempt {
	for i := len(l.attempts) - 1; i >= 0; i-- {
		if l.attempts[i].Arm == arm {
			return &l.attempts[i]
		}
	}
	return nil
}

// checkInvariants holds for every analysis.
func checkInvariants(t *testing.T, got *analysis.Analysis) {
	t.Helper()
	n := got.Trials
	if n.Planned != n.Used+n.Warmups+n.Failed+n.Invalid+n.Missing {
		t.Errorf("trials do not add up: %+v", n)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Errorf("analysis cannot be written: %v", err)
	}
	for _, gate := range got.Gates {
		if gate.Message == "" {
			t.Errorf("gate %s has no message", gate.Title())
		}
		if (gate.Outcome == goes || gate.Outcome == noGo) && gate.Op != experiment.ParityEqual &&
			(gate.Estimate == nil || gate.Estimate.Low == nil) {
			t.Errorf("gate %s is %s without an interval", gate.Title(), gate.Outcome)
		}
	}
	for _, candidate := range got.Candidates {
		if candidate.Reason == "" {
			t.Errorf("candidate %s has no reason", candidate.Name)
		}
	}
	for _, arm := range got.Arms {
		checkEstimate(t, arm.Arm+" "+arm.Metric, arm.Estimate)
	}
	for _, ratio := range got.Ratios {
		checkEstimate(t, ratio.Candidate+" "+ratio.Metric, ratio.Estimate)
	}
}

func checkEstimate(t *testing.T, what string, e analysis.Estimate) {
	t.Helper()
	if e.Low != nil && (*e.Low > e.Value || e.Value > *e.High) {
		t.Errorf("%s: %v lies outside its interval [%v, %v]", what, e.Value, *e.Low, *e.High)
	}
	if e.Low == nil && e.Blocks >= stats.MinBlocks {
		t.Errorf("%s: %d blocks and no interval", what, e.Blocks)
	}
}

func TestHolmHoldsBackANoGoThatIsOneOfMany(t *testing.T) {
	// 1.02 times slower than allowed, with noise such that one gate alone is a narrow NoGo.
	one := assayv1alpha1.Gate{Name: "a", Metric: "throughput", At: at8, Candidate: "fused-m4r", Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"}
	seconds := func(point record.Point, arm string) float64 {
		if point.Parameters["batchSize"] == "8" && arm != "loop" {
			return fixture.ScanSeconds(point, "loop") / 1.38
		}
		return fixture.ScanSeconds(point, "loop")
	}
	machine := fixture.Machine{Seed: 3, Noise: fixture.Noise{Block: 0.02, Arm: 0, Trial: 0.045, Sample: 0.01}, Seconds: seconds}
	alone := simulated(t, 8, machine, gates(one)).analyze()
	if alone.Gates[0].Outcome != noGo {
		t.Fatalf("alone the gate is %s: %s", alone.Gates[0].Outcome, alone.Gates[0].Message)
	}
	family := []assayv1alpha1.Gate{one}
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h"} {
		family = append(family, assayv1alpha1.Gate{Name: name, Metric: "latency", Candidate: "fused-m4r", Op: assayv1alpha1.RatioAtMost,
			Bound: "1.2"})
	}
	many := simulated(t, 8, machine, gates(family...)).analyze()
	if got := many.Gates[0]; got.Outcome != inconclusive || !strings.Contains(got.Message, "Holm") {
		t.Errorf("among %d gates it is %s: %s", len(many.Gates), got.Outcome, got.Message)
	}
	if diff := cmp.Diff(alone.Gates[0].Estimate, many.Gates[0].Estimate); diff != "" {
		t.Errorf("the correction changed the estimate:\n%s", diff)
	}
	for _, gate := range many.Gates[1:] {
		if gate.Outcome != goes {
			t.Errorf("%s: %s", gate.Title(), gate.Message)
		}
	}
}

func TestAnalysisIsTheSameInWhateverOrderTheEvidenceComes(t *testing.T) {
	l := simulated(t, 6, fixture.Machine{Seed: 1, Noise: quiet}, nil)
	for i := range 20 {
		l.attempts[i*7].Outcome = record.Failed
	}
	want, err := json.Marshal(l.analyze())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 5))
	for range 3 {
		random.Shuffle(len(l.attempts), func(i, j int) { l.attempts[i], l.attempts[j] = l.attempts[j], l.attempts[i] })
		got, err := json.Marshal(l.analyze())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("another order gives another analysis:\n%s", cmp.Diff(string(want), string(got)))
		}
	}
}

func TestABoundIsHeldAgainstTheLevelThatIsShown(t *testing.T) {
	l := simulated(t, 6, fixture.Machine{Seed: 1, Noise: quiet}, nil)
	got := l.analyze()
	compared := 0
	for _, gate := range got.Gates {
		if gate.Op != experiment.AtMost {
			continue
		}
		for _, a := range got.Arms {
			if a.Arm == gate.Candidate && a.Point == gate.Point && a.Metric == gate.Metric && a.Statistic == gate.Statistic {
				compared++
				if a.Estimate.Value != gate.Estimate.Value {
					t.Errorf("%s of %s at %s: %v is shown and %v judged", a.Metric, a.Arm, a.Point, a.Estimate.Value, gate.Estimate.Value)
				}
			}
		}
	}
	if compared != 8 {
		t.Errorf("%d levels compared", compared)
	}
}

func TestGoldenAnalysis(t *testing.T) {
	l := simulated(t, 8, fixture.Machine{Seed: 7,
		Noise: fixture.Noise{Block: 0.03, Arm: 0.005, Trial: 0.005, Sample: 0.02, Heavy: true}}, nil)
	failing := l.lastOf("fused-naive")
	failing.Outcome, failing.Result, failing.Message = record.Failed, nil, "exit status 134: aborted"
	raw, err := json.MarshalIndent(l.analyze(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "scan.golden.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(raw)); diff != "" {
		t.Errorf("analysis changed; look at it, then run go test ./internal/analysis -update (-want +got):\n%s", diff)
	}
}
