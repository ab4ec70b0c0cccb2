package analyze

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// pair is a run of two arms of 20 trials each, in which the candidate's time is the baseline's times a factor.
func pair(t testing.TB, factor float64, edit func(*runSpec)) *simulatedRun {
	t.Helper()
	exp, err := fixture.PairExperiment(edit)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.NewWorld(fixture.Scenarios()[0], math.Log(factor), 1, 1).Run(exp, wave)
	return &simulatedRun{exp: exp, waves: []record.Wave{*wave}, attempts: attempts}
}

func completes(bound string, severity assayv1alpha1.Severity, arms ...string) func(*runSpec) {
	return func(spec *runSpec) {
		for i, arm := range append(arms, "")[:max(1, len(arms))] {
			spec.Gates = append(spec.Gates, assayv1alpha1.Gate{
				Name: "done" + strconv.Itoa(i), Op: assayv1alpha1.Completes, Bound: bound, Severity: severity, Candidate: arm,
			})
		}
	}
}

// few lets a run do with fewer blocks than the ten that are planned.
func few(spec *runSpec) { spec.Design.Blocks.Min = 5 }

// both makes several edits.
func both(edits ...func(*runSpec)) func(*runSpec) {
	return func(spec *runSpec) {
		for _, edit := range edits {
			edit(spec)
		}
	}
}

// loseSlowest leaves nothing of the slowest trials of an arm.
func (l *simulatedRun) loseSlowest(arm string, count int) {
	var times []float64
	l.each(arm, func(a *record.Attempt) { times = append(times, *a.Result.Metrics["time"].Value) })
	slices.Sort(times)
	least := times[len(times)-count]
	l.keepOnly(func(a record.Attempt) bool { return a.Arm != arm || *a.Result.Metrics["time"].Value < least })
}

// absolute asks for a bound of the candidate alone.
func absolute(op assayv1alpha1.GateOperator, bound string) func(*runSpec) {
	return func(spec *runSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "level", Metric: "time", Op: op, Bound: bound, AllowWorse: op == assayv1alpha1.AtLeast}}
	}
}

func way(t testing.TB, name string) fixture.Loss {
	for _, loss := range fixture.Losses() {
		if loss.Name == name {
			return loss
		}
	}
	t.Fatalf("no loss %q", name)
	return fixture.Loss{}
}

