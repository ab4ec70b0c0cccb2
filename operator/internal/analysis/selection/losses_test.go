package selection

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// testReports are reports of attempts whose kinds a test sets.
type testReports struct{ reports }

func newReports(planned plan) *testReports {
	admission := Admission{Cells: map[*record.Attempt]Cell{}, Kinds: map[*record.Attempt]Rejection{}}
	return &testReports{reports{planned: planned, admission: admission}}
}

// add adds an attempt, which a rule rejected unless kind is empty. Trials must be added in the order of their names.
func (r *testReports) add(attempt *record.Attempt, at Cell, kind Rejection) {
	r.attempts = append(r.attempts, attempt)
	if kind != foreign && kind != altered {
		r.admission.Own, r.admission.Cells[attempt] = append(r.admission.Own, attempt), at
	}
	if kind != "" {
		r.admission.Kinds[attempt] = kind
		r.admission.Rejected = append(r.admission.Rejected, Exclusion{Kind: kind, of: attempt})
	}
}

func (r *testReports) outcomes(exp *experiment.Experiment) Outcomes {
	return outcomesOf(exp, r.reports, fatesOf(r.reports), nil)
}

// A failure in an execution that does not count is a loss, and one that did not start there is no loss.
func TestLost_CountsEveryExecutionForItsArm(t *testing.T) {
	const block, name = "w000-b0000", "w000-b0000-s00000"
	again := func(outcome record.Outcome, warmup bool) *record.Attempt {
		out := ran(block, 0, outcome)
		if out.Warmup = warmup; warmup {
			out.Trial = record.TrialName(block, 0, true)
		}
		out.ID = "other/" + out.Trial
		return out
	}
	unread := []record.Problem{{Source: record.Source{Key: "attempts/" + block + "/third/" + name + ".json"}}}
	for label, c := range map[string]struct {
		first, second     *record.Attempt
		firstIs, secondIs Rejection
		problems          []record.Problem
		lost              string
		spoilt            int
	}{
		"one execution":      {first: ran(block, 0, record.Succeeded)},
		"another one failed": {first: ran(block, 0, record.Succeeded), second: again(record.Failed, false), secondIs: superseded, lost: "1 failed in an execution that does not count"},
		"its warm-up did":    {first: ran(block, 0, record.Succeeded), second: again(record.Failed, true), secondIs: superseded, lost: "1 failed in an execution that does not count"},
		"the only one failed, and does not count": {
			first: ran(block, 0, record.Failed), firstIs: superseded, lost: "1 superseded by another execution of the block",
		},
		"another one did not start":                 {first: ran(block, 0, record.Succeeded), second: again(record.NotStarted, false), secondIs: superseded},
		"a warm-up failed before it":                {first: ran(block, 0, record.Succeeded), second: again(record.Failed, true), lost: "1 failed in a warm-up"},
		"both failed, for one reason":               {first: ran(block, 0, record.Failed), firstIs: Failed, second: again(record.Failed, true), lost: "1 failed"},
		"another one cannot be read":                {first: ran(block, 0, record.Succeeded), problems: unread, lost: "1 of no use in another execution"},
		"the only other one is under a stale lease": {first: ran(block, 0, record.Succeeded), firstIs: staleLease, problems: unread, lost: "1 under a stale lease", spoilt: 1},
	} {
		t.Run(label, func(t *testing.T) {
			from := newReports(plan{known: true, slots: map[string]*plannedSlot{name: {cell: At(0, 1), block: block}}})
			from.problems = c.problems
			for i, attempt := range []*record.Attempt{c.first, c.second} {
				if attempt != nil {
					from.add(attempt, At(0, 1), []Rejection{c.firstIs, c.secondIs}[i])
				}
			}
			got, spoilt := from.outcomes(twoArms()), 0
			for _, found := range got.fates {
				if found.invalidated() {
					spoilt++
				}
			}
			if diff := cmp.Diff(c.lost, got.Lost.Cells[At(0, 1)].Lost.String()); diff != "" || spoilt != c.spoilt {
				t.Errorf("%d are spoilt, want %d; lost (-want +got):\n%s", spoilt, c.spoilt, diff)
			}
		})
	}
}

