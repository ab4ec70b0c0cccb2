package selection

import (
	order "cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/record"
)

// twoArms is an experiment of the arms old and new at two points.
func twoArms() *experiment.Experiment {
	return &experiment.Experiment{
		Points: []record.Point{{Key: "size=1"}, {Key: "size=2"}}, Arms: []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}},
	}
}

// ran is an attempt of a slot of a block.
func ran(block string, slot int, outcome record.Outcome) *record.Attempt {
	trial := record.TrialName(block, slot, false)
	return &record.Attempt{ID: "pod/" + trial, Trial: trial, Block: block, Slot: slot, Outcome: outcome}
}

func TestCompletions_FirstFailedAndFirstUnknownTrialAreNamed(t *testing.T) {
	s := &Selection{Admission: Admission{Cells: map[*record.Attempt]Cell{}, Kinds: map[*record.Attempt]Rejection{}}}
	add := func(attempt *record.Attempt, kind Rejection) {
		s.Cells[attempt], s.Kinds[attempt] = At(0, 1), kind
	}
	for slot := range 8 {
		add(ran("w000-b0001", slot, record.Failed), Failed)
	}
	add(ran("w000-b0000", 3, record.Succeeded), "")
	warmup := ran("w000-b0002", 0, record.Succeeded)
	warmup.Warmup = true
	add(warmup, "")
	add(ran("w000-b0003", 0, record.Succeeded), superseded)
	add(ran("w001-b0004", 0, record.TimedOut), Failed)
	for _, block := range []string{"w000-b0006", "w000-b0005", "w000-b0007"} {
		s.fates = append(s.fates, fate{trial: record.TrialName(block, 1, false), block: block, cell: At(0, 1), absent: lostMissing})
	}
	for name, c := range map[string]struct {
		in            func(string) bool
		of, done      int
		first, unseen string
		ran           []string
	}{
		"of all blocks": {nil, 13, 1, "w000-b0001-s00000", "w000-b0005-s00001", []string{"w000-b0000", "w000-b0001", "w001-b0004"}},
		"of some":       {func(block string) bool { return strings.HasPrefix(block, "w001") }, 1, 0, "w001-b0004-s00000", "", []string{"w001-b0004"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.Completions(c.in)[At(0, 1)]
			if got.Of != c.of || got.Done != c.done || got.First.Trial != c.first || got.Unseen != c.unseen {
				t.Errorf("%d of %d, first %s, unseen %q; want %d of %d, %s, %q", got.Done, got.Of, got.First.Trial, got.Unseen, c.done, c.of, c.first,
					c.unseen)
			}
			var blocks []string
			for block := range s.Ran(c.in)[At(0, 1)] {
				blocks = append(blocks, block)
			}
			slices.Sort(blocks)
			if diff := cmp.Diff(c.ran, blocks); diff != "" {
				t.Errorf("blocks that told something (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompletionAdd_FirstTrialOfAllCellsIsNamed(t *testing.T) {
	cell := func(first, unseen string) *Completion {
		out := &Completion{Of: 2, Unseen: unseen, How: "how " + unseen, Why: "why " + first}
		if first != "" {
			out.First = &record.Attempt{Trial: first}
		}
		return out
	}
	for name, c := range map[string]struct {
		cells []*Completion
		want  string
	}{
		"nothing failed":                   {[]*Completion{cell("", ""), cell("", "")}, " "},
		"in the first":                     {[]*Completion{cell("a", "b"), cell("", "")}, "a b"},
		"in the second":                    {[]*Completion{cell("", ""), cell("a", "b")}, "a b"},
		"in both, and in the first before": {[]*Completion{cell("a", "c"), cell("b", "d")}, "a c"},
		"and in the second before":         {[]*Completion{cell("b", "d"), cell("a", "c")}, "a c"},
		"cells without trials are skipped": {[]*Completion{nil, cell("b", "d"), nil}, "b d"},
	} {
		t.Run(name, func(t *testing.T) {
			all := Completion{Failures: Losses{}, Blocks: map[string]bool{}}
			for _, one := range c.cells {
				all.Add(one)
			}
			got := " " + all.Unseen
			if all.First != nil {
				got = all.First.Trial + got
			}
			if got != c.want || all.First != nil && all.Why != "why "+all.First.Trial || all.Unseen != "" && all.How != "how "+all.Unseen {
				t.Errorf("%q, want %q: %+v", got, c.want, all)
			}
		})
	}
}

func TestLosses_ZeroCountIsNotPrinted(t *testing.T) {
	if got := (Losses{"failed": 0, "missing": 2, "unusable": 1}).String(); got != "2 missing, 1 unusable" {
		t.Error(got)
	}
}

func TestLeaseIndex_StaleLeases(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	lease := record.Lease{Node: "a", Token: 3}
	taken := record.Leases{Known: true, Taken: []record.LeaseTaken{{Lease: lease, Run: record.Run{UID: "u"}}}}
	ended := func(after time.Duration) record.Leases {
		out := taken
		out.Ends = []record.LeaseEnd{{Lease: lease, Run: record.Run{UID: "u"}, EndedAt: start.Add(after)}}
		return out
	}
	others := func(leases record.Leases) record.Leases {
		for i := range leases.Taken {
			leases.Taken = slices.Clone(leases.Taken)
			leases.Taken[i].Run.UID = "o"
		}
		return leases
	}
	for name, c := range map[string]struct {
		leases record.Leases
		lease  *record.Lease
		kept   *record.Kept
		want   string
	}{
		"a run without leases":                        {record.Leases{}, nil, nil, ""},
		"one beside others that have them":            {taken, nil, nil, ""},
		"a ledger that keeps no leases":               {record.Leases{}, &lease, nil, ""},
		"it was taken and never ended":                {taken, &lease, nil, ""},
		"it was never taken":                          {record.Leases{Known: true}, &lease, nil, "no record that the run ever held node a with token 3"},
		"another run took it":                         {others(taken), &lease, nil, "no record"},
		"it ended after the trial":                    {ended(2 * time.Minute), &lease, nil, ""},
		"it ended before the trial did":               {ended(30 * time.Second), &lease, nil, "it ended at 2026-11-21T08:01:00Z"},
		"the ledger had its end when the trial ended": {ended(2 * time.Minute), &lease, &record.Kept{Lease: record.LeaseEnded}, "the ledger had the end of the lease"},
		"the lease was held, against the clocks":      {ended(30 * time.Second), &lease, &record.Kept{Lease: record.LeaseHeld}, ""},
		"it ended before the trial did, by a clock that may be ahead by as much": {
			ended(30 * time.Second), &lease, &record.Kept{Clock: &record.Clock{AheadSeconds: 25, UncertaintySeconds: 10}}, "",
		},
		"the lease was not read, so that clocks are compared": {ended(30 * time.Second), &lease, &record.Kept{}, "it ended at 2026-11-21T08:01:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			attempt := &record.Attempt{Lease: c.lease, Kept: c.kept, StartedAt: start, DurationSeconds: 60}
			if got := indexLeases(c.leases, "u").stale(attempt); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestUnknownBuild_NamesTheBuildsOfTheArm(t *testing.T) {
	exp := twoArms()
	exp.Cells = []record.Cell{
		{Point: 0, Arm: 0}, {Point: 0, Arm: 1, Build: "a"}, {Point: 0, Arm: 1, Build: "b"}, {Point: 1, Arm: 0, Build: "c"},
	}
	for name, c := range map[string]struct {
		at    Cell
		build string
		want  string
	}{
		"an arm without builds":            {At(0, 0), "", ""},
		"a build that such an arm has not": {At(0, 0), "a", `it ran build "a" and arm "x" has no builds`},
		"one of several":                   {At(0, 1), "b", ""},
		"none of them":                     {At(0, 1), "c", `arm "x" has no build "c"; it has a, b`},
		"no name":                          {At(0, 1), "", "allowed are a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, known := commands(exp)[variant{c.at, c.build}]; !known {
				got = unknownBuild(exp, &record.Attempt{Arm: "x", Build: c.build}, c.at)
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestDifferentCommand_NamesTheFirstDifference(t *testing.T) {
	asked := command{[]string{"/bin/scan", "--size=1"}, map[string]string{"size": "1"}}
	for name, c := range map[string]struct {
		found   command
		anyPath bool
		want    string
	}{
		"the same":                  {asked, false, ""},
		"no command at all":         {command{}, true, "it ran 0 arguments and the cell has 2"},
		"another argument":          {command{[]string{"/bin/scan", "--size=2"}, asked.parameters}, false, `argument 1 is "--size=2"`},
		"another path":              {command{[]string{"/tmp/scan", "--size=1"}, asked.parameters}, true, ""},
		"where paths count":         {command{[]string{"/tmp/scan", "--size=1"}, asked.parameters}, false, `it ran "/tmp/scan"`},
		"another program":           {command{[]string{"/bin/sleep", "--size=1"}, asked.parameters}, true, `it ran "/bin/sleep"`},
		"another parameter's value": {command{asked.argv, map[string]string{"size": "2"}}, false, `size is "2" here and "1" there`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := differentCommand(c.found, asked, c.anyPath); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if got := differentCommand(command{}, command{}, true); got == "" {
		t.Error("a cell that runs nothing is run by nothing")
	}
}

// Without plans every block is taken to have been meant to run every arm as often as the arm and block that ran most; in a search some of
// the loads.
func TestPresumed_BlocksMissTrialsThatOthersHave(t *testing.T) {
	of := func(arm int) fate { return fate{state: used, cell: At(0, arm), block: "b0"} }
	fates := []fate{of(0), of(0), of(1)}
	for name, c := range map[string]struct {
		search *experiment.Search
		want   []string
	}{
		"a sweep":  {nil, []string{"b0, new at size=1, trial 2", "b0, new at size=2, trial 1", "b0, new at size=2, trial 2", "b0, old at size=2, trial 1", "b0, old at size=2, trial 2"}},
		"a search": {&experiment.Search{}, []string{"b0, new at size=1, trial 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			exp := twoArms()
			exp.Plan.Search = c.search
			var got []string
			for _, fate := range presumed(exp, fates) {
				got = append(got, fate.trial)
				if fate.how != lostMissing || fate.block != "b0" {
					t.Errorf("%s is %+v", fate.trial, fate)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRejectOtherEnvironments_EachHasANumber(t *testing.T) {
	var attempts []*record.Attempt
	for i, cpu := range []string{"a", "b", "b", "b", "c", "a"} {
		attempt := ran(fmt.Sprintf("w000-b%04d", i), 0, record.Succeeded)
		attempt.Environment.Hard = map[string]any{"cpuModel": cpu}
		attempts = append(attempts, attempt)
	}
	comparable, found := rejectOtherEnvironments(attempts)
	if !slices.Equal(comparable.admitted, attempts[1:4]) {
		t.Errorf("%d are admitted, want the three of the most common environment", len(comparable.admitted))
	}
	a, c := found.Elsewhere[attempts[0]], found.Elsewhere[attempts[4]]
	if a < 1 || c < 1 || a == c || found.Elsewhere[attempts[5]] != a {
		t.Errorf("environments are numbered %d and %d, and %d again", a, c, found.Elsewhere[attempts[5]])
	}
}

func TestEachPlanned_VisitsEachCellOnce(t *testing.T) {
	waves := []record.Wave{{
		Points: []record.Point{{Key: "size=2"}, {Key: "size=3"}}, Arms: []record.Arm{{Name: "new"}, {Name: "newer"}},
		Cells:  []record.Cell{{Point: 0, Arm: 0}, {Point: 1, Arm: 0}, {Point: 0, Arm: 1}},
		Blocks: []record.Block{{ID: "w000-b0000", Order: []int{0, 1, 2, 0}}, {ID: "w000-b0001", Order: []int{0}}},
	}}
	purposes := Purposes{"w000-b0000": record.Confirm}
	var got []string
	purposes.EachPlanned(twoArms(), waves, func(purpose record.Purpose, block string, c Cell) {
		got = append(got, fmt.Sprintf("%s %s %v", purpose, block, c))
	})
	// Unknown points, unknown arms and blocks of other runs are skipped, and a cell with two slots is visited once.
	if diff := cmp.Diff([]string{"confirm w000-b0000 {1 1}"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPurposes_PlannedAndUnplannedBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		purposes   []record.Purpose
		has, other bool
	}{
		"none is planned": {nil, false, false},
		"all screen":      {[]record.Purpose{record.Screen, record.Screen}, true, false},
		"some confirm":    {[]record.Purpose{record.Screen, record.Confirm}, true, true},
		"none screens":    {[]record.Purpose{record.Confirm}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := Purposes{}
			for i, purpose := range c.purposes {
				s[record.BlockName(0, i)] = purpose
			}
			if s.Has(record.Screen) != c.has || s.HasOther(record.Screen) != c.other {
				t.Errorf("screens %v, and something else %v; want %v and %v", s.Has(record.Screen), s.HasOther(record.Screen), c.has, c.other)
			}
			if !s.Only(record.Screen)("w009-b0009") || s.Only(record.Confirm)("w009-b0009") {
				t.Error("a block that no plan has screens")
			}
		})
	}
}

func TestFailedAgainst_NamesContradictions(t *testing.T) {
	code := func(outcome record.Outcome, exit int, edit func(*record.Attempt)) *record.Attempt {
		out := &record.Attempt{Outcome: outcome, ExitCode: &exit}
		if edit != nil {
			edit(out)
		}
		return out
	}
	result := func(a *record.Attempt) { a.Result = &record.Result{} }
	killed := func(a *record.Attempt) { signal := 9; a.Signal, a.Result = &signal, &record.Result{} }
	for name, c := range map[string]struct {
		attempt *record.Attempt
		want    string
	}{
		"it failed with a code":               {code(record.Failed, 3, result), ""},
		"it failed without a result":          {code(record.Failed, 0, nil), ""},
		"it failed, with a result and code 0": {code(record.Failed, 0, result), "exitCode is 0 and there is a result"},
		"by a signal":                         {code(record.Failed, 0, killed), ""},
		"its exit code is unknown":            {&record.Attempt{Outcome: record.Failed, Result: &record.Result{}}, ""},
		"it ran out of time":                  {code(record.TimedOut, 0, result), ""},
		"it was not started, and has a code":  {code(record.NotStarted, 3, nil), "so that it did start"},
		"it was not started":                  {&record.Attempt{Outcome: record.NotStarted}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failedAgainst(c.attempt); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestWorkloadNames_ResultsWithoutNameAreIgnored(t *testing.T) {
	cells := map[*record.Attempt]Cell{}
	var counting []*record.Attempt
	add := func(arm int, name string, outcome record.Outcome) {
		attempt := &record.Attempt{Outcome: outcome, Result: &record.Result{Workload: record.WorkloadID{Name: name}}}
		counting, cells[attempt] = append(counting, attempt), At(0, arm)
	}
	add(0, "scan", record.Succeeded)
	add(0, "", record.Succeeded)
	add(0, "batch", record.Failed)
	add(1, "scan", record.Succeeded)
	want := map[int]map[string]bool{0: {"scan": true, "batch": true}, 1: {"scan": true}}
	if diff := cmp.Diff(want, workloadNames(counting, cells)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlannedPrograms_OfExperimentAndPlans(t *testing.T) {
	exp := twoArms()
	exp.Cells = []record.Cell{{Arm: 0, Argv: []string{"/scan"}}, {Arm: 1, Argv: []string{"/fused"}}, {Arm: 1}}
	waves := []record.Wave{{Arms: []record.Arm{{Name: "new"}}, Cells: []record.Cell{{Arm: 0, Argv: []string{"/tmp/fused"}}, {Arm: 0}}}}
	want := map[[2]string]bool{{exp.Image(exp.Cells[1]), "/fused"}: true, {"", "/tmp/fused"}: true}
	if diff := cmp.Diff(want, plannedPrograms(exp, waves, 1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnknownKeys_AreCompared(t *testing.T) {
	known := map[string]any{}
	for _, key := range record.HardKeys {
		known[key] = "x"
	}
	if got := unknownKeys(known); got != nil {
		t.Errorf("known keys are named: %v", got)
	}
	known["moonPhase"] = "full"
	if got := unknownKeys(known); got != `moonPhase="full"` {
		t.Errorf("an unknown key is %v", got)
	}
}

func TestFixedSamples_OnlyOfTrialsWithThatNumber(t *testing.T) {
	exp := twoArms()
	exp.Plan.Metrics = []experiment.Metric{{Name: "latency", Unit: "s", SamplesFrom: "n"}}
	of := func(n string, metric *record.Metric) *record.Attempt {
		out := &record.Attempt{Arm: "new", Parameters: map[string]string{"n": n}, Result: &record.Result{Metrics: map[string]*record.Metric{}}}
		if metric != nil {
			out.Result.Metrics["latency"] = metric
		}
		return out
	}
	one := 1.0
	for name, c := range map[string]struct {
		of   *record.Attempt
		kept bool
	}{
		"as many as it says":       {of("2", &record.Metric{Samples: []float64{1, 2}}), true},
		"fewer":                    {of("3", &record.Metric{Samples: []float64{1, 2}}), false},
		"one value in their place": {of("1", &record.Metric{Value: &one}), false},
		"no metric":                {of("0", nil), false},
		"no number":                {of("many", &record.Metric{Samples: []float64{1}}), false},
		"no number and no metric":  {of("many", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fixedSamplesOf(exp, []*record.Attempt{c.of}); (len(got.counts) == 1) != c.kept || (len(got.arms) == 1) != c.kept {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestMeaningless_NamesEachBound(t *testing.T) {
	for name, c := range map[string]struct {
		value float64
		unit  string
		want  string
	}{
		"nothing":                    {0, "s", ""},
		"a time":                     {1, "s", ""},
		"a time below zero":          {-1, "ms", "is a negative time"},
		"another figure below zero":  {-1, "dB", ""},
		"a time of centuries":        {2 * longestTime, "s", "allowed are times up to"},
		"in another unit":            {2000 * longestTime, "ms", "allowed are times up to"},
		"half as long in that unit":  {500 * longestTime, "ms", ""},
		"a figure as large, no time": {2 * longestTime, "op", ""},
		"more than numbers are":      {10 * largestNumber, "op", "magnitudes from"},
		"less":                       {smallestNumber / 10, "op", "magnitudes from"},
		"no number":                  {math.NaN(), "op", "allowed are finite numbers"},
		"an infinite one":            {math.Inf(1), "op", "allowed are finite numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := meaningless(c.value, c.unit); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A gate on one arm's figure needs it of that arm alone; one that compares needs it of the baseline too.
func TestNeeds_LevelsAndRatios(t *testing.T) {
	for name, c := range map[string]struct {
		op   experiment.Op
		want []Cell
	}{
		"a level": {experiment.AtMost, []Cell{At(0, 1), At(1, 1)}},
		"a ratio": {experiment.RatioAtMost, []Cell{At(0, 0), At(0, 1), At(1, 0), At(1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			exp := twoArms()
			exp.Plan.Gates = []experiment.Gate{{Name: "g", Condition: experiment.Condition{Metric: "latency", Op: c.op}}}
			got := slices.SortedFunc(maps.Keys(needs(exp)), func(a, b Cell) int { return order.Or(a.Point-b.Point, a.Arm-b.Arm) })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A program without output needs no result, but a result that it has must be valid.
func TestRejectUnusable_ProgramsWithAndWithoutOutput(t *testing.T) {
	centuries := &record.Result{Phases: []record.Phase{{Name: "load", Samples: []float64{1e12}}}}
	for name, c := range map[string]struct {
		format string
		result *record.Result
		want   string
	}{
		"none is asked for and none is there": {format.None, nil, ""},
		"none is asked for and one is there":  {format.None, &record.Result{}, ""},
		"and it means nothing":                {format.None, centuries, "mean of phase load"},
		"one is asked for and none is there":  {"", nil, "it succeeded and holds no result"},
		"one is asked for and one is there":   {"", &record.Result{}, ""},
		"but it means nothing":                {"", centuries, "mean of phase load"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := twoArms()
			exp.Plan.Workload.Output.Format = c.format
			attempt := ran("w000-b0000", 0, record.Succeeded)
			attempt.Result = c.result
			check := newResultCheck(exp, map[*record.Attempt]Cell{attempt: At(0, 0)}, []*record.Attempt{attempt}, nil)
			usable, got := check.rejectUnusable([]*record.Attempt{attempt}), ""
			for _, one := range usable.rejected {
				got += one.Reason
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || (len(usable.admitted) == 1) != (c.want == "") {
				t.Errorf("%q, want %q; %d are admitted", got, c.want, len(usable.admitted))
			}
		})
	}
}

func TestVisitPlaces_SelectsCandidatesAndPoints(t *testing.T) {
	exp := twoArms()
	exp.Arms = append(exp.Arms, record.Arm{Name: "newer"})
	for i, size := range []string{"1", "2"} {
		exp.Points[i].Parameters = map[string]string{"size": size}
	}
	for name, c := range map[string]struct {
		only string
		at   map[string]string
		want []string
	}{
		"every candidate at every point": {"", nil, []string{"new 0", "new 1", "newer 0", "newer 1"}},
		"one candidate":                  {"new", nil, []string{"new 0", "new 1"}},
		"one point":                      {"", map[string]string{"size": "2"}, []string{"new 1", "newer 1"}},
		"an unknown candidate":           {"newest", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			VisitPlaces(exp, c.only, c.at, func(candidate string, point int) { got = append(got, fmt.Sprintf("%s %d", candidate, point)) })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
