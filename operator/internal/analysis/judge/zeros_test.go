package judge_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

// counted simulates a pair of arms with equal times, and a metric that has the given numbers in the trials of each arm.
func counted(t *testing.T, metric experiment.Metric, gates []experiment.Gate, value func(arm string, trial int) float64,
) *analysis.Analysis {
	t.Helper()
	l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) {
		spec.Gates = []assayv1alpha1.Gate{{
			Name: "as-fast", Metric: "time", Op: assayv1alpha1.RatioAtMost, Bound: "1.1", Severity: assayv1alpha1.Blocking,
		}}
	})
	l.Exp.Plan.Metrics = append(l.Exp.Plan.Metrics, metric)
	l.Exp.Plan.Gates = append(l.Exp.Plan.Gates, gates...)
	trials := map[string]int{}
	for i := range l.Attempts {
		a := &l.Attempts[i]
		number := value(a.Arm, trials[a.Arm])
		trials[a.Arm]++
		of := &record.Metric{Unit: metric.Unit, Value: &number}
		if metric.Statistic != experiment.StatisticValue {
			of = &record.Metric{Unit: metric.Unit, Samples: slices.Repeat([]float64{number}, 10)}
		}
		a.Result.Metrics[metric.Name] = of
	}
	got := l.Analyze()
	if metric.Unit != "s" { // The level of a time that is 0 in every trial has no interval.
		fixture.CheckInvariants(t, got)
	}
	return got
}

func gateOf(t *testing.T, got *analysis.Analysis, name string) analysis.GateResult {
	t.Helper()
	for _, gate := range got.Gates {
		if gate.Gate == name {
			return gate
		}
	}
	t.Fatalf("no gate %s", name)
	return analysis.GateResult{}
}

// Zero against zero is equal, a positive count against zero is worse or better by the metric's direction, and in every case the gate on
// times is judged as without the count.
func TestZeros_RatioIsDecidedByDirection(t *testing.T) {
	t.Parallel()
	const lower, higher = experiment.LowerIsBetter, experiment.HigherIsBetter
	other := experiment.Metric{Name: "allocs", Unit: "allocs", Direction: lower, Statistic: experiment.StatisticValue}
	alone := gateOf(t, counted(t, other, nil, func(string, int) float64 { return 1 }), "as-fast")
	type outcome = experiment.Verdict
	for name, c := range map[string]struct {
		old, new  float64
		direction experiment.Direction
		bound     float64
		want      outcome
		says      string
	}{
		"0 against 0, at most":              {0, 0, lower, 1, experiment.VerdictGo, "which is equal"},
		"0 against 0, at least":             {0, 0, higher, 1, experiment.VerdictGo, "which is equal"},
		"0 against 0, at most a half":       {0, 0, lower, 0.5, experiment.VerdictNoGo, "1.000x"},
		"0 against 0, at least twice":       {0, 0, higher, 2, experiment.VerdictNoGo, "1.000x"},
		"0 against 1, lower is better":      {1, 0, lower, 0.01, experiment.VerdictGo, "0 in every trial of arm new and above 0 in every trial of arm old"},
		"0 against 1, higher is better":     {1, 0, higher, 0.01, experiment.VerdictNoGo, "0.000x"},
		"1 against 0, lower is better":      {0, 1, lower, 1e9, experiment.VerdictNoGo, "exceeds every multiple of it, against at most"},
		"1 against 0, higher is better":     {0, 1, higher, 1e9, experiment.VerdictGo, "exceeds every multiple of it, against at least"},
		"1 against 1":                       {1, 1, lower, 1, experiment.VerdictGo, "1.000x"},
		"a negative figure has no ratio":    {1, -1, lower, 1, experiment.VerdictInconclusive, "DifferenceAtMost"},
		"a negative baseline has no ratio":  {-1, 1, lower, 1, experiment.VerdictInconclusive, "DifferenceAtMost"},
		"0 against a negative has no ratio": {-1, 0, lower, 1, experiment.VerdictInconclusive, "DifferenceAtMost"},
	} {
		for _, statistic := range []experiment.Statistic{
			experiment.StatisticValue, experiment.StatisticMean, experiment.StatisticMax, experiment.StatisticP90,
		} {
			for _, severity := range []experiment.Severity{experiment.Blocking, experiment.Advisory} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, statistic, severity), func(t *testing.T) {
					op := experiment.RatioAtMost
					if c.direction == higher {
						op = experiment.RatioAtLeast
					}
					metric := experiment.Metric{Name: "allocs", Unit: "allocs", Direction: c.direction, Statistic: statistic}
					gate := experiment.Gate{Name: "count", Severity: severity, Condition: experiment.Condition{
						Metric: "allocs", Statistic: statistic, Op: op, Bound: &c.bound,
					}}
					got := counted(t, metric, []experiment.Gate{gate}, func(arm string, _ int) float64 {
						return map[string]float64{"old": c.old, "new": c.new}[arm]
					})
					if found := gateOf(t, got, "count"); found.Outcome != c.want || !strings.Contains(found.Message, c.says) {
						t.Errorf("%s: %s\nwant %s: %s", found.Outcome, found.Message, c.want, c.says)
					}
					if found := gateOf(t, got, "as-fast"); found.Outcome != alone.Outcome || found.Message != alone.Message {
						t.Errorf("the time: %s: %s\nwant %s: %s", found.Outcome, found.Message, alone.Outcome, alone.Message)
					}
					want := experiment.VerdictGo
					if severity == experiment.Blocking {
						want = c.want
					}
					if found := got.Candidates[0]; found.Verdict != want {
						t.Errorf("candidate: %s: %s\nwant %s", found.Verdict, found.Reason, want)
					}
				})
			}
		}
	}
}