func TestLossesNeverHelp(t *testing.T) {
	type lost struct {
		how, arm string
		count    int
	}
	cases := map[string]struct {
		factor  float64 // 0 is 0.94: 6 % faster.
		edit    func(*runSpec)
		lost    []lost
		noPlan  bool
		want    experiment.Verdict
		reason  string
		warning string
	}{
		"a candidate that loses nothing and is faster is Go": {want: goes},
		"one that times out in 11 of 20 trials is NoGo": {
			lost: []lost{{"timeout", "new", 11}}, want: noGo, reason: "and 1 more gate is NoGo", warning: "arm new lost 11 of 20 trials (11 timed out)",
		},
		"also by its times, if completing is Advisory": {
			edit: completes("", assayv1alpha1.Advisory), lost: []lost{{"timeout", "new", 11}}, want: noGo, reason: "missed over the whole interval",
		},
		"also by its times, if it need not complete often": {
			edit: completes("30%", ""), lost: []lost{{"timeout", "new", 11}}, want: noGo, reason: "missed over the whole interval",
		},
		"a single timeout leaves open how slow the candidate is": {
			edit: completes("0.9", ""), lost: []lost{{"timeout", "new", 1}}, want: inconclusive,
		},
		"a baseline that times out is not beaten by the bound of its times, which need not hold what it hung in": {
			edit: completes("0.3", ""), lost: []lost{{"timeout", "old", 11}}, want: inconclusive, reason: "so this is not yet Go",
		},
		"nor by a candidate that is slower where neither hangs": {
			factor: 1.06, edit: completes("0.3", ""), lost: []lost{{"timeout", "old", 11}}, want: inconclusive, reason: "so this is not yet Go",
		},
		"one that crashes in 14 of 20 trials is NoGo": {lost: []lost{{"crash", "new", 14}}, want: noGo, reason: "6 of 20 trials completed against at least 1.000: 14 failed"},
		"one failure is NoGo, as in a search":         {lost: []lost{{"memory", "new", 1}}, want: noGo, reason: "19 of 20 trials completed"},
		"crashes that are Advisory leave Inconclusive what remains": {
			edit: completes("", assayv1alpha1.Advisory), lost: []lost{{"crash", "new", 14}}, want: inconclusive,
			reason: "at the only point arm new lost 14 of 20 trials (14 failed), and the baseline 0 of 20 trials (Fisher's exact test",
		},
		"a share that may be reached is Inconclusive": {edit: completes("0.95", ""), lost: []lost{{"exit", "new", 2}}, want: inconclusive, reason: "do not exclude"},
		"a share that is reached is Go":               {edit: completes("90%", ""), lost: []lost{{"exit", "new", 2}}, want: goes},
		"half of its trials missing is Inconclusive, and named": {
			lost: []lost{{"missing", "new", 10}}, want: inconclusive, reason: "10 missing", warning: "arm new lost 10 of 20 trials (10 missing), first w000-b000",
		},
		"half of its trials missing without a plan too": {
			noPlan: true, lost: []lost{{"missing", "new", 10}}, want: inconclusive, reason: "10 missing", warning: "arm new lost 10 of 20 trials (10 missing)",
		},
		"what the baseline lost as well excuses nothing of a level": {
			edit: absolute("AtMost", "10s"), lost: []lost{{"missing", "old", 10}, {"missing", "new", 10}}, want: inconclusive,
			reason: "and as many of no arm 0 of",
		},
		"nor of one that must be reached": {
			edit: absolute("AtLeast", "1us"), lost: []lost{{"missing", "old", 10}, {"missing", "new", 10}}, want: inconclusive,
			reason: "and as many of no arm 0 of",
		},
		"a level of an arm that lost nothing is Go": {edit: absolute("AtMost", "10s"), lost: []lost{{"missing", "old", 2}}, want: goes},
		"trials that never started are missing":     {lost: []lost{{"not-started", "new", 10}}, want: inconclusive, reason: "10 missing"},
		"trials of another experiment are lost":     {lost: []lost{{"foreign", "new", 10}}, want: inconclusive, reason: "10 not part of this experiment"},
		"trials of another environment too":         {lost: []lost{{"environment", "new", 8}}, want: inconclusive, reason: `environment.hard.cpuModel is "simulated" in slot 2`},
		"a metric absent in 9 trials is NoGo":       {lost: []lost{{"absent", "new", 9}}, want: noGo, reason: "metric time is absent"},
		"a time of 0 is NoGo, not Invalid":          {lost: []lost{{"zero", "new", 1}}, want: noGo, reason: "value of metric time is 0"},
		"a slower candidate stays NoGo when it reports a 0": {
			factor: 1.06, edit: completes("50%", ""), lost: []lost{{"zero", "new", 1}}, want: noGo, reason: "missed over the whole interval",
		},
		"a negative time is NoGo":                    {lost: []lost{{"negative", "new", 1}}, want: noGo, reason: "-1 s is a negative time"},
		"a time of 1e-300 s is NoGo":                 {lost: []lost{{"beyond-meaning", "new", 1}}, want: noGo, reason: "allowed are 0 and magnitudes"},
		"another unit is NoGo":                       {lost: []lost{{"unit", "new", 1}}, want: noGo, reason: `has unit "ms"`},
		"Succeeded beside exit code 1 is NoGo":       {lost: []lost{{"contradiction", "new", 1}}, want: noGo, reason: "outcome is Succeeded and exitCode 1"},
		"a baseline that crashes makes Inconclusive": {lost: []lost{{"crash", "old", 14}}, want: inconclusive, reason: "the baseline does not complete"},
		"so it does when one of its trials does":     {lost: []lost{{"crash", "old", 1}}, want: inconclusive, reason: "the baseline does not complete"},
		"a baseline may be allowed to crash": {
			edit: completes("80%", "", "old"), lost: []lost{{"crash", "old", 1}}, want: goes,
		},
		"arms that lose alike are compared, and blocks that never ran are no loss": {
			edit: both(completes("80%", ""), few), lost: []lost{{"missing", "old", 4}, {"missing", "new", 4}}, want: goes,
			warning: "arm old lost 2 of 18 trials",
		},
		"blocks that never ran cost nothing but their number": {edit: few, lost: []lost{{"whole blocks", "", 2}}, want: goes},
		"a planned trial that is not there leaves open whether it completed": {
			lost: []lost{{"missing", "new", 1}}, want: inconclusive, reason: "19 of 20 trials completed against at least 1.000: 1 missing (first w000-b00",
		},
		"four of twenty are too few for the exact test, and nobody knows what they gave": {
			lost: []lost{{"slowest", "new", 4}}, want: inconclusive, reason: "16 of 20 trials completed against at least 1.000: 4 missing",
		},
		"nor is it a NoGo that many are not there": {
			edit: both(completes("95%", ""), few), lost: []lost{{"slowest", "new", 4}}, want: inconclusive, reason: "nobody knows what those without an end",
		},
		"the baseline's leave open what the comparison rests on": {
			lost: []lost{{"missing", "old", 1}}, want: inconclusive, reason: "the baseline does not complete",
		},
		"a share that is reached without them holds, and the exact test looks": {
			edit: completes("80%", ""), lost: []lost{{"slowest", "new", 4}}, want: goes, warning: "arm new lost 4 of 20 trials (4 missing)",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.factor == 0 {
				c.factor = 0.94
			}
			l := pair(t, c.factor, c.edit)
			for _, lost := range c.lost {
				switch lost.how {
				case "slowest":
					l.loseSlowest(lost.arm, lost.count)
					continue
				case "whole blocks":
					l.keepOnly(func(a record.Attempt) bool { return numbered(t, &a) >= lost.count })
					continue
				}
				l.attempts = way(t, lost.how).Spoil(rand.New(rand.NewPCG(1, 2)), l.attempts, lost.arm, lost.count)
			}
			if c.noPlan {
				l.waves = nil
			}
			got := l.analyze()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
			if !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, c.warning) }) && c.warning != "" {
				t.Errorf("warnings %q, want one with %q", got.Warnings, c.warning)
			}
			checkInvariants(t, got)
		})
	}
}

