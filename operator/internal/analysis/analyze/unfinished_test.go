package analyze_test

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
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

// cutShort leaves markers of the first trials of an arm, of an execution that another one replaced where they were repeated, else in
// place of their attempts.
func cutShort(l *analyzed.Run, arm string, count int, repeated bool) []record.Started {
	var out []record.Started
	l.Attempts = slices.DeleteFunc(l.Attempts, func(a record.Attempt) bool {
		if a.Arm != arm || len(out) == count {
			return false
		}
		out = append(out, record.Started{
			Schema: record.StartedSchema, ID: "lost_1/" + a.Trial, Trial: a.Trial, Block: a.Block, Point: a.Point, Arm: a.Arm, StartedAt: "2026-11-21T08:00:00Z",
		})
		return !repeated
	})
	return out
}

func TestUnfinished_TrialsAreLossesOfTheirArm(t *testing.T) {
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
			arm: "new", count: 1, want: fixture.Inconclusive, complete: fixture.Inconclusive, reason: "19 of 20 trials completed against at least 1.000: 1 begun and never ended (first w000-b0000-s",
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
			arm: "new", count: 8, repeated: true, want: fixture.Inconclusive, reason: "arm new lost 8 of 28 trials (8 begun and never ended), and the baseline 0 of 20 trials (Fisher's exact test",
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
			markers := cutShort(l, c.arm, c.count, c.repeated)
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
	rank := map[experiment.Verdict]int{fixture.NoGo: 0, fixture.Invalid: 1, fixture.Inconclusive: 2, fixture.Go: 3}
	random := rand.New(rand.NewPCG(1, 1))
	for range 40 {
		l := analyzed.SimulatePair(t, 0.9+0.2*random.Float64(), nil)
		before := l.Analyze().Verdict
		markers := cutShort(l, "new", 1+random.IntN(12), random.IntN(2) == 0)
		got := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Unfinished: markers}, 0)
		if rank[got.Verdict] > rank[before] && got.Verdict == fixture.Go {
			t.Errorf("%s became %s with %d trials that never ended", before, got.Verdict, len(markers))
		}
	}
}

func TestMarker_UnknownContentIsRejected(t *testing.T) {
	marker := `{"schema":"assay.dev/started/v1alpha1","id":"p_1/w000-b0000-s00001","trial":"w000-b0000-s00001","block":"w000-b0000","point":"","arm":"new","startedAt":"2026-11-21T08:00:00Z"}`
	cases := map[string]struct{ from, to, want string }{
		"an unknown field":        {`"arm"`, `"arms":"x","arm"`, `unknown field "arms"`},
		"a field that is twice":   {`"arm"`, `"arm":"old","arm"`, `duplicate field "arm"`},
		"no arm":                  {`"new"`, `""`, "arm is missing"},
		"an invalid time":         {"2026-11-21T08:00:00Z", "yesterday", `invalid startedAt "yesterday"`},
		"a key of another trial":  {`s00001","block`, `s00002","block`, "it was moved or changed"},
		"an unknown schema":       {"started/v1alpha1", "started/v2", `invalid schema "assay.dev/started/v2"`},
		"no object":               {"{", "[", "it does not name the trial that started"},
		"a number instead of arm": {`"new"`, `7`, "cannot unmarshal number"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newFolderLedger(t)
			l.Write(ledger.StartedKey("w000-b0000", "p_1", "w000-b0000-s00001"), []byte(strings.Replace(marker, c.from, c.to, 1)))
			got := l.Analyze()
			if !slices.ContainsFunc(got.Excluded, func(e analysis.Exclusion) bool {
				return strings.HasPrefix(e.Attempt, "started/") && strings.Contains(e.Reason, c.want)
			}) {
				t.Errorf("excluded %+v, want a marker with %q", got.Excluded, c.want)
			}
		})
	}
}