// Trials that are 0 in part have the ratio of their means where the baseline's is certainly above 0. Otherwise only a difference decides.
func TestZeros_InPartOfTheTrials(t *testing.T) {
	t.Parallel()
	always := func(value float64) func(int) float64 { return func(int) float64 { return value } }
	every := func(n int, value float64) func(int) float64 {
		return func(trial int) float64 {
			if trial%n == 0 {
				return value
			}
			return 0
		}
	}
	but := func(n int, value float64) func(int) float64 {
		return func(trial int) float64 {
			if trial%n == 0 {
				return 0
			}
			return value
		}
	}
	for name, c := range map[string]struct {
		old, new    func(trial int) float64
		ratio, more experiment.Verdict
		says        string
		unit        string
	}{
		"a candidate with a tenth of its trials at 0":   {always(100), but(10, 300), experiment.VerdictNoGo, experiment.VerdictNoGo, "ratio of the means over blocks", ""},
		"a baseline with a tenth of its trials at 0":    {but(10, 100), always(20), experiment.VerdictGo, experiment.VerdictGo, "ratio of the means over blocks", ""},
		"a baseline that is 0 in most trials":           {every(7, 1), always(0), experiment.VerdictInconclusive, experiment.VerdictGo, "a ratio needs positive ones", ""},
		"a baseline of 0, and a candidate that rarely":  {always(0), every(5, 1), experiment.VerdictInconclusive, experiment.VerdictGo, "a ratio needs positive ones", ""},
		"a baseline of 0, and a candidate far above":    {always(0), but(5, 100), experiment.VerdictInconclusive, experiment.VerdictNoGo, "a ratio needs positive ones", ""},
		"times of 0, whose clock is too coarse":         {always(1), always(0), experiment.VerdictInconclusive, experiment.VerdictGo, "a ratio needs positive ones", "s"},
		"times of 0 of both, whose clock is too coarse": {always(0), always(0), experiment.VerdictInconclusive, experiment.VerdictInvalid, "a ratio needs positive ones", "s"},
	} {
		t.Run(name, func(t *testing.T) {
			metric := experiment.Metric{
				Name: "figure", Unit: cmp.Or(c.unit, "allocs"), Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticValue,
			}
			gate := func(name string, op experiment.Op, bound float64) experiment.Gate {
				return experiment.Gate{Name: name, Severity: experiment.Advisory, Condition: experiment.Condition{
					Metric: "figure", Statistic: experiment.StatisticValue, Op: op, Bound: &bound,
				}}
			}
			got := counted(t, metric, []experiment.Gate{gate("ratio", experiment.RatioAtMost, 1.1), gate("more", experiment.DifferenceAtMost, 1)},
				func(arm string, trial int) float64 {
					if arm == "old" {
						return c.old(trial)
					}
					return c.new(trial)
				})
			if found := gateOf(t, got, "ratio"); found.Outcome != c.ratio || !strings.Contains(found.Message, c.says) {
				t.Errorf("ratio: %s: %s\nwant %s: %s", found.Outcome, found.Message, c.ratio, c.says)
			}
			if found := gateOf(t, got, "more"); found.Outcome != c.more {
				t.Errorf("difference: %s: %s\nwant %s", found.Outcome, found.Message, c.more)
			}
			if found := got.Candidates[0]; found.Verdict != experiment.VerdictGo {
				t.Errorf("candidate: %s: %s\nwant Go by its time", found.Verdict, found.Reason)
			}
		})
	}
}