func TestATrialThatWasTakenAwayIsCountedOnce(t *testing.T) {
	l := pair(t, 0.94, nil)
	gone := l.attempts[slices.IndexFunc(l.attempts, func(a record.Attempt) bool { return a.Arm == "new" && !a.Warmup })]
	l.keepOnly(func(a record.Attempt) bool { return a.ID != gone.ID })
	sealed := map[string]string{"attempts/" + gone.Block + "/" + gone.ID + ".json": strings.Repeat("0", 64)}
	got := Evidence(l.exp, record.Evidence{Waves: l.waves, Attempts: l.attempts, Sealed: sealed}, 0)
	const want = "19 of 20 trials completed against at least 1.000: 1 changed since it was analysed before (first w000-b000"
	says := func(g analysis.GateResult) bool { return g.Candidate == "new" && strings.HasPrefix(g.Message, want) }
	if !slices.ContainsFunc(got.Gates, says) {
		t.Errorf("%+v, want %q", got.Gates, want)
	}
}

// Each execution of a block may lack trials that the other has: those of one are compared, and of the others nobody knows.
func TestATrialThatOnlyAnotherExecutionHasIsOneOfWhichNothingIsKnown(t *testing.T) {
	l := pair(t, 0.94, nil)
	one := &l.attempts[slices.IndexFunc(l.attempts, func(a record.Attempt) bool { return a.Arm == "new" && !a.Warmup })]
	one.ID = "other/" + one.Trial
	got := l.analyze()
	const want = "19 of 20 trials completed against at least 1.000: 1 superseded by another execution of the block (first w000-b000"
	says := func(g analysis.GateResult) bool { return g.Candidate == "new" && strings.HasPrefix(g.Message, want) }
	if got.Verdict != inconclusive || !slices.ContainsFunc(got.Gates, says) {
		t.Errorf("%s, %+v: want %s and %q", got.Verdict, got.Gates, inconclusive, want)
	}
}

