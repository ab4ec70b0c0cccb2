package judge_test

import (
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestChangedProgram_IsInvalid(t *testing.T) {
	t.Parallel()
	relative := assayv1alpha1.Gate{Name: "relative", Metric: "throughput", At: fixture.At8, Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"}
	absolute := assayv1alpha1.Gate{Name: "absolute", Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "1s"}
	from := func(arm string) func(*record.Attempt) bool {
		return func(a *record.Attempt) bool { return a.Arm == arm && a.Block >= "w000-b0002" }
	}
	const digests = "is blake3:a in 24 trials and blake3:b in 72 trials"
	cases := map[string]struct {
		tamper func(l *analyzed.Run)
		// invalid are the gates and candidates that are not judged.
		invalid map[string][]string
		says    string
	}{
		"a candidate's program": {
			tamper:  func(l *analyzed.Run) { analyzed.Executed(l, "programDigest", "blake3:b", from("fused-m4r")) },
			invalid: map[string][]string{"fused-m4r": {"relative", "absolute"}},
			says:    "arm fused-m4r changed during the run: programDigest " + digests,
		},
		"the files of its image": {
			tamper:  func(l *analyzed.Run) { analyzed.Executed(l, "imageFilesDigest", "blake3:b", from("fused-m4r")) },
			invalid: map[string][]string{"fused-m4r": {"relative", "absolute"}},
			says:    "imageFilesDigest " + digests,
		},
		"the image that it names": {
			tamper:  func(l *analyzed.Run) { analyzed.Executed(l, "image", "lab/scan@sha256:b", from("fused-m4r")) },
			invalid: map[string][]string{"fused-m4r": {"relative", "absolute"}},
			says:    "image is lab/scan@sha256:a in 24 trials and lab/scan@sha256:b in 72 trials",
		},
		"the baseline's, with which all are compared": {
			tamper:  func(l *analyzed.Run) { analyzed.Executed(l, "programDigest", "blake3:b", from("loop")) },
			invalid: map[string][]string{"fused-m4r": {"relative"}, "fused-naive": {"relative"}},
			says:    "arm loop changed during the run: programDigest " + digests,
		},
		"and failed in all trials that ran the other one": {
			tamper: func(l *analyzed.Run) {
				analyzed.Executed(l, "programDigest", "blake3:b", from("fused-m4r"))
				for i := range l.Attempts {
					if a := &l.Attempts[i]; from("fused-m4r")(a) {
						a.Outcome, a.Result, a.Message = record.Failed, nil, "exit status 1"
					}
				}
			},
			invalid: map[string][]string{"fused-m4r": {"relative", "absolute"}},
			says:    digests,
		},
		"no: each arm has its own": {
			tamper: func(l *analyzed.Run) {
				analyzed.Executed(l, "programDigest", "blake3:c", func(a *record.Attempt) bool { return a.Arm == "fused-m4r" })
			},
		},
		"no: only another execution of a block, which does not count": {
			tamper: func(l *analyzed.Run) {
				for _, a := range l.Attempts {
					if a.Block == "w000-b0001" && a.Slot < 3 && !a.Warmup {
						a.ID = "pod-lost/" + a.Trial
						l.Attempts = append(l.Attempts, a)
					}
				}
				analyzed.Executed(l, "programDigest", "blake3:b", func(a *record.Attempt) bool { return strings.HasPrefix(a.ID, "pod-lost") })
			},
		},
	}
	for name, tc := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates(relative, absolute))
			all := func(*record.Attempt) bool { return true }
			analyzed.Executed(l, "programDigest", "blake3:a", all)
			analyzed.Executed(l, "imageFilesDigest", "blake3:a", all)
			analyzed.Executed(l, "image", "lab/scan@sha256:a", all)
			tc.tamper(l)
			got := l.Analyze()
			for _, gate := range got.Gates {
				want := false
				for _, name := range tc.invalid[gate.Candidate] {
					want = want || name == gate.Gate
				}
				if invalid := gate.Outcome == experiment.VerdictInvalid; invalid != want || want && !strings.Contains(gate.Message, tc.says) {
					t.Errorf("%s of %s: %s, %s", gate.Gate, gate.Candidate, gate.Outcome, gate.Message)
				}
			}
			warned := slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, "changed during the run: ") })
			if warned != (len(tc.invalid) > 0) {
				t.Errorf("warnings %q", got.Warnings)
			}
			for candidate := range tc.invalid {
				if c := find(t, got.Candidates, candidate); c.Verdict == experiment.VerdictGo {
					t.Errorf("%s is Go", candidate)
				}
			}
			fixture.CheckInvariants(t, got)
		})
	}
}