// A trial of arm old and one of arm new are planned in each of two blocks, each after a warm-up.
func TestFates_OneForEachTrial(t *testing.T) {
	const none Rejection = "none" // No attempt.
	const elsewhere, unlike = "from another environment", "from another environment, unlike others of its block"
	blocks := []string{"w000-b0000", "w000-b0001"}
	last := record.TrialName(blocks[1], 1, false)
	key := func(trial string) string { return "attempts/" + blocks[1] + "/pod/" + trial + ".json" }
	all := plan{known: true, slots: map[string]*plannedSlot{}}
	for _, block := range blocks {
		for arm := range 2 {
			all.slots[record.TrialName(block, arm, true)] = &plannedSlot{cell: At(0, arm), block: block, warmup: true}
			all.slots[record.TrialName(block, arm, false)] = &plannedSlot{cell: At(0, arm), block: block}
		}
	}
	for label, c := range map[string]struct {
		withoutPlans bool
		kinds        [4]Rejection // Of arm old and arm new in the first block, and in the second.
		again        Rejection    // Of another execution of the last one; empty without one.
		unended      []Unfinished
		gone, unread []string // Trials.
		old, new     string   // Their losses.
		absent, gaps []string
	}{
		"all are used":                {},
		"a block ran elsewhere":       {kinds: [4]Rejection{"", "", environment, environment}, old: elsewhere, new: elsewhere},
		"one trial of it did":         {kinds: [4]Rejection{"", "", "", environment}, new: unlike},
		"one, and noise took another": {kinds: [4]Rejection{"", "", Noisy, environment}, new: unlike},
		"one, and another failed":     {kinds: [4]Rejection{"", "", Failed, environment}, old: "failed", new: unlike},
		"one, and the other is not there, which is no choice": {
			kinds: [4]Rejection{"", "", none, environment}, old: "missing", new: elsewhere, absent: []string{record.TrialName(blocks[1], 0, false)},
		},
		"one, and the other's lease was stale": {
			kinds: [4]Rejection{"", "", staleLease, environment}, old: "under a stale lease", new: elsewhere,
		},
		"the lease of one trial was stale": {
			kinds: [4]Rejection{"", "", "", staleLease}, new: "under a stale lease, unlike others of its block", absent: []string{last},
		},
		"the lease of one execution of it was, and the other ran elsewhere": {
			kinds: [4]Rejection{"", "", "", staleLease}, again: environment, new: "under a stale lease, unlike others of its block",
		},
		"and the other cannot be read": {
			kinds: [4]Rejection{"", "", "", staleLease}, unread: []string{last}, new: "under a stale lease, unlike others of its block",
		},
		"one began and never ended": {
			kinds: [4]Rejection{"", "", "", none}, unended: []Unfinished{{Cell: At(0, 1), trial: last, block: blocks[1]}}, new: LostUnfinished,
		},
		"its warm-up did, and it ran": {
			unended: []Unfinished{{Cell: At(0, 1), trial: record.TrialName(blocks[1], 1, true), block: blocks[1], warmup: true}}, new: LostUnfinished,
		},
		"one is gone": {kinds: [4]Rejection{"", "", "", none}, gone: []string{last}, new: string(altered)},
		"one is gone that had begun": {
			kinds: [4]Rejection{"", "", "", none}, unended: []Unfinished{{Cell: At(0, 1), trial: last, block: blocks[1]}}, gone: []string{last},
			new: string(altered),
		},
		"one execution is gone of several": {gone: []string{last}},
		"an unplanned trial is missing":    {gone: []string{"w000-b0001-s00007"}},
		"a trial cannot be read": {
			kinds: [4]Rejection{"", "", "", none}, unread: []string{last}, new: "unreadable",
		},
		"an unplanned trial cannot be read": {unread: []string{"w000-b0001-s00007"}},
		"without plans it may be of any arm": {
			withoutPlans: true, unread: []string{"w000-b0001-s00007"}, gaps: []string{key("w000-b0001-s00007")},
		},
		"of which there is another execution it is that one's arm": {withoutPlans: true, unread: []string{last}, new: lostUnread},
		"an object without the name of a trial is ignored":         {withoutPlans: true, unread: []string{"notes"}},
	} {
		t.Run(label, func(t *testing.T) {
			planned, exp := all, twoArms()
			if exp.Points = exp.Points[:1]; c.withoutPlans {
				planned = plan{}
			}
			from := newReports(planned)
			from.unfinished = c.unended
			for i, kind := range c.kinds {
				if kind == none {
					continue
				}
				attempt := ran(blocks[i/2], i%2, record.Succeeded)
				if kind == Failed {
					attempt.Outcome = record.Failed
				}
				from.add(attempt, At(0, i%2), kind)
			}
			if c.again != "" {
				again := ran(blocks[1], 1, record.Succeeded)
				again.ID = "other/" + last
				from.add(again, At(0, 1), c.again)
			}
			for _, trial := range c.gone {
				from.removed = append(from.removed, exclude(key(trial), altered, ""))
			}
			for _, trial := range c.unread {
				from.problems = append(from.problems, record.Problem{Source: record.Source{Key: key(trial)}})
			}
			got, gaps := from.outcomes(exp), from.findUnassigned(fatesOf(from.reports))
			var absent []string
			for _, one := range got.fates {
				if one.absent != "" {
					absent = append(absent, one.trial)
				}
			}
			lost := func(arm int) []string {
				return []string{strings.TrimPrefix(got.Lost.Cells[At(0, arm)].Lost.String(), "1 ")}
			}
			if diff := cmp.Diff([][]string{{c.old}, {c.new}, c.absent, c.gaps}, [][]string{lost(0), lost(1), absent, gaps}); diff != "" {
				t.Errorf("arm old lost, arm new lost, absent and gaps (-want +got):\n%s", diff)
			}
			s := &Selection{Admission: from.admission, Outcomes: got}
			for arm := range 2 {
				if of := s.Completions(nil)[At(0, arm)].Of; of > 2 {
					t.Errorf("it says of %d trials of arm %d whether they completed, and there are 2", of, arm)
				}
			}
			if measured := s.Trials.Planned - s.Trials.Warmups; measured != 4 {
				t.Errorf("%d trials are counted, want 4", measured)
			}
		})
	}
}