func TestEveryArmHasOneRowOfCompleting(t *testing.T) {
	got := simulated(t, 4, fixture.Machine{Seed: 1, Noise: quiet}, gates(gainAt8("1.5"))).analyze()
	var rows []string
	for _, gate := range got.Gates {
		if gate.Op == experiment.Completes {
			rows = append(rows, gate.Candidate+" "+gate.Point+" "+string(gate.Severity)+" "+string(gate.Outcome))
		}
	}
	if want := []string{"loop  Blocking Go", "fused-naive  Blocking Go", "fused-m4r  Blocking Go"}; !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	bare := simulated(t, 4, fixture.Machine{Seed: 1, Noise: quiet}, gates()).analyze()
	if len(bare.Gates) != 0 || bare.Verdict != "" {
		t.Errorf("a run without gates has %d and the verdict %q", len(bare.Gates), bare.Verdict)
	}
	advisory := gainAt8("1.5")
	advisory.Severity = assayv1alpha1.Advisory
	if asks := simulated(t, 4, fixture.Machine{Seed: 1, Noise: quiet}, gates(advisory)).analyze(); asks.Verdict != "" {
		t.Errorf("a run that asks for nothing that decides has the verdict %q", asks.Verdict)
	}
}

// A percentile is a statistic of merged samples: some zeros, or trials that timed out, do not make it unknown unless it falls on them.
func TestPercentilesOfSamplesSomeOfWhichAreZeroOrCensored(t *testing.T) {
	edit := func(statistic assayv1alpha1.Statistic) func(*runSpec, *templateSpec) {
		return func(spec *runSpec, template *templateSpec) {
			gates(assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: statistic, At: at8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05",
				Candidate: "fused-m4r"},
				assayv1alpha1.Gate{Name: "done", Op: assayv1alpha1.Completes, Severity: assayv1alpha1.Advisory})(spec, template)
		}
	}
	zeros := func(l *simulatedRun) {
		l.each("fused-m4r", func(a *record.Attempt) { a.Result.Metrics["latency"].Samples[3] = 0 })
	}
	timeouts := func(count int) func(l *simulatedRun) {
		return func(l *simulatedRun) {
			l.each("fused-m4r", func(a *record.Attempt) {
				if count > 0 && !a.Warmup && strings.Contains(a.Point, "batchSize=8,pendingDelta=0") {
					count--
					a.Outcome, a.Result, a.ExitCode, a.Signal = record.TimedOut, nil, nil, ptr.To(9)
				}
			})
		}
	}
	of := func(samples string, spoil func(*simulatedRun)) func(*simulatedRun) {
		return func(l *simulatedRun) {
			for _, cell := range l.exp.Cells {
				cell.Parameters["iterations"] = samples
			}
			spoil(l)
		}
	}
	for name, c := range map[string]struct {
		factor    float64
		statistic assayv1alpha1.Statistic
		spoil     func(*simulatedRun)
		want      experiment.Verdict
	}{
		"a zero among 30 samples leaves a fast candidate Go":         {1.2, assayv1alpha1.StatisticP95, zeros, goes},
		"and a slow one NoGo":                                        {1 / 1.2, assayv1alpha1.StatisticP95, zeros, noGo},
		"a mean of samples of which one is zero too":                 {1 / 1.2, assayv1alpha1.StatisticMean, zeros, noGo},
		"a median does not fall on one timeout in 24":                {1.2, assayv1alpha1.StatisticP50, timeouts(1), goes},
		"a p95 of as many as may be there does, and is Inconclusive": {1.2, assayv1alpha1.StatisticP95, timeouts(2), inconclusive},
		"a median falls on 15 timeouts in 24":                        {1.2, assayv1alpha1.StatisticP50, timeouts(23), noGo},
		"of trials of as many samples as a number holds too": {1.2, assayv1alpha1.StatisticP50,
			of("9223372036854775807", timeouts(23)), noGo},
	} {
		t.Run(name, func(t *testing.T) {
			l := simulated(t, 12, fixture.Machine{Seed: 1, Noise: quiet, Seconds: factor(c.factor)}, edit(c.statistic))
			c.spoil(l)
			if got := l.analyze(); got.Candidates[1].Verdict != c.want {
				t.Errorf("%s: %s", got.Candidates[1].Verdict, got.Candidates[1].Reason)
			}
		})
	}
}

