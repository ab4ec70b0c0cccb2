package judge_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func way(t testing.TB, name string) fixture.Loss {
	for _, loss := range fixture.Losses() {
		if loss.Name == name {
			return loss
		}
	}
	t.Fatalf("no loss %q", name)
	return fixture.Loss{}
}

func TestLosses_NeverImproveTheVerdict(t *testing.T) {
	t.Parallel()
	type lost struct {
		how, arm string
		count    int
	}
	cases := map[string]struct {
		factor  float64 // 0 is 0.94: 6 % faster.
		edit    func(*fixture.RunSpec)
		lost    []lost
		noPlan  bool
		want    experiment.Verdict
		reason  string
		warning string
	}{
		"a candidate that loses nothing and is faster is Go": {want: fixture.Go},
		"one that times out in 16 of 30 trials is NoGo": {
			lost: []lost{{"timeout", "new", 16}}, want: fixture.NoGo, reason: "14 of 30 trials completed", warning: "arm new lost 16 of 30 trials (16 timed out)",
		},
		"also by its times, if completing is Advisory": {
			edit: fixture.CompletesGate("", assayv1alpha1.Advisory), lost: []lost{{"timeout", "new", 16}}, want: fixture.NoGo, reason: "missed over the whole interval",
		},
		"also by its times, if it need not complete often": {
			edit: fixture.CompletesGate("30%", ""), lost: []lost{{"timeout", "new", 16}}, want: fixture.NoGo, reason: "missed over the whole interval",
		},
		"three timeouts leave open how slow the candidate is": {
			edit: fixture.CompletesGate("0.9", ""), lost: []lost{{"timeout", "new", 3}}, want: fixture.Inconclusive,
		},
		"a timeout of a trial that follows another arm is in no time": {
			edit: fixture.CompletesGate("0.9", ""), lost: []lost{{"timeout", "new", 1}}, want: fixture.Go,
			warning: "arm new lost 1 of 30 trials (1 timed out), first w000-b0008-s00000",
		},
		"a bound of the baseline's timeouts does not make a Go, because its own times need not include the hang": {
			edit: fixture.CompletesGate("0.1", ""), lost: []lost{{"timeout", "old", 24}}, want: fixture.Inconclusive, reason: "so this is not yet Go",
		},
		"nor by a candidate that is slower where neither hangs": {
			factor: 1.06, edit: fixture.CompletesGate("0.1", ""), lost: []lost{{"timeout", "old", 24}}, want: fixture.Inconclusive, reason: "so this is not yet Go",
		},
		"one that crashes in 14 of 30 trials is NoGo": {lost: []lost{{"crash", "new", 14}}, want: fixture.NoGo, reason: "16 of 30 trials completed against at least 1.000: 14 failed"},
		"one failure is NoGo, as in a search":         {lost: []lost{{"memory", "new", 1}}, want: fixture.NoGo, reason: "29 of 30 trials completed"},
		"crashes under an Advisory gate make the other gates Inconclusive": {
			edit: fixture.CompletesGate("", assayv1alpha1.Advisory), lost: []lost{{"crash", "new", 14}}, want: fixture.Inconclusive,
			reason: "at the only point arm new lost 14 of 30 trials (14 failed), and the baseline 0 of 30 trials (Fisher's exact test",
		},
		"a share that may be reached is Inconclusive": {edit: fixture.CompletesGate("0.95", ""), lost: []lost{{"exit", "new", 2}}, want: fixture.Inconclusive, reason: "may still reach the bound"},
		"a share that is reached is Go":               {edit: fixture.CompletesGate("90%", ""), lost: []lost{{"exit", "new", 2}}, want: fixture.Go},
		"half of its trials missing is Inconclusive, and named": {
			lost: []lost{{"missing", "new", 15}}, want: fixture.Inconclusive, reason: "15 missing", warning: "arm new lost 15 of 30 trials (15 missing), first w000-b000",
		},
		"half of its trials missing without a plan too": {
			noPlan: true, lost: []lost{{"missing", "new", 15}}, want: fixture.Inconclusive, reason: "15 missing", warning: "arm new lost 15 of 30 trials (15 missing)",
		},
		"losses of the baseline do not excuse those of a level": {
			edit: fixture.AbsoluteGate("AtMost", "10s"), lost: []lost{{"missing", "old", 15}, {"missing", "new", 15}}, want: fixture.Inconclusive,
			reason: "and as many of no arm 0 of",
		},
		"nor of one that must be reached": {
			edit: fixture.AbsoluteGate("AtLeast", "1us"), lost: []lost{{"missing", "old", 15}, {"missing", "new", 15}}, want: fixture.Inconclusive,
			reason: "and as many of no arm 0 of",
		},
		"a level of an arm that lost nothing is Go": {edit: fixture.AbsoluteGate("AtMost", "10s"), lost: []lost{{"missing", "old", 2}}, want: fixture.Go},
		"trials that never started are missing":     {lost: []lost{{"not-started", "new", 10}}, want: fixture.Inconclusive, reason: "10 missing"},
		"trials of another experiment are lost":     {lost: []lost{{"foreign", "new", 10}}, want: fixture.Inconclusive, reason: "10 not part of this experiment"},
		"trials of another environment too":         {lost: []lost{{"environment", "new", 8}}, want: fixture.Inconclusive, reason: `environment.hard.cpuModel is "simulated" in slot 2`},
		"a metric absent in 9 trials is NoGo":       {lost: []lost{{"absent", "new", 9}}, want: fixture.NoGo, reason: "metric time is absent"},
		"a time of 0 is NoGo, not Invalid":          {lost: []lost{{"zero", "new", 1}}, want: fixture.NoGo, reason: "value of metric time is 0"},
		"a slower candidate stays NoGo when it reports a 0": {
			factor: 1.06, edit: fixture.CompletesGate("50%", ""), lost: []lost{{"zero", "new", 1}}, want: fixture.NoGo, reason: "missed over the whole interval",
		},
		"a negative time is NoGo":                    {lost: []lost{{"negative", "new", 1}}, want: fixture.NoGo, reason: "-1 s is a negative time"},
		"a time of 1e-300 s is NoGo":                 {lost: []lost{{"beyond-meaning", "new", 1}}, want: fixture.NoGo, reason: "allowed are 0 and magnitudes"},
		"another unit is NoGo":                       {lost: []lost{{"unit", "new", 1}}, want: fixture.NoGo, reason: `has unit "ms"`},
		"Succeeded beside exit code 1 is NoGo":       {lost: []lost{{"contradiction", "new", 1}}, want: fixture.NoGo, reason: "outcome is Succeeded and exitCode 1"},
		"a baseline that crashes makes Inconclusive": {lost: []lost{{"crash", "old", 9}}, want: fixture.Inconclusive, reason: "the baseline does not complete"},
		"so it does when one of its trials does":     {lost: []lost{{"crash", "old", 1}}, want: fixture.Inconclusive, reason: "the baseline does not complete"},
		"a baseline may be allowed to crash": {
			edit: fixture.CompletesGate("80%", "", "old"), lost: []lost{{"crash", "old", 1}}, want: fixture.Go,
		},
		"arms that lose alike are compared, and blocks that never ran are no loss": {
			edit: fixture.CombineEdits(fixture.CompletesGate("80%", ""), fixture.FewBlocks), lost: []lost{{"whole blocks", "", 1}, {"missing", "old", 4}, {"missing", "new", 4}}, want: fixture.Go,
			warning: "arm old lost 4 of 27 trials",
		},
		"blocks that never ran cost nothing but their number": {edit: fixture.FewBlocks, lost: []lost{{"whole blocks", "", 2}}, want: fixture.Go},
		"a planned trial that is not there leaves open whether it completed": {
			lost: []lost{{"missing", "new", 1}}, want: fixture.Inconclusive, reason: "29 of 30 trials completed against at least 1.000: 1 missing (first w000-b00",
		},
		"four of thirty are too few for the exact test, and their results are unknown": {
			lost: []lost{{"slowest", "new", 4}}, want: fixture.Inconclusive, reason: "26 of 30 trials completed against at least 1.000: 4 missing",
		},
		"nor is it a NoGo that many are not there": {
			edit: fixture.CombineEdits(fixture.CompletesGate("95%", ""), fixture.FewBlocks), lost: []lost{{"slowest", "new", 4}}, want: fixture.Inconclusive, reason: "the results of trials without an end",
		},
		"the baseline's losses leave the comparison open": {
			lost: []lost{{"missing", "old", 1}}, want: fixture.Inconclusive, reason: "the baseline does not complete",
		},
		"a share that is reached without them holds, and the exact test looks": {
			edit: fixture.CompletesGate("80%", ""), lost: []lost{{"slowest", "new", 4}}, want: fixture.Go, warning: "arm new lost 4 of 30 trials (4 missing)",
		},
	}
	for name, c := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if c.factor == 0 {
				c.factor = 0.94
			}
			l := analyzed.SimulatePair(t, c.factor, c.edit)
			for _, lost := range c.lost {
				switch lost.how {
				case "slowest":
					l.DropSlowest(lost.arm, lost.count)
					continue
				case "whole blocks":
					l.Retain(func(a record.Attempt) bool { return fixture.BlockNumber(t, &a) >= lost.count })
					continue
				}
				l.Attempts = way(t, lost.how).Spoil(rand.New(rand.NewPCG(1, 2)), l.Attempts, lost.arm, lost.count)
			}
			if c.noPlan {
				l.Waves = nil
			}
			got := l.Analyze()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
			if !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, c.warning) }) && c.warning != "" {
				t.Errorf("warnings %q, want one with %q", got.Warnings, c.warning)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

func TestRemovedTrial_IsCountedOnce(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulatePair(t, 0.94, nil)
	gone := l.Attempts[slices.IndexFunc(l.Attempts, func(a record.Attempt) bool { return a.Arm == "new" && !a.Warmup })]
	l.Retain(func(a record.Attempt) bool { return a.ID != gone.ID })
	sealed := map[string]string{"attempts/" + gone.Block + "/" + gone.ID + ".json": strings.Repeat("0", 64)}
	got := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Sealed: sealed}, 0)
	const want = "29 of 30 trials completed against at least 1.000: 1 changed since it was analysed before (first w000-b000"
	says := func(g analysis.GateResult) bool { return g.Candidate == "new" && strings.HasPrefix(g.Message, want) }
	if !slices.ContainsFunc(got.Gates, says) {
		t.Errorf("%+v, want %q", got.Gates, want)
	}
}

