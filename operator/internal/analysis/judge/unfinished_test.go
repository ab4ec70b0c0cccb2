package judge_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

func TestUnfinished_TrialsAreLossesOfTheirArm(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		edit     func(*fixture.RunSpec)
		arm      string
		count    int
		repeated bool
		tamper   func(*record.Started)
		want     experiment.Verdict
		complete experiment.Verdict // Of the candidate's completes gate; empty is Go.
		reason   string
	}{
		"one of the candidate's leaves open whether it completes": {
			arm: "new", count: 1, want: fixture.Inconclusive, complete: fixture.Inconclusive, reason: "29 of 30 trials completed against at least 1.000: 1 begun and never ended (first w000-b0000-s",
		},
		"trials with an unknown end do not make a NoGo": {
			arm: "new", count: 14, want: fixture.Inconclusive, complete: fixture.Inconclusive,
		},
		"a share that is reached without them holds": {
			edit: fixture.CompletesGate("0.9", ""), arm: "new", count: 1, want: fixture.Go,
		},
		"of the baseline they doubt the comparison": {
			arm: "old", count: 1, want: fixture.Inconclusive, reason: "the baseline does not complete",
		},
		"a few trials of repeated blocks are the trace of a lost node": {arm: "new", count: 2, repeated: true, want: fixture.Go},
		"an arm that had many more repeated than the baseline may have chosen which": {
			arm: "new", count: 8, repeated: true, want: fixture.Inconclusive, reason: "arm new lost 8 of 38 trials (8 begun and never ended), and the baseline 0 of 30 trials (Fisher's exact test",
		},
		"with completing Advisory the exact test counts them": {
			edit: fixture.CompletesGate("", assayv1alpha1.Advisory), arm: "new", count: 8, want: fixture.Inconclusive, complete: fixture.Inconclusive, reason: "8 begun and never ended), and the baseline",
		},
		"a marker of an unknown arm spoils the trial that was planned": {
			arm: "new", count: 10, want: fixture.Inconclusive, complete: fixture.Inconclusive, tamper: func(s *record.Started) { s.Arm = "newer" }, reason: "10 missing",
		},
		"a marker that says another arm than the plan counts for the arm of the plan": {
			arm: "new", count: 10, want: fixture.Inconclusive, complete: fixture.Inconclusive, tamper: func(s *record.Started) { s.Arm = "old" }, reason: "arm new lost 10 of",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, c.edit)
			markers := l.CutShort(c.arm, c.count, c.repeated)
			if c.tamper != nil {
				for i := range markers {
					c.tamper(&markers[i])
				}
			}
			got := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Unfinished: markers}, 0)
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
			if c.complete == "" {
				c.complete = fixture.Go
			}
			at := slices.IndexFunc(got.Gates, func(g analysis.GateResult) bool { return g.Op == experiment.Completes && g.Candidate == "new" })
			if got.Gates[at].Outcome != c.complete {
				t.Errorf("completes is %s: %s", got.Gates[at].Outcome, got.Gates[at].Message)
			}
			if c.tamper != nil && !strings.HasPrefix(got.Excluded[len(got.Excluded)-1].Attempt, "started/w000-b") {
				t.Errorf("excluded %+v, want the markers", got.Excluded)
			}
			without := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts}, 0)
			if c.tamper == nil && without.Evidence == got.Evidence {
				t.Error("the digest of the evidence does not cover the deciding objects")
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

func TestMarker_NeverImprovesTheVerdict(t *testing.T) {
	t.Parallel()
	rank := map[experiment.Verdict]int{fixture.NoGo: 0, fixture.Invalid: 1, fixture.Inconclusive: 2, fixture.Go: 3}
	random := rand.New(rand.NewPCG(1, 1))
	for range 40 {
		l := analyzed.SimulatePair(t, 0.9+0.2*random.Float64(), nil)
		before := l.Analyze().Verdict
		markers := l.CutShort("new", 1+random.IntN(12), random.IntN(2) == 0)
		got := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Unfinished: markers}, 0)
		if rank[got.Verdict] > rank[before] && got.Verdict == fixture.Go {
			t.Errorf("%s became %s with %d trials that never ended", before, got.Verdict, len(markers))
		}
	}
}
