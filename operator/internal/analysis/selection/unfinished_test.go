package selection_test

import (
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
	"assay.dev/assay/operator/test/folderledger"
)

func TestMarker_UnknownContentIsRejected(t *testing.T) {
	t.Parallel()
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
			l := folderledger.New(t)
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

// A marker may be invalid in several ways. It is then reported, ignored, or counted once per start.
func TestMarker_WhichCount(t *testing.T) {
	t.Parallel()
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
			markers := c.tamper(l.CutShort("new", 1, false))
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
