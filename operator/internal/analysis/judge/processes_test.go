package judge_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/record"
)

// silent is a workload that reports nothing: only its processes are known.
func silent(gates ...assayv1alpha1.Gate) func(*fixture.RunSpec, *fixture.TemplateSpec) {
	return func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
		spec.Gates, spec.Predictions = gates, nil
		template.Metrics, template.Parity, template.Output.Format = nil, assayv1alpha1.ParityNone, assayv1alpha1.NoOutput
	}
}

// using gives every trial of an arm a process quantity, and removes its reported figures.
func using(l *analyzed.Run, arm string, change func(block int, attempt *record.Attempt)) {
	blocks := map[string]int{}
	l.EachOf(arm, func(attempt *record.Attempt) {
		if _, ok := blocks[attempt.Block]; !ok {
			blocks[attempt.Block] = len(blocks)
		}
		attempt.Result = nil
		change(blocks[attempt.Block], attempt)
	})
}

func TestProcess_QuantitiesAreJudged(t *testing.T) {
	t.Parallel()
	gate := func(metric string, op assayv1alpha1.GateOperator, bound string) assayv1alpha1.Gate {
		return assayv1alpha1.Gate{Name: "g", Metric: metric, Op: op, Bound: bound, Candidate: "fused-m4r", At: fixture.At8}
	}
	// Every process of the candidate takes twice as much of everything as the baseline's.
	twice := map[string]float64{"loop": 1, "fused-naive": 1, "fused-m4r": 2}
	cases := map[string]struct {
		gate assayv1alpha1.Gate
		lose func(attempt *record.Attempt)
		want experiment.Verdict
		says string
	}{
		"wall time":                    {gate("process.wallTime", assayv1alpha1.RatioAtMost, "1.5"), nil, experiment.VerdictNoGo, "2.000x"},
		"CPU time is that of both":     {gate("process.cpuTime", assayv1alpha1.AtMost, "1s"), nil, experiment.VerdictNoGo, "1.2"},
		"user time":                    {gate("process.userTime", assayv1alpha1.RatioAtMost, "2.2"), nil, experiment.VerdictGo, "2.000x"},
		"system time":                  {gate("process.systemTime", assayv1alpha1.RatioAtMost, "1.5"), nil, experiment.VerdictNoGo, "2.000x"},
		"peak memory":                  {gate("process.peakMemory", assayv1alpha1.AtMost, "150Mi"), nil, experiment.VerdictNoGo, "MB"},
		"minor faults":                 {gate("process.minorFaults", assayv1alpha1.RatioAtMost, "1.5"), nil, experiment.VerdictNoGo, "2.000x"},
		"voluntary context switches":   {gate("process.voluntaryContextSwitches", assayv1alpha1.RatioAtMost, "1.5"), nil, experiment.VerdictNoGo, "2.000x"},
		"involuntary context switches": {gate("process.involuntaryContextSwitches", assayv1alpha1.RatioAtMost, "1.5"), nil, experiment.VerdictNoGo, "2.000x"},
		"a count of zero equals one":   {gate("process.majorFaults", assayv1alpha1.RatioAtMost, "1.5"), nil, experiment.VerdictGo, "process.majorFaults is 0 in every trial of arms fused-m4r and loop, which is equal"},
		"a count of zero is a figure":  {gate("process.majorFaults", assayv1alpha1.AtMost, "3"), nil, experiment.VerdictGo, "at most"},
		"a missing reading is absent, and not zero": {
			gate("process.peakMemory", assayv1alpha1.AtMost, "150Mi"), func(a *record.Attempt) { a.Resources.MaxRSSBytes = nil },
			experiment.VerdictInvalid, "has no value in any of the 16 trials of arm fused-m4r",
		},
		"half of the CPU time is missing": {
			gate("process.cpuTime", assayv1alpha1.AtMost, "1s"), func(a *record.Attempt) { a.Resources.SystemSeconds = nil },
			experiment.VerdictInvalid, "has no value in any of the 16 trials of arm fused-m4r",
		},
	}
	for name, tc := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, silent(tc.gate))
			for arm, by := range twice {
				using(l, arm, func(block int, a *record.Attempt) {
					by := by * (1 + 0.001*float64(block%3))
					count := func(n float64) *int64 { return ptr.To(int64(1000 * n * by)) }
					a.DurationSeconds = by
					a.Resources = record.Resources{
						UserSeconds: ptr.To(0.5 * by), SystemSeconds: ptr.To(0.1 * by), MaxRSSBytes: ptr.To(int64(100 * (1 << 20) * by)),
						MinorFaults: count(50), MajorFaults: ptr.To(int64(0)), VoluntaryContextSwitches: count(7), InvoluntaryContextSwitches: count(9),
					}
					if tc.lose != nil {
						tc.lose(a)
					}
				})
			}
			got := l.Analyze()
			if len(got.Excluded) > 0 {
				t.Fatalf("excluded: %+v", got.Excluded[0])
			}
			if g := got.Gates[0]; g.Outcome != tc.want || !strings.Contains(g.Message, tc.says) {
				t.Errorf("%s: %s, want %s with %q", g.Outcome, g.Message, tc.want, tc.says)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// A count of 0 has no logarithm and is still a figure. One of them does not invalidate the others, and with a mean of the baseline that may
// be 0 the gate is undecided, which does not excuse other gates.
func TestZeroCount_DecidesWhereItIsCertain(t *testing.T) {
	t.Parallel()
	none := func(int) bool { return false }
	all := func(int) bool { return true }
	first := func(trial int) bool { return trial == 0 }
	for name, c := range map[string]struct {
		metric           string
		candidate        float64
		zeros, baselines func(trial int) bool
		want             experiment.Verdict
		says             string
	}{
		"more of them":                              {"involuntaryContextSwitches", 1.5, none, none, fixture.NoGo, "1.500x"},
		"more, and one trial has none":              {"involuntaryContextSwitches", 3, first, none, fixture.NoGo, "is 0 in 1 of 32 trials, so this is the ratio of the means over blocks (Fieller 1954)"},
		"more, and one of the baseline has none":    {"involuntaryContextSwitches", 1.5, none, first, fixture.NoGo, "is 0 in 1 of 32 trials"},
		"fewer of them":                             {"involuntaryContextSwitches", 0.5, none, none, fixture.Go, "0.5000x"},
		"fewer, and one trial has none":             {"involuntaryContextSwitches", 0.5, first, none, fixture.Go, "is 0 in 1 of 32 trials"},
		"none at all":                               {"majorFaults", 1, all, none, fixture.Go, "is 0 in every trial of arm fused-m4r and above 0 in every trial of arm loop"},
		"the baseline has none":                     {"majorFaults", 1, none, all, fixture.NoGo, "0 in every trial of arm loop, so that it exceeds every multiple of it, against at most 1.1"},
		"neither has":                               {"majorFaults", 1, all, all, fixture.Go, "which is equal"},
		"the baseline has some now and then":        {"majorFaults", 1, none, func(trial int) bool { return trial != 5 }, fixture.Inconclusive, "values that are not positive"},
		"as many, and one trial has none":           {"involuntaryContextSwitches", 1, first, none, fixture.Inconclusive, "the interval spans the bound"},
		"a clock that reads 0 is no count":          {"userTime", 1.5, first, none, fixture.Inconclusive, "values that are not positive (in 1 of 32 trials)"},
		"nor is one that reads 0 of the baseline's": {"systemTime", 0.5, none, first, fixture.Inconclusive, "values that are not positive (in 1 of 32 trials)"},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, silent(assayv1alpha1.Gate{
				Name: "g", Metric: "process." + c.metric, Op: assayv1alpha1.RatioAtMost, Bound: "1.1", Candidate: "fused-m4r", At: fixture.At8,
			}))
			for arm, zero := range map[string]func(int) bool{"loop": c.baselines, "fused-m4r": c.zeros} {
				trial := 0
				by := 1.0
				if arm == "fused-m4r" {
					by = c.candidate
				}
				using(l, arm, func(block int, a *record.Attempt) {
					if a.Warmup || a.Point != fixture.Point8 {
						return
					}
					by := by * (1 + 0.001*float64((block*7+trial)%5))
					used := record.Resources{
						UserSeconds: ptr.To(0.5 * by), SystemSeconds: ptr.To(0.1 * by),
						MajorFaults: ptr.To(int64(10000 * by)), InvoluntaryContextSwitches: ptr.To(int64(10000 * by)),
					}
					if zero(trial) {
						switch c.metric {
						case "userTime":
							*used.UserSeconds = 0
						case "systemTime":
							*used.SystemSeconds = 0
						default:
							*used.MajorFaults, *used.InvoluntaryContextSwitches = 0, 0
						}
					}
					a.Resources = used
					trial++
				})
			}
			got := l.Analyze()
			if g := got.Gates[0]; g.Outcome != c.want || !strings.Contains(g.Message, c.says) {
				t.Errorf("%s: %s, want %s with %q", g.Outcome, g.Message, c.want, c.says)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// A reading that is there in a part of an arm's trials says nothing of the others, which may be the slow ones.
func TestPartlyRead_QuantityIsInconclusive(t *testing.T) {
	t.Parallel()
	noSystem := func(a *record.Attempt) { a.Resources.SystemSeconds = nil }
	noMemory := func(a *record.Attempt) { a.Resources.MaxRSSBytes = nil }
	const candidate, baseline = "fused-m4r", "loop"
	for name, c := range map[string]struct {
		metric string
		op     assayv1alpha1.GateOperator
		bound  string
		arm    string
		count  int // Of 14 trials in blocks of three, nine follow their own arm.
		lose   func(*record.Attempt)
		want   experiment.Verdict
		says   string
	}{
		"all of it is there":                 {"process.cpuTime", assayv1alpha1.AtMost, "700ms", candidate, 0, noSystem, fixture.Go, ""},
		"the candidate's in 9 of 16":         {"process.cpuTime", assayv1alpha1.AtMost, "700ms", candidate, 14, noSystem, fixture.Inconclusive, "process.cpuTime has no value in 9 of 16 trials of arm fused-m4r and one in 7"},
		"the candidate's peak in 9 of 16":    {"process.peakMemory", assayv1alpha1.AtMost, "150Mi", candidate, 14, noMemory, fixture.Inconclusive, "in 9 of 16 trials of arm fused-m4r"},
		"a ratio, the candidate's":           {"process.cpuTime", assayv1alpha1.RatioAtMost, "1.1", candidate, 14, noSystem, fixture.Inconclusive, "in 9 of 16 trials of arm fused-m4r"},
		"a ratio, the baseline's in 9 of 16": {"process.cpuTime", assayv1alpha1.RatioAtMost, "1.1", baseline, 14, noSystem, fixture.Inconclusive, "in 9 of 16 trials of arm loop"},
		"no gate looks at the baseline's":    {"process.cpuTime", assayv1alpha1.AtMost, "700ms", baseline, 14, noSystem, fixture.Go, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, silent(assayv1alpha1.Gate{
				Name: "g", Metric: c.metric, Op: c.op, Bound: c.bound, Candidate: candidate, At: fixture.At8,
			}))
			for _, arm := range []string{baseline, "fused-naive", candidate} {
				left := 0
				if arm == c.arm {
					left = c.count
				}
				using(l, arm, func(block int, a *record.Attempt) {
					by := 1 + 0.001*float64(block%3)
					a.Resources = record.Resources{
						UserSeconds: ptr.To(0.5 * by), SystemSeconds: ptr.To(0.1 * by), MaxRSSBytes: ptr.To(int64(100 * (1 << 20) * by)),
					}
					if left > 0 && !a.Warmup && strings.Contains(a.Point, "batchSize=8,pendingDelta=0") {
						left--
						c.lose(a)
					}
				})
			}
			got := l.Analyze()
			if g := got.Gates[0]; g.Outcome != c.want || !strings.Contains(g.Message, c.says) {
				t.Errorf("%s: %s, want %s with %q", g.Outcome, g.Message, c.want, c.says)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

func TestProcess_ServerRoleIsJudged(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, func(spec *fixture.RunSpec,
		template *fixture.TemplateSpec) {
		silent(assayv1alpha1.Gate{Name: "g", Metric: "process.server.cpuTime", Op: assayv1alpha1.RatioAtMost, Bound: "1.5",
			Candidate: "fused-m4r", At: fixture.At8})(spec, template)
		template.Command, template.Roles = nil,
			[]assayv1alpha1.Role{{Name: "server", Command: []string{"/kv"}}, {Name: "client", Command: []string{"/load"}, Result: true}}
	})
	for arm, seconds := range map[string]float64{"loop": 1, "fused-naive": 1, "fused-m4r": 3} {
		using(l, arm, func(block int, a *record.Attempt) {
			by := seconds * (1 + 0.001*float64(block%3))
			a.Roles = []record.RoleSeen{
				{Name: "server", Resources: &record.Resources{UserSeconds: ptr.To(by), SystemSeconds: ptr.To(by)}}, {Name: "client", Result: true},
			}
		})
	}
	if g := l.Analyze().Gates[0]; g.Outcome != experiment.VerdictNoGo || !strings.Contains(g.Message, "3.000x") {
		t.Errorf("%s: %s", g.Outcome, g.Message)
	}
}

// Every ledger is judged. A quantity that an attempt lacks is missing.
func TestMissingResult_IsALoss(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulatePair(t, 0.94, nil)
	l.Exp.Plan.Workload.Output.Format = format.None
	for i := range l.Attempts {
		l.Attempts[i].Result = nil
	}
	got := l.Analyze()
	if got.Verdict == fixture.Go || got.Trials.Used != 0 || !strings.Contains(got.Excluded[0].Reason,
		"metric time is absent and a gate needs it") {
		t.Errorf("%s, %+v, %+v", got.Verdict, got.Trials, got.Excluded[:1])
	}
	fixture.CheckInvariants(t, got)
}