// With any objects of any number of executions, a trial completes, fails or is unknown once.
func TestCompletions_TrialCountsOnceInAnyLedger(t *testing.T) {
	const block = "w000-b0000"
	name, beside := record.TrialName(block, 1, false), record.TrialName(block, 0, false)
	key := "attempts/" + block + "/third/" + name + ".json"
	planned := plan{known: true, slots: map[string]*plannedSlot{
		beside: {cell: At(0, 0), block: block}, name: {cell: At(0, 1), block: block},
	}}
	quiet := []Rejection{foreign, altered, staleLease, superseded, notStarted}
	kinds := append(slices.Clone(quiet), telling...)
	const none Rejection = "none"
	tried := 0
	for _, first := range append(kinds, none) {
		// Of several executions of a block one counts.
		others := append(slices.Clone(kinds), none)
		if slices.Contains(telling, first) {
			others = append(slices.Clone(quiet), none)
		}
		for _, second := range others {
			for bits := range 8 {
				begun, gone, unread := bits&1 != 0, bits&2 != 0, bits&4 != 0
				from := newReports(planned)
				from.add(ran(block, 0, record.Succeeded), At(0, 0), "")
				ended := false
				for i, kind := range []Rejection{first, second} {
					attempt := ran(block, 1, record.Succeeded)
					attempt.ID = []string{"pod/", "other/"}[i] + name
					switch kind {
					case none:
						continue
					case Failed:
						attempt.Outcome = record.Failed
					case notStarted:
						attempt.Outcome = record.NotStarted
					default:
					}
					from.add(attempt, At(0, 1), kind)
					ended = ended || !slices.Contains([]Rejection{foreign, altered, notStarted}, kind)
				}
				if begun {
					from.unfinished = []Unfinished{{Cell: At(0, 1), ID: "fourth/" + name, trial: name, block: block, Repeated: ended}}
				}
				if gone {
					from.removed = []Exclusion{exclude(key, altered, "")}
				}
				if unread {
					from.problems = []record.Problem{{Source: record.Source{Key: key}}}
				}
				s := &Selection{Admission: from.admission, Outcomes: from.outcomes(twoArms())}
				what := fmt.Sprintf("executions %q and %q, begun and never ended %t, gone %t, unreadable %t", first, second, begun, gone, unread)
				at := s.Completions(nil)[At(0, 1)]
				switch {
				case at == nil:
					if first != notStarted && second != notStarted {
						t.Errorf("%s: the trial is not counted", what)
					}
				case at.Of != 1:
					t.Errorf("%s: counted %d times: %+v", what, at.Of, at)
				}
				tried++
			}
		}
	}
	if tried < 500 {
		t.Errorf("%d ledgers tried, want them all", tried)
	}
}
