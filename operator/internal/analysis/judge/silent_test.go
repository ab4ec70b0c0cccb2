package judge_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// A control that cannot move, because its clock shows no step, counts as missing and prevents a Go.
func TestControls_SilentClockPreventsGo(t *testing.T) {
	t.Parallel()
	level := func(spec *fixture.RunSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "200ms", Candidate: "new"}}
	}
	count := func(spec *fixture.RunSpec) { level(spec); spec.Gates[0].Bound = "1" }
	noisy := func(value float64) func(*rand.Rand, int) float64 {
		return func(random *rand.Rand, _ int) float64 { return value * math.Exp(0.01*random.NormFloat64()) }
	}
	always := func(value float64) func(*rand.Rand, int) float64 {
		return func(*rand.Rand, int) float64 { return value }
	}
	type times map[string]func(*rand.Rand, int) float64
	for name, c := range map[string]struct {
		edit   func(*fixture.RunSpec)
		unit   string
		times  times
		phases times
		want   experiment.Verdict
		reason string
	}{
		"the null arm's clock is as fine as the others'": {
			times: times{"old": noisy(0.1), "new": noisy(0.05), "null": noisy(0.1)}, want: fixture.Go,
		},
		"the null arm reads the same in every trial": {
			times: times{"old": noisy(0.1), "new": noisy(0.05), "null": always(0.1)}, want: fixture.Inconclusive, reason: "cannot be compared",
		},
		"all arms do, a long way apart": {
			times: times{"old": always(0.1), "new": always(0.01), "null": always(0.1)}, want: fixture.Inconclusive, reason: "cannot be compared",
		},
		"the null arm reads 0 beside the clocks of others": {
			edit: level, times: times{"old": noisy(0.1), "new": noisy(0.05), "null": always(0)}, want: fixture.Inconclusive, reason: "cannot be compared",
		},
		"and so does the baseline": {
			edit: level, times: times{"old": always(0), "new": noisy(0.05), "null": always(0)}, want: fixture.Inconclusive, reason: "cannot be compared",
		},
		"a count may be 0 in both": {
			edit: count, unit: "errors", times: times{"old": always(0), "new": always(0), "null": always(0)}, want: fixture.Go,
		},
		"or of either now and then": {
			edit: count, unit: "errors", times: times{
				"old":  func(_ *rand.Rand, at int) float64 { return float64(at % 7 / 6) },
				"new":  always(0),
				"null": func(_ *rand.Rand, at int) float64 { return float64(at % 5 / 4) },
			}, want: fixture.Go,
		},
		"and not of one alone": {
			edit: count, unit: "errors", times: times{"old": always(0), "new": always(0), "null": noisy(5)}, want: fixture.Inconclusive, reason: "nothing was changed",
		},
		"a control phase reads the same in every trial": {
			times:  times{"old": noisy(0.1), "new": noisy(0.05), "null": noisy(0.1)},
			phases: times{"old": noisy(0.1), "new": always(0.1), "null": noisy(0.1)}, want: fixture.Inconclusive, reason: "cannot be compared",
		},
		"a control phase that moves by less than its clock shows": {
			times:  times{"old": noisy(0.1), "new": noisy(0.05), "null": noisy(0.1)},
			phases: times{"old": always(0.01), "new": always(0.01), "null": always(0.01)}, want: fixture.Inconclusive, reason: "cannot be compared",
		},
		"a control phase that is measured": {
			times:  times{"old": noisy(0.1), "new": noisy(0.05), "null": noisy(0.1)},
			phases: times{"old": noisy(0.01), "new": noisy(0.01), "null": noisy(0.01)}, want: fixture.Go,
		},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 11))
			l := analyzed.SimulatePair(t, 1, func(spec *fixture.RunSpec) {
				spec.Design.NullArm = true
				if c.phases != nil {
					spec.Design.ControlPhases = []string{"load"}
				}
				if c.edit != nil {
					c.edit(spec)
				}
			})
			if c.unit == "" {
				c.unit = "s"
			}
			l.Exp.Plan.Metrics[0].Unit = c.unit
			for i := range l.Attempts {
				a := &l.Attempts[i]
				result := *a.Result
				result.Metrics = map[string]*record.Metric{"time": {Unit: c.unit, Value: ptr.To(c.times[a.Arm](random, i))}}
				if c.phases != nil {
					result.Phases = []record.Phase{{Name: "load", Samples: []float64{c.phases[a.Arm](random, i)}}}
				}
				a.Result = &result
			}
			got := l.Analyze()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
		})
	}
}