// Each execution of a block may lack trials that the other has. Those of one are compared, and the results of the others are unknown.
func TestLosses_TrialOfAnotherExecutionIsUnknown(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulatePair(t, 0.94, nil)
	one := &l.Attempts[slices.IndexFunc(l.Attempts, func(a record.Attempt) bool { return a.Arm == "new" && !a.Warmup })]
	one.ID = "other/" + one.Trial
	got := l.Analyze()
	const want = "29 of 30 trials completed against at least 1.000: 1 superseded by another execution of the block (first w000-b000"
	says := func(g analysis.GateResult) bool { return g.Candidate == "new" && strings.HasPrefix(g.Message, want) }
	if got.Verdict != fixture.Inconclusive || !slices.ContainsFunc(got.Gates, says) {
		t.Errorf("%s, %+v: want %s and %q", got.Verdict, got.Gates, fixture.Inconclusive, want)
	}
}

func TestCompletes_OneRowPerArm(t *testing.T) {
	t.Parallel()
	got := analyzed.SimulateScan(t, 4, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates(fixture.GainAt8(
		"1.5"))).Analyze()
	var rows []string
	for _, gate := range got.Gates {
		if gate.Op == experiment.Completes {
			rows = append(rows, gate.Candidate+" "+gate.Point+" "+string(gate.Severity)+" "+string(gate.Outcome))
		}
	}
	if want := []string{"loop  Blocking Go", "fused-naive  Blocking Go", "fused-m4r  Blocking Go"}; !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	bare := analyzed.SimulateScan(t, 4, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates()).Analyze()
	if len(bare.Gates) != 0 || bare.Verdict != "" {
		t.Errorf("a run without gates has %d and the verdict %q", len(bare.Gates), bare.Verdict)
	}
	advisory := fixture.GainAt8("1.5")
	advisory.Severity = assayv1alpha1.Advisory
	if asks := analyzed.SimulateScan(t, 4, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates(
		advisory)).Analyze(); asks.Verdict != "" {
		t.Errorf("a run that asks for nothing that decides has the verdict %q", asks.Verdict)
	}
}
