package analyze_test

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestEvidence_ContradictingPlanIsInconclusive(t *testing.T) {
	each := func(arm string, edit func(i int, a *record.Attempt)) func(*analyzed.Run) {
		return func(l *analyzed.Run) {
			for i := range l.Attempts {
				if arm == "" || l.Attempts[i].Arm == arm {
					edit(i, &l.Attempts[i])
				}
			}
		}
	}
	node := func(name string) func(int, *record.Attempt) {
		return func(_ int, a *record.Attempt) { a.Environment.Soft = map[string]any{"nodeName": name} }
	}
	cases := map[string]struct {
		spoil  func(*analyzed.Run)
		want   experiment.Verdict
		reason string
	}{
		"nothing":                      {func(*analyzed.Run) {}, fixture.Go, ""},
		"times that all begin at once": {each("", func(_ int, a *record.Attempt) { a.StartedAt = time.Unix(1, 0) }), fixture.Go, ""},
		"times that run backwards": {
			each("", func(i int, a *record.Attempt) { a.StartedAt = a.StartedAt.Add(-time.Duration(i) * time.Second) }), fixture.Inconclusive,
			"the trials of 10 of 10 blocks were no neighbours (w000-b0000: slot 1 began at 2026-11-21T08:01:00.006Z and slot 2 at 2026-11-21T08:00:59.95Z)",
		},
		"a baseline of another day":      {each("old", func(_ int, a *record.Attempt) { a.StartedAt = a.StartedAt.AddDate(0, 0, -7) }), fixture.Inconclusive, "were no neighbours"},
		"a candidate of another century": {each("new", func(_ int, a *record.Attempt) { a.StartedAt = a.StartedAt.AddDate(100, 0, 0) }), fixture.Inconclusive, "were no neighbours"},
		"all of it on one node":          {each("", node("a")), fixture.Go, ""},
		"a candidate on a separate node": {each("new", node("b")), fixture.Inconclusive, `environment.soft.nodeName is absent in slot 0 and "b" in slot 1`},
		"a plan with another baseline":   {func(l *analyzed.Run) { l.Waves[0].Arms = []record.Arm{{Name: "old"}, {Name: "new", Baseline: true}} }, fixture.Inconclusive, "contradicts the experiment"},
		"the newest plan that cannot be read": {func(l *analyzed.Run) {
			l.Problems = []record.Problem{{Source: record.Source{Key: "waves/000/wave.json"}, Reason: "x"}}
		}, fixture.Inconclusive, "waves/000/wave.json"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			c.spoil(l)
			got := l.Analyze()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// Warnings report contradictions in a ledger, and deviations from the design of the run.
func TestStrictWarnings_OverlapAndFewBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*analyzed.Run)
		want  string
	}{
		"nothing": {func(*analyzed.Run) {}, ""},
		"trials that began before the one before had ended": {func(l *analyzed.Run) {
			for i := range l.Attempts {
				l.Attempts[i].DurationSeconds = 5000
			}
		}, "trials of 10 blocks ran at the same time by their own clock (w000-b0000: slot 1 began 5e+03 s before slot 0 ended)"},
		"trials a clock's adjustment apart": {func(l *analyzed.Run) {
			for i := range l.Attempts {
				l.Attempts[i].DurationSeconds += 0.05
			}
		}, ""},
		"more blocks than the design allows": {func(l *analyzed.Run) { l.Exp.Plan.Design.Blocks.Max = 9 }, "10 screening blocks ran every arm at every point, and spec.design.blocks.max allows 9"},
		"fewer blocks than asked for":        {func(l *analyzed.Run) { l.Exp.Plan.Design.Blocks.Min = 40 }, "the figures rest on 10 blocks, and spec.design.blocks.min asks for at least 40"},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			c.spoil(l)
			said := strings.Join(l.Analyze().Warnings, "\n")
			if c.want == "" && (strings.Contains(said, "at the same time") || strings.Contains(said, "blocks.m")) ||
				!strings.Contains(said, c.want) {
				t.Errorf("warnings:\n%s\nwant %q", said, c.want)
			}
		})
	}
}

// A level of one arm is not compared with other trials of the block.
func TestLevelGate_IgnoresNeighbourhood(t *testing.T) {
	l := analyzed.SimulatePair(t, 0.94, func(spec *fixture.RunSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "2s"}}
	})
	l.EachOf("old", func(a *record.Attempt) { a.StartedAt = a.StartedAt.AddDate(0, 0, -7) })
	if got := l.Analyze(); got.Verdict != fixture.Go {
		t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
	}
}
