package analyze

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/simulate"
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
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := simulated(t, 4, simulate.Machine{Seed: 1, Noise: quiet}, nil)
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