func TestUnfinished_TrialsAreReported(t *testing.T) {
	l := analyzed.SimulateScan(t, 3, fixture.Machine{}, nil)
	markers := append(cutShort(l, "loop", 1, true), cutShort(l, "fused-m4r", 1, false)...)
	found := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Unfinished: markers}, 0)
	got := strings.Join(found.Warnings, "\n")
	for _, want := range []string{"1 of arm fused-m4r, 1 of arm loop", markers[0].ID, "another execution of 1 of them ended"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}
}

// A marker may be invalid in several ways. It is then reported, ignored, or counted once per start.
func TestMarker_WhichCount(t *testing.T) {
	for name, c := range map[string]struct {
		tamper   func(markers []record.Started) []record.Started
		lost     string // Of the candidate, as the warning has it; empty is nothing.
		excluded string
		complete experiment.Verdict
	}{
		"as it was": {func(m []record.Started) []record.Started { return m }, "1 begun and never ended", "", fixture.Inconclusive},
		"two executions that did not end are two losses of one trial": {func(m []record.Started) []record.Started {
			second := m[0]
			second.ID = "lost_2/" + second.Trial
			return append(m, second)
		}, "2 begun and never ended", "", fixture.Inconclusive},
		"at a point that is not there": {func(m []record.Started) []record.Started {
			m[0].Point = "size=2"
			return m
		}, "1 missing", `the experiment has no point "size=2"`, fixture.Inconclusive},
		"of an arm that is not there": {func(m []record.Started) []record.Started {
			m[0].Arm = "newer"
			return m
		}, "1 missing", `the experiment has no arm "newer"`, fixture.Inconclusive},
		"of a trial that no wave planned": {func(m []record.Started) []record.Started {
			m[0].Trial = record.TrialName(m[0].Block, 77, false)
			m[0].ID = "lost_1/" + m[0].Trial
			return m
		}, "1 missing", "no wave planned trial w000-b0000-s00077", fixture.Inconclusive},
		"of a wave that is not looked at yet": {func(m []record.Started) []record.Started {
			m[0].Block = record.BlockName(1, 10)
			m[0].Trial = record.TrialName(m[0].Block, 0, false)
			m[0].ID = "lost_1/" + m[0].Trial
			return m
		}, "1 missing", "", fixture.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			markers := c.tamper(cutShort(l, "new", 1, false))
			got := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Unfinished: markers}, 0)
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, c.lost) {
				t.Errorf("warnings %s, want %q", warnings, c.lost)
			}
			if found := slices.ContainsFunc(got.Excluded, func(e analysis.Exclusion) bool {
				return strings.HasPrefix(e.Attempt, "started/") && strings.Contains(e.Reason, c.excluded)
			}); found != (c.excluded != "") {
				t.Errorf("excluded %+v, want %q", got.Excluded, c.excluded)
			}
			at := slices.IndexFunc(got.Gates, func(g analysis.GateResult) bool { return g.Op == experiment.Completes && g.Candidate == "new" })
			if got.Gates[at].Outcome != c.complete {
				t.Errorf("completes is %s: %s", got.Gates[at].Outcome, got.Gates[at].Message)
			}
			fixture.CheckInvariants(t, got)
		})
	}
	t.Run("of a warm-up that is not compared", func(t *testing.T) {
		l := analyzed.SimulatePair(t, 0.94, func(spec *fixture.RunSpec) { spec.Design.WarmupTrials = 1 })
		block := l.Waves[0].Blocks[0]
		slot := slices.IndexFunc(block.Warmup, func(cell int) bool { return l.Waves[0].Cells[cell].Arm == 1 })
		trial := record.TrialName(block.ID, slot, true)
		got := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Unfinished: []record.Started{{
			Schema: record.StartedSchema, ID: "lost_1/" + trial, Trial: trial, Block: block.ID, Arm: "new", StartedAt: "2026-11-21T08:00:00Z",
		}}}, 0)
		if without := l.Analyze(); got.Verdict != fixture.Go || got.Trials != without.Trials {
			t.Errorf("%s: %s; trials %+v, and %+v without it", got.Verdict, got.Candidates[0].Reason, got.Trials, without.Trials)
		}
	})
}
