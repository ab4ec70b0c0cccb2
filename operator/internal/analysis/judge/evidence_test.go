package judge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

func TestEvidence_ContradictingPlanIsInconclusive(t *testing.T) {
	t.Parallel()
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
			"the trials of 10 of 10 blocks were no neighbours (w000-b0000: slot 0 began at 2026-11-21T08:01:00Z and slot 1 at 2026-11-21T08:00:59.946Z)",
		},
		"a baseline of another day":      {each("old", func(_ int, a *record.Attempt) { a.StartedAt = a.StartedAt.AddDate(0, 0, -7) }), fixture.Inconclusive, "were no neighbours"},
		"a candidate of another century": {each("new", func(_ int, a *record.Attempt) { a.StartedAt = a.StartedAt.AddDate(100, 0, 0) }), fixture.Inconclusive, "were no neighbours"},
		"all of it on one node":          {each("", node("a")), fixture.Go, ""},
		"a candidate on a separate node": {each("new", node("b")), fixture.Inconclusive, `environment.soft.nodeName is "b" in slot 2 and absent in slot 3`},
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

// A level of one arm is not compared with other trials of the block.
func TestLevelGate_IgnoresNeighbourhood(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulatePair(t, 0.94, func(spec *fixture.RunSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "2s"}}
	})
	l.EachOf("old", func(a *record.Attempt) { a.StartedAt = a.StartedAt.AddDate(0, 0, -7) })
	if got := l.Analyze(); got.Verdict != fixture.Go {
		t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
	}
}

// Equal outputs and completed trials are not a Go either if a part of the evidence is missing or duplicated. Differing outputs and failed
// trials still are a NoGo.
func TestEvidence_IncompletePreventsGo(t *testing.T) {
	t.Parallel()
	gap := func(l *analyzed.Run) {
		l.Problems = append(l.Problems, record.Problem{Source: record.Source{Key: record.WaveKey(0)}, Reason: "it is truncated"})
	}
	twice := func(l *analyzed.Run) {
		var first *record.Attempt
		l.EachOf("fused-m4r", func(a *record.Attempt) {
			switch {
			case a.Warmup:
			case first == nil:
				first = a
			case a.Block == "w000-b0001":
				a.StartedAt, a.DurationSeconds = first.StartedAt, first.DurationSeconds
			}
		})
	}
	wrong := func(l *analyzed.Run) {
		l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("f", 64) })
	}
	crash := func(l *analyzed.Run) {
		l.EachOf("fused-m4r", func(a *record.Attempt) { a.Outcome, a.Result, a.ExitCode = record.Failed, nil, ptr.To(1) })
	}
	type run = []func(*analyzed.Run)
	time := fixture.GainAt8("1.1")
	outputs, completing := assayv1alpha1.Gate{Op: assayv1alpha1.ParityEqual}, assayv1alpha1.Gate{Op: assayv1alpha1.Completes}
	for name, c := range map[string]struct {
		gate  assayv1alpha1.Gate
		spoil run
		want  experiment.Verdict
		says  string
	}{
		"a time, and all of it":                  {time, nil, fixture.Go, ""},
		"a time, and a wave is missing":          {time, run{gap}, fixture.Inconclusive, "is missing, cannot be read or contradicts"},
		"outputs, and all of it":                 {outputs, nil, fixture.Go, ""},
		"outputs, and a wave is missing":         {outputs, run{gap}, fixture.Inconclusive, "is missing, cannot be read"},
		"outputs, and a trial is there twice":    {outputs, run{twice}, fixture.Inconclusive, "is a copy of the other"},
		"outputs that differ, with a gap":        {outputs, run{gap, wrong}, fixture.NoGo, "gives another output"},
		"completing, and all of it":              {completing, nil, fixture.Go, ""},
		"completing, and a wave is missing":      {completing, run{gap}, fixture.Inconclusive, "is missing, cannot be read"},
		"completing, and a trial is there twice": {completing, run{twice}, fixture.Inconclusive, "is a copy of the other"},
		"failures, with a gap":                   {completing, run{gap, crash}, fixture.NoGo, "trials completed against"},
	} {
		t.Run(name, func(t *testing.T) {
			c.gate.Name = "g"
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates(c.gate))
			for _, spoil := range c.spoil {
				spoil(l)
			}
			got := l.Analyze()
			at := slices.IndexFunc(got.Gates, func(g analysis.GateResult) bool { return g.Gate == "g" && g.Candidate == "fused-m4r" })
			if g := got.Gates[at]; g.Outcome != c.want || !strings.Contains(g.Message, c.says) {
				t.Errorf("%s: %s, want %s with %q", g.Outcome, g.Message, c.want, c.says)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// A trial of a block may be excluded because of the program, the lease or the environment in its record. If the slow trials are excluded
// this way, the others do not make a Go.
func TestExcludedTrial_OfABlockMakesNoGo(t *testing.T) {
	t.Parallel()
	one := func(spec *fixture.RunSpec) { spec.Arms = spec.Arms[1:] }
	level := fixture.CombineEdits(one, fixture.AbsoluteGate(assayv1alpha1.AtMost, "1.1"))
	lenient := fixture.CompletesGate("0.5", "")
	lease := record.Lease{Node: "a", Token: 1}
	held := func(l *analyzed.Run) {
		for i := range l.Waves[0].Blocks {
			l.Waves[0].Blocks[i].Lease = &lease
		}
		for i := range l.Attempts {
			l.Attempts[i].Lease, l.Attempts[i].Kept = &lease, &record.Kept{Lease: record.LeaseHeld}
		}
	}
	ways := map[string]func(a *record.Attempt){
		"they lack a digest":         func(a *record.Attempt) { delete(a.Environment.Soft, "programDigest") },
		"their lease had ended":      func(a *record.Attempt) { a.Kept = &record.Kept{Lease: record.LeaseEnded} },
		"they had another governor":  func(a *record.Attempt) { fixture.SetPath(t, a, "environment.hard.governor", "powersave") },
		"nothing is special of them": func(*record.Attempt) {},
	}
	for how, spoil := range ways {
		for name, c := range map[string]struct {
			edit   func(*fixture.RunSpec)
			blocks int
			by     float64
		}{
			"a level of one arm, half of its trials":             {level, 10, 2},
			"the same where half of them need not complete":      {fixture.CombineEdits(level, lenient), 10, 2},
			"a level of one arm, one trial of a bad block":       {level, 1, 20},
			"a level beside a baseline":                          {fixture.AbsoluteGate(assayv1alpha1.AtMost, "1.1"), 10, 2},
			"a ratio":                                            {nil, 4, 4},
			"a ratio where half of its trials need not complete": {lenient, 10, 2},
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				l := analyzed.SimulatePair(t, 0.94, c.edit)
				held(l)
				analyzed.Executed(l, "image", "lab/x@sha256:1", func(*record.Attempt) bool { return true })
				analyzed.Executed(l, "programDigest", "blake3:a", func(*record.Attempt) bool { return true })
				if got := l.AnalyzeLeased(lease); got.Verdict != fixture.Go {
					t.Fatalf("as it is: %s: %s", got.Verdict, got.Candidates[0].Reason)
				}
				l.EachOf("new", func(a *record.Attempt) {
					if a.Slot%experiment.VisitTrials == 1 && fixture.BlockNumber(t, a) < c.blocks {
						fixture.ScaleTime(a, c.by)
						spoil(a)
					}
				})
				got := l.AnalyzeLeased(lease)
				if got.Verdict == fixture.Go {
					t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
				}
				fixture.CheckInvariants(t, got)
			})
		}
	}
}
