package analyze

import (
	"maps"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
)

// executed gives the attempts that are chosen a soft key.
func executed(l *simulatedRun, key, value string, chosen func(*record.Attempt) bool) {
	for i := range l.attempts {
		if a := &l.attempts[i]; chosen(a) {
			a.Environment.Soft = maps.Clone(a.Environment.Soft)
			a.Environment.Soft[key] = value
		}
	}
}

// Whatever is not compared because of what its record says of the program, the lease or the environment of one trial of a block: where the
// slow trials are those, no Go rests on the others.
func TestSingleTrialsOfABlockThatAreLeftOutWinNothing(t *testing.T) {
	one := func(spec *runSpec) { spec.Arms = spec.Arms[1:] }
	level := both(one, absolute(assayv1alpha1.AtMost, "1.1"))
	lenient := completes("0.5", "")
	lease := record.Lease{Node: "a", Token: 1}
	held := func(l *simulatedRun) {
		for i := range l.waves[0].Blocks {
			l.waves[0].Blocks[i].Lease = &lease
		}
		for i := range l.attempts {
			l.attempts[i].Lease, l.attempts[i].Kept = &lease, &record.Kept{Lease: record.LeaseHeld}
		}
	}
	ways := map[string]func(a *record.Attempt){
		"they lack a digest":         func(a *record.Attempt) { delete(a.Environment.Soft, "programDigest") },
		"their lease had ended":      func(a *record.Attempt) { a.Kept = &record.Kept{Lease: record.LeaseEnded} },
		"they had another governor":  func(a *record.Attempt) { set(t, a, "environment.hard.governor", "powersave") },
		"nothing is special of them": func(*record.Attempt) {},
	}
	for how, spoil := range ways {
		for name, c := range map[string]struct {
			edit   func(*runSpec)
			blocks int
			by     float64
		}{
			"a level of one arm, half of its trials":             {level, 10, 2},
			"the same where half of them need not complete":      {both(level, lenient), 10, 2},
			"a level of one arm, one trial of a bad block":       {level, 1, 20},
			"a level beside a baseline":                          {absolute(assayv1alpha1.AtMost, "1.1"), 10, 2},
			"a ratio":                                            {nil, 4, 4},
			"a ratio where half of its trials need not complete": {lenient, 10, 2},
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				l := pair(t, 0.94, c.edit)
				held(l)
				executed(l, "image", "lab/x@sha256:1", func(*record.Attempt) bool { return true })
				executed(l, "programDigest", "blake3:a", func(*record.Attempt) bool { return true })
				if got := l.leased(lease); got.Verdict != goes {
					t.Fatalf("as it is: %s: %s", got.Verdict, got.Candidates[0].Reason)
				}
				seen := map[string]bool{}
				l.each("new", func(a *record.Attempt) {
					if !seen[a.Block] && numbered(t, a) < c.blocks {
						scaleTime(a, c.by)
						spoil(a)
					}
					seen[a.Block] = true
				})
				got := l.leased(lease)
				if got.Verdict == goes {
					t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
				}
				checkInvariants(t, got)
			})
		}
	}
}

// A whole block under a stale lease was another one's time and is nobody's loss.
func TestABlockUnderAStaleLeaseIsNobodysLoss(t *testing.T) {
	lease, other := record.Lease{Node: "a", Token: 1}, record.Lease{Node: "a", Token: 2}
	l := pair(t, 0.94, both(few, absolute(assayv1alpha1.AtMost, "1.1")))
	for i := range l.waves[0].Blocks {
		l.waves[0].Blocks[i].Lease = &lease
		if i < 2 {
			l.waves[0].Blocks[i].Lease = &other
		}
	}
	for i := range l.attempts {
		l.attempts[i].Lease = &lease
		if numbered(t, &l.attempts[i]) < 2 {
			l.attempts[i].Lease = &other
		}
	}
	if got := l.leased(lease); got.Verdict != goes || got.Trials.Invalid != 8 {
		t.Errorf("%s: %s; %+v", got.Verdict, got.Candidates[0].Reason, got.Trials)
	}
}

// leased judges a run that held a lease.
func (l *simulatedRun) leased(lease record.Lease) *analysis.Analysis {
	taken := record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: l.exp.Run, Lease: lease, AcquiredAt: time.Unix(0, 0)}}}
	return Evidence(l.exp, record.Evidence{Waves: l.waves, Attempts: l.attempts, Leases: taken}, 0)
}