func TestATimeoutIsTheWorstOfARate(t *testing.T) {
	for count, want := range map[int]experiment.Verdict{0: goes, 1: inconclusive, 13: noGo} {
		l := simulated(t, 12, fixture.Machine{Seed: 1, Noise: quiet, Seconds: factor(1.2)}, func(spec *runSpec, template *templateSpec) {
			gates(gainAt8("1.1"), assayv1alpha1.Gate{Name: "done", Op: assayv1alpha1.Completes, Severity: assayv1alpha1.Advisory})(spec, template)
		})
		seen := 0
		l.each("fused-m4r", func(a *record.Attempt) {
			if a.Warmup || !strings.Contains(a.Point, "batchSize=8,pendingDelta=0") {
				return
			}
			// Over the whole run: what happens in a part of it only is dependence between blocks.
			if seen++; seen*5%24 < count {
				a.Outcome, a.Result, a.ExitCode, a.Signal = record.TimedOut, nil, nil, ptr.To(9)
			}
		})
		if got := l.analyze(); got.Candidates[1].Verdict != want {
			t.Errorf("%d timeouts: %s: %s", count, got.Candidates[1].Verdict, got.Candidates[1].Reason)
		}
	}
}

// A block of which every trial hung ran on its node, at its time and with its builds, as the others did.
func TestABlockThatHungIsOfItsNode(t *testing.T) {
	hang := func(l *simulatedRun, blocks ...int) {
		for i := range l.attempts {
			a := &l.attempts[i]
			a.Environment.Soft = map[string]any{"nodeName": "node-a", "runnerVersion": "simulated"}
			if slices.Contains(blocks, numbered(t, a)) {
				a.Outcome, a.ExitCode, a.Signal, a.Result, a.DurationSeconds = record.TimedOut, nil, ptr.To(9), nil, 2
			}
		}
	}
	slow := assayv1alpha1.Gate{
		Name: "slow", Metric: "time", Statistic: assayv1alpha1.StatisticP50, Op: assayv1alpha1.AtMost, Bound: "0.5s",
	}
	l := pair(t, 1, func(spec *runSpec) {
		completes("0.5", "")(spec)
		spec.Gates = append(spec.Gates, slow)
	})
	l.exp.Plan.Workload.TimeoutSeconds = 2
	hang(l, 3, 7)
	got := l.analyze()
	for _, gate := range got.Gates {
		if gate.Gate == "slow" && gate.Outcome != noGo {
			t.Errorf("%s: %s", gate.Outcome, gate.Message)
		}
	}
	if ratio := got.Ratios[0]; ratio.PerNode != nil || ratio.NodesDiffer {
		t.Errorf("nodes %+v of a run on one", ratio.PerNode)
	}
	for _, warning := range got.Warnings {
		if strings.Contains(warning, "unknown") {
			t.Error(warning)
		}
	}
}

// Builds are as many as there are, whatever became of their blocks.
func TestABlockThatHungIsOfItsBuild(t *testing.T) {
	exp, err := fixture.ScenarioExperiment(fixture.Scenario{Builds: 2})
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.NewWorld(fixture.Scenario{Trial: 0.01, Builds: 2}, 0, 1, 1).Run(exp, wave)
	l := &simulatedRun{exp: exp, waves: []record.Wave{*wave}, attempts: attempts}
	width := func() float64 {
		e := l.analyze().Arms[0].Estimate
		return (*e.High - *e.Low) / e.Value
	}
	before := width()
	for i := range l.attempts {
		if a := &l.attempts[i]; numbered(t, a) == 4 {
			a.Outcome, a.ExitCode, a.Signal, a.Result, a.DurationSeconds = record.TimedOut, nil, ptr.To(9), nil, 300
		}
	}
	l.exp.Plan.Workload.TimeoutSeconds = 1.001 // As long as the others took: nothing but a trial that says less.
	if after := width(); after < before/2 {
		t.Errorf("an interval of %.3g, and where the trials of a block hung of %.3g", before, after)
	}
}
