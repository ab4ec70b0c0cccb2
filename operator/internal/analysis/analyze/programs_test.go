package analyze

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/fixture"
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

func TestAttemptsOfAnotherProgram(t *testing.T) {
	arm := func(name string) func(*record.Attempt) bool {
		return func(a *record.Attempt) bool { return a.Arm == name }
	}
	in := func(name, block string) func(*record.Attempt) bool {
		return func(a *record.Attempt) bool { return a.Arm == name && a.Block == block }
	}
	cases := map[string]struct {
		tamper   func(*simulatedRun)
		excluded int
		reason   string
	}{
		"arms may differ": {
			tamper: func(l *simulatedRun) {
				executed(l, "programDigest", "blake3:a", arm("loop"))
				executed(l, "programDigest", "blake3:b", arm("fused-m4r"))
			},
		},
		"an arm is one program in all blocks": {
			tamper: func(l *simulatedRun) {
				executed(l, "programDigest", "blake3:a", arm("loop"))
				executed(l, "programDigest", "blake3:moved", in("loop", "w000-b0003"))
			},
			excluded: 8, reason: "programDigest is blake3:moved here and blake3:a there; name the arm's image by digest",
		},
		"files beside the program count too": {
			tamper: func(l *simulatedRun) {
				executed(l, "imageFilesDigest", "blake3:a", arm("fused-m4r"))
				executed(l, "imageFilesDigest", "blake3:b", in("fused-m4r", "w000-b0000"))
			},
			excluded: 8, reason: "of arm fused-m4r at this point: imageFilesDigest is blake3:b",
		},
		"so does a server": {
			tamper: func(l *simulatedRun) {
				for i := range l.attempts {
					digest := "blake3:a"
					if l.attempts[i].Block == "w000-b0002" {
						digest = "blake3:b"
					}
					l.attempts[i].Roles = []record.RoleSeen{{Name: "server", ProgramDigest: digest},
						{Name: "client", Result: true, ProgramDigest: "blake3:" + l.attempts[i].Block}}
				}
			},
			excluded: 24, reason: "programDigest of role server is blake3:b here and blake3:a there",
		},
		"attempts without digests are taken at their word": {tamper: func(*simulatedRun) {}},
		"one key that some attempts lack is no other program": {
			tamper: func(l *simulatedRun) {
				executed(l, "image", "lab/x@sha256:1", arm("loop"))
				executed(l, "programDigest", "blake3:a", func(a *record.Attempt) bool { return a.Arm == "loop" && a.Block != "w000-b0003" })
			},
		},
		"another value of a key is, whatever other keys are absent": {
			tamper: func(l *simulatedRun) {
				executed(l, "image", "lab/x@sha256:1", in("loop", "w000-b0003"))
				executed(l, "programDigest", "blake3:a", arm("loop"))
				executed(l, "programDigest", "blake3:moved", in("loop", "w000-b0003"))
			},
			excluded: 8, reason: "programDigest is blake3:moved here and blake3:a there",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := simulated(t, 4, fixture.Machine{Seed: 1, Noise: quiet}, nil)
			tc.tamper(l)
			got := l.analyze()
			if len(got.Excluded) != tc.excluded || got.Trials.Invalid != tc.excluded {
				t.Fatalf("%d excluded, %d invalid, want %d: %+v", len(got.Excluded), got.Trials.Invalid, tc.excluded, got.Excluded)
			}
			says := func(e analysis.Exclusion) bool { return strings.Contains(e.Reason, tc.reason) }
			if tc.reason != "" && !slices.ContainsFunc(got.Excluded, says) {
				t.Errorf("excluded %+v, want a reason with %q", got.Excluded, tc.reason)
			}
			checkInvariants(t, got)
		})
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