// A gate on a difference has its bound in the unit of the metric, with the baseline's level removed.
func TestDifference_DecidesInTheUnit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op       experiment.Op
		bound    float64
		old, new float64
		want     experiment.Verdict
		says     string
	}{
		"5 more, at most 5":         {experiment.DifferenceAtMost, 5, 10, 15, experiment.VerdictGo, "5.000 allocs [5.000, 5.000] more than old against at most 5.000 allocs"},
		"6 more, at most 5":         {experiment.DifferenceAtMost, 5, 10, 16, experiment.VerdictNoGo, "6.000 allocs [6.000, 6.000] more than old"},
		"none more, at most 0":      {experiment.DifferenceAtMost, 0, 10, 10, experiment.VerdictGo, ""},
		"0 against 0, at most 0":    {experiment.DifferenceAtMost, 0, 0, 0, experiment.VerdictGo, ""},
		"1 against 0, at most 0":    {experiment.DifferenceAtMost, 0, 0, 1, experiment.VerdictNoGo, ""},
		"2 fewer, at most -1":       {experiment.DifferenceAtMost, -1, 10, 8, experiment.VerdictGo, "-2.000 allocs"},
		"2 fewer, at most -3":       {experiment.DifferenceAtMost, -3, 10, 8, experiment.VerdictNoGo, ""},
		"5 more, at least 5":        {experiment.DifferenceAtLeast, 5, 10, 15, experiment.VerdictGo, ""},
		"5 more, at least 6":        {experiment.DifferenceAtLeast, 6, 10, 15, experiment.VerdictNoGo, ""},
		"negative figures have one": {experiment.DifferenceAtMost, 0, -3, -5, experiment.VerdictGo, ""},
	} {
		t.Run(name, func(t *testing.T) {
			direction := experiment.LowerIsBetter
			if c.op == experiment.DifferenceAtLeast {
				direction = experiment.HigherIsBetter
			}
			metric := experiment.Metric{Name: "allocs", Unit: "allocs", Direction: direction, Statistic: experiment.StatisticValue}
			gate := experiment.Gate{Name: "count", Severity: experiment.Blocking, Condition: experiment.Condition{
				Metric: "allocs", Statistic: experiment.StatisticValue, Op: c.op, Bound: ptr.To(c.bound),
			}}
			got := counted(t, metric, []experiment.Gate{gate}, func(arm string, _ int) float64 {
				return map[string]float64{"old": c.old, "new": c.new}[arm]
			})
			if found := gateOf(t, got, "count"); found.Outcome != c.want || !strings.Contains(found.Message, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", found.Outcome, found.Message, c.want, c.says)
			}
			if found := got.Candidates[0]; found.Verdict != c.want {
				t.Errorf("candidate: %s: %s\nwant %s", found.Verdict, found.Reason, c.want)
			}
		})
	}
}
