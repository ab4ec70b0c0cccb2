package estimate_test

import (
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// A percentile is a statistic of merged samples: some zeros, or trials that timed out, do not make it unknown unless it falls on them.
func TestPercentile_ZeroOrCensoredSamples(t *testing.T) {
	t.Parallel()
	edit := func(statistic assayv1alpha1.Statistic) func(*fixture.RunSpec, *fixture.TemplateSpec) {
		return func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
			fixture.WithGates(assayv1alpha1.Gate{Name: "tail", Metric: "latency", Statistic: statistic, At: fixture.At8,
				Op: assayv1alpha1.RatioAtMost, Bound: "1.05",
				Candidate: "fused-m4r"},
				assayv1alpha1.Gate{Name: "done", Op: assayv1alpha1.Completes, Severity: assayv1alpha1.Advisory})(spec, template)
		}
	}
	zeros := func(l *analyzed.Run) {
		l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Metrics["latency"].Samples[3] = 0 })
	}
	// In the first visits the last two trials time out, of which the last one does not count, and in the next ones the last trial does.
	timeouts := func(first, next int) func(l *analyzed.Run) {
		return func(l *analyzed.Run) {
			seen := 0
			l.EachOf("fused-m4r", func(a *record.Attempt) {
				if a.Warmup || !strings.Contains(a.Point, "batchSize=8,pendingDelta=0") {
					return
				}
				visit, number := seen/experiment.VisitTrials, seen%experiment.VisitTrials
				seen++
				if number > 0 && visit < first || number == 2 && visit < first+next {
					a.Outcome, a.Result, a.ExitCode, a.Signal = record.TimedOut, nil, nil, ptr.To(9)
				}
			})
		}
	}
	of := func(samples string, spoil func(*analyzed.Run)) func(*analyzed.Run) {
		return func(l *analyzed.Run) {
			for _, cell := range l.Exp.Cells {
				cell.Parameters["iterations"] = samples
			}
			spoil(l)
		}
	}
	for name, c := range map[string]struct {
		factor    float64
		statistic assayv1alpha1.Statistic
		spoil     func(*analyzed.Run)
		want      experiment.Verdict
	}{
		"a zero among 30 samples leaves a fast candidate Go":         {1.2, assayv1alpha1.StatisticP95, zeros, fixture.Go},
		"and a slow one NoGo":                                        {1 / 1.2, assayv1alpha1.StatisticP95, zeros, fixture.NoGo},
		"a mean of samples of which one is zero too":                 {1 / 1.2, assayv1alpha1.StatisticMean, zeros, fixture.NoGo},
		"a median does not fall on one timeout in 24":                {1.2, assayv1alpha1.StatisticP50, timeouts(0, 1), fixture.Go},
		"a p95 of as many as may be there does, and is Inconclusive": {1.2, assayv1alpha1.StatisticP95, timeouts(0, 2), fixture.Inconclusive},
		"a median falls on 12 timeouts in 13":                        {1.2, assayv1alpha1.StatisticP50, timeouts(11, 1), fixture.NoGo},
		"of trials of as many samples as a number holds too": {1.2, assayv1alpha1.StatisticP50,
			of("9223372036854775807", timeouts(11, 1)), fixture.NoGo},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(c.factor)}, edit(
				c.statistic))
			c.spoil(l)
			if got := l.Analyze(); got.Candidates[1].Verdict != c.want {
				t.Errorf("%s: %s", got.Candidates[1].Verdict, got.Candidates[1].Reason)
			}
		})
	}
}

func TestTimeout_IsTheWorstValueOfARate(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]experiment.Verdict{0: fixture.Go, 1: fixture.Inconclusive, 13: fixture.NoGo} {
		l := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.2)}, func(
			spec *fixture.RunSpec, template *fixture.TemplateSpec) {
			fixture.WithGates(fixture.GainAt8("1.1"), assayv1alpha1.Gate{Name: "done", Op: assayv1alpha1.Completes,
				Severity: assayv1alpha1.Advisory})(spec, template)
		})
		seen := 0
		l.EachOf("fused-m4r", func(a *record.Attempt) {
			if a.Warmup || !strings.Contains(a.Point, "batchSize=8,pendingDelta=0") {
				return
			}
			// Timeouts occur over the whole run, because timeouts in one part of it are dependence between blocks. They end visits, because
			// a trial after a timed-out one does not count; the thirteenth is the second trial of a visit.
			visit, number := seen/experiment.VisitTrials*5%12, seen%experiment.VisitTrials
			if seen++; number == 2 && visit < count || number == 1 && visit < count-12 {
				a.Outcome, a.Result, a.ExitCode, a.Signal = record.TimedOut, nil, nil, ptr.To(9)
			}
		})
		if got := l.Analyze(); got.Candidates[1].Verdict != want {
			t.Errorf("%d timeouts: %s: %s", count, got.Candidates[1].Verdict, got.Candidates[1].Reason)
		}
	}
}

// A block of which every trial hung ran on its node, at its time and with its builds, as the others did.
func TestTimedOutBlock_BelongsToItsNode(t *testing.T) {
	t.Parallel()
	hang := func(l *analyzed.Run, blocks ...int) {
		for i := range l.Attempts {
			a := &l.Attempts[i]
			a.Environment.Soft = map[string]any{"nodeName": "node-a", "runnerVersion": "simulated"}
			if slices.Contains(blocks, fixture.BlockNumber(t, a)) {
				a.Outcome, a.ExitCode, a.Signal, a.Result, a.DurationSeconds = record.TimedOut, nil, ptr.To(9), nil, 2
			}
		}
	}
	slow := assayv1alpha1.Gate{
		Name: "slow", Metric: "time", Statistic: assayv1alpha1.StatisticP50, Op: assayv1alpha1.AtMost, Bound: "0.5s",
	}
	l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) {
		fixture.CompletesGate("0.5", "")(spec)
		spec.Gates = append(spec.Gates, slow)
	})
	l.Exp.Plan.Workload.TimeoutSeconds = 2
	hang(l, 3, 7)
	got := l.Analyze()
	for _, gate := range got.Gates {
		if gate.Gate == "slow" && gate.Outcome != fixture.NoGo {
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

// The number of builds includes those with timed-out blocks only.
func TestTimedOutBlock_BelongsToItsBuild(t *testing.T) {
	t.Parallel()
	exp, err := fixture.ScenarioExperiment(fixture.Scenario{Builds: 2})
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.NewWorld(fixture.Scenario{Trial: 0.01, Builds: 2}, 0, 1, 1).Run(exp, wave)
	l := &analyzed.Run{Exp: exp, Waves: []record.Wave{*wave}, Attempts: attempts}
	width := func() float64 {
		e := l.Analyze().Arms[0].Estimate
		return (*e.High - *e.Low) / e.Value
	}
	before := width()
	for i := range l.Attempts {
		if a := &l.Attempts[i]; fixture.BlockNumber(t, a) == 4 {
			a.Outcome, a.ExitCode, a.Signal, a.Result, a.DurationSeconds = record.TimedOut, nil, ptr.To(9), nil, 300
		}
	}
	l.Exp.Plan.Workload.TimeoutSeconds = 1.001 // As long as the others took: nothing but a trial that says less.
	if after := width(); after < before/2 {
		t.Errorf("an interval of %.3g, and where the trials of a block hung of %.3g", before, after)
	}
}
