package analyze_test

import (
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// A trial of a block may be excluded because of the program, the lease or the environment in its record. If the slow trials are excluded
// this way, the others do not make a Go.
func TestExcludedTrial_OfABlockMakesNoGo(t *testing.T) {
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
				seen := map[string]bool{}
				l.EachOf("new", func(a *record.Attempt) {
					if !seen[a.Block] && fixture.BlockNumber(t, a) < c.blocks {
						fixture.ScaleTime(a, c.by)
						spoil(a)
					}
					seen[a.Block] = true
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

// A whole block under a stale lease may have run beside another run, and is not a loss of an arm.
func TestStaleLease_WholeBlockIsNoLoss(t *testing.T) {
	lease, other := record.Lease{Node: "a", Token: 1}, record.Lease{Node: "a", Token: 2}
	l := analyzed.SimulatePair(t, 0.94, fixture.CombineEdits(fixture.FewBlocks, fixture.AbsoluteGate(assayv1alpha1.AtMost, "1.1")))
	for i := range l.Waves[0].Blocks {
		l.Waves[0].Blocks[i].Lease = &lease
		if i < 2 {
			l.Waves[0].Blocks[i].Lease = &other
		}
	}
	for i := range l.Attempts {
		l.Attempts[i].Lease = &lease
		if fixture.BlockNumber(t, &l.Attempts[i]) < 2 {
			l.Attempts[i].Lease = &other
		}
	}
	if got := l.AnalyzeLeased(lease); got.Verdict != fixture.Go || got.Trials.Invalid != 8 {
		t.Errorf("%s: %s; %+v", got.Verdict, got.Candidates[0].Reason, got.Trials)
	}
}
