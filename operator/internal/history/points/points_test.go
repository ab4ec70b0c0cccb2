package points

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/simulate"
	"assay.dev/assay/operator/internal/specimen"
	"assay.dev/assay/operator/test/scanned"
)

type runSpec = assayv1alpha1.BenchmarkRunSpec

var began = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

// true times of the arms.
var seconds = map[string]float64{Anchor: 0.010, Predecessor: 0.011, Head: 0.012, NextAnchor: 0.005}

// point is a run of a series: of revision r3, where r2 was before it, against v1.
func point(edits ...func(*Run)) *Run {
	out := &Run{
		Project: "search", Benchmark: "index", ID: "uid-3", Analysis: 1, Schedule: "nightly", Sequence: 3, At: began, Ledger: "file:///ledger",
		Arms: map[string]Revision{
			Anchor: {Revision: "v1"}, Predecessor: {Revision: "r2"}, Head: {Revision: "r3", Image: "sha256:3"},
		},
	}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

// measured is the run on a simulated machine.
func measured(t *testing.T, r *Run, blocks int, edits ...func(*runSpec)) (*experiment.Experiment, *analysis.Analysis) {
	t.Helper()
	return hurt(t, r, blocks, func([]record.Attempt) {}, edits...)
}

// hurt is the same with attempts that something happened to.
func hurt(t *testing.T, r *Run, blocks int, harm func([]record.Attempt), edits ...func(*runSpec)) (*experiment.Experiment,
	*analysis.Analysis) {
	t.Helper()
	exp, err := specimen.Scan(func(spec *runSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms, spec.Sweep, spec.Predictions = nil, nil, nil
		spec.Parameters = assayv1alpha1.ParameterValues{"batchSize": "1"}
		spec.Gates = []assayv1alpha1.Gate{{Name: "faster", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1"}}
		for _, name := range []string{Anchor, Predecessor, NextAnchor, Head} {
			if arm, ok := r.Arms[name]; ok {
				spec.Arms = append(spec.Arms, assayv1alpha1.Arm{
					Name: name, Baseline: name == Anchor, Parameters: assayv1alpha1.ParameterValues{"strategy": arm.Revision},
				})
			}
		}
		for _, edit := range edits {
			edit(spec)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	wave, err := simulate.Wave(exp, 0, 0, blocks)
	if err != nil {
		t.Fatal(err)
	}
	machine := simulate.Machine{
		Seed: 1, Noise: simulate.Noise{Block: 0.01, Trial: 0.001}, Seconds: func(_ record.Point, arm string) float64 { return seconds[arm] },
	}
	attempts := machine.Run(exp, wave)
	harm(attempts)
	return exp, analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
}

func of(t *testing.T, r *Run, exp *experiment.Experiment, found *analysis.Analysis) []Keyed {
	t.Helper()
	out, err := r.Of(exp, found)
	if err != nil {
		t.Fatal(err)
	}
	for _, keyed := range out {
		if err := keyed.Record.Check(); err != nil {
			t.Errorf("the series would set the record aside: %v", err)
		}
		if err := keyed.Key.Check(); err != nil {
			t.Error(err)
		}
	}
	return out
}

func near(e series.Estimate, over, under string) bool {
	return math.Abs(e.LogRatio-math.Log(seconds[over]/seconds[under])) < 0.005 && e.SE > 0 && e.DF >= 1 && e.Blocks > 1
}

func TestAPointIsHeadOverTheAnchorAndItsPredecessorInTheSameBlocks(t *testing.T) {
	r := point()
	exp, found := measured(t, r, 8)
	records := of(t, r, exp, found)
	if len(records) != 1 {
		t.Fatalf("%d records, want one of the one series", len(records))
	}
	got := records[0]
	if want := (series.Key{Project: "search", Benchmark: "index", Metric: "latency", Statistic: "median"}); got.Key != want {
		t.Errorf("series %+v, want %+v", got.Key, want)
	}
	if !near(got.Record.Ratio, Head, Anchor) || got.Record.Step == nil || !near(*got.Record.Step, Head, Predecessor) {
		t.Errorf("ratio %+v, step %+v", got.Record.Ratio, got.Record.Step)
	}
	want := series.Record{
		Kind: series.Measured, ID: "uid-3", Analysis: 1, Schedule: "nightly", Sequence: 3, At: began, Head: "r3", Image: "sha256:3",
		Anchor: "v1", Predecessor: "r2", Ledger: "file:///ledger", Machine: got.Record.Machine, Workload: got.Record.Workload,
		Ratio: got.Record.Ratio, Step: got.Record.Step,
	}
	if diff := cmp.Diff(want, got.Record); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAnAnalysisBecomes(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*Run)
		blocks int
		spoil  func(*experiment.Experiment, *analysis.Analysis)
		kinds  []series.Kind
		reason string
		step   bool
	}{
		"a run with a predecessor has a step":    {blocks: 6, kinds: []series.Kind{series.Measured}, step: true},
		"the first run has no step":              {edit: func(r *Run) { delete(r.Arms, Predecessor) }, blocks: 6, kinds: []series.Kind{series.Measured}},
		"too few blocks are a gap":               {blocks: 2, kinds: []series.Kind{series.Gap}, reason: "2 of at least 3 blocks"},
		"a run without a figure is a gap":        {blocks: 6, spoil: func(_ *experiment.Experiment, a *analysis.Analysis) { a.Ratios = nil }, kinds: []series.Kind{series.Gap}, reason: `arm "head" has no ratio`},
		"a bridge is a record of its own":        {edit: func(r *Run) { r.Arms[NextAnchor] = Revision{Revision: "v2"} }, blocks: 6, kinds: []series.Kind{series.Measured, series.Bridge}, step: true},
		"what is measured anew and fails stays":  {edit: func(r *Run) { r.Analysis = 2 }, blocks: 6, spoil: invalidate(Head)},
		"a verdict of Invalid is a gap":          {blocks: 6, spoil: invalidate(Head), kinds: []series.Kind{series.Gap}, reason: "the verdict on it is Invalid: spoilt"},
		"an Invalid predecessor leaves no step":  {blocks: 6, spoil: invalidate(Predecessor), kinds: []series.Kind{series.Measured}},
		"a predecessor without figures, no step": {blocks: 6, spoil: without(Predecessor), kinds: []series.Kind{series.Measured}},
	} {
		t.Run(name, func(t *testing.T) {
			r := point()
			if tc.edit != nil {
				tc.edit(r)
			}
			exp, found := measured(t, r, tc.blocks)
			if tc.spoil != nil {
				tc.spoil(exp, found)
			}
			var kinds []series.Kind
			ids := map[string]bool{}
			for _, keyed := range of(t, r, exp, found) {
				kinds, ids[keyed.Record.ID] = append(kinds, keyed.Record.Kind), true
				switch keyed.Record.Kind {
				case series.Measured:
					if (keyed.Record.Step != nil) != tc.step {
						t.Errorf("step %+v", keyed.Record.Step)
					}
				case series.Bridge:
					if keyed.Record.Head != "v2" || keyed.Record.Anchor != "v1" || !near(keyed.Record.Ratio, NextAnchor, Anchor) {
						t.Errorf("bridge %+v", keyed.Record)
					}
				case series.Gap:
					if !strings.Contains(keyed.Record.Reason, tc.reason) || keyed.Record.Ratio != (series.Estimate{}) {
						t.Errorf("gap %+v, want one that says %q", keyed.Record, tc.reason)
					}
				}
			}
			if diff := cmp.Diff(tc.kinds, kinds); diff != "" || len(ids) != len(kinds) {
				t.Errorf("%s, names %v", diff, ids)
			}
		})
	}
}

// Who crashes may do so where it is slow: what is left is no point of a history, and confirms nothing.
func TestTheTrialsThatAreLeftOfManyAreNoPoint(t *testing.T) {
	for name, tc := range map[string]struct {
		arm  string
		most int
		kind series.Kind
		step bool
	}{
		"nothing is lost":                   {Head, 0, series.Measured, true},
		"head crashes in most of its":       {Head, 14, series.Gap, false},
		"the anchor crashes in most of its": {Anchor, 14, series.Gap, false},
		"its predecessor does":              {Predecessor, 14, series.Measured, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := point()
			exp, found := hurt(t, r, 10, scanned.Crash(tc.arm, tc.most))
			records := of(t, r, exp, found)
			if len(records) != 1 || records[0].Record.Kind != tc.kind || (records[0].Record.Step != nil) != tc.step {
				t.Fatalf("records %+v, want one of kind %s, with a step: %v", records, tc.kind, tc.step)
			}
			if reason := records[0].Record.Reason; tc.kind == series.Gap && !strings.Contains(reason, `"completes" is NoGo`) {
				t.Errorf("the reason is %q", reason)
			}
			_, err := Difference(exp, found, records[0].Key, []string{Head}, []string{Anchor})
			if (err == nil) != (tc.kind == series.Measured) {
				t.Errorf("a confirming run has %v", err)
			}
		})
	}
}

// What takes a gate its decision takes a point its place, whatever the gate would have decided: the figures are of something beside the
// arms.
func TestWhatMayNotDecideIsNoPoint(t *testing.T) {
	nothing := func([]record.Attempt) {}
	some := func(arm string, count int, change func(*record.Attempt)) func([]record.Attempt) {
		return func(attempts []record.Attempt) {
			for i := range attempts {
				if a := &attempts[i]; a.Arm == arm && !a.Warmup && count > 0 {
					count--
					change(a)
				}
			}
		}
	}
	// gone leaves an attempt to a wave that nobody looks at.
	gone := func(a *record.Attempt) { a.Wave = 99 }
	elsewhere := func(a *record.Attempt) {
		a.Environment.Soft = map[string]any{"kernelVersion": "of another machine"}
	}
	twice := func(by float64) func(*analysis.Analysis) {
		return func(found *analysis.Analysis) {
			for i := range found.Gates {
				if gate := &found.Gates[i]; gate.Estimate != nil && gate.Op.Relative() && gate.Candidate == Head {
					again := *gate.Estimate
					again.Value *= by
					gate.WithRejected = &analysis.Twice{Outcome: gate.Outcome, Without: gate.Outcome, Estimate: &again}
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		bound string
		harm  func([]record.Attempt)
		edit  func(*runSpec)
		spoil func(*analysis.Analysis)
		kind  series.Kind
		step  bool
		says  string
	}{
		"nothing is wrong":                      {kind: series.Measured, step: true},
		"a trial of head is not there":          {harm: some(Head, 1, gone), kind: series.Gap, says: `"completes" is Inconclusive`},
		"one of the anchor":                     {harm: some(Anchor, 1, gone), kind: series.Gap, says: `"completes" is Inconclusive`},
		"one of its predecessor leaves a point": {harm: some(Predecessor, 1, gone), kind: series.Measured},
		"head ran by itself":                    {harm: some(Head, 20, elsewhere), kind: series.Gap, says: "(not-neighbours)"},
		"so it is where its gate is a NoGo":     {bound: "0.5", harm: some(Head, 20, elsewhere), kind: series.Gap, says: "(not-neighbours)"},
		"and where it decides nothing":          {bound: "1.2", harm: some(Head, 20, elsewhere), kind: series.Gap, says: "(not-neighbours)"},
		"the arms kept their places": {
			edit: func(spec *runSpec) { spec.Design.Order = assayv1alpha1.OrderSequential }, kind: series.Gap, says: "(sequential-order)",
		},
		"with the rejected trials it is elsewhere": {spoil: twice(1.5), kind: series.Gap, says: "leaving them out must not be what moves it"},
		"a control phase of head is missing where its gate is a NoGo": {
			bound: "0.5", spoil: func(found *analysis.Analysis) {
				at := slices.IndexFunc(found.Gates, func(g analysis.GateResult) bool { return g.Op.Relative() && g.Candidate == Head })
				found.Controls = append(found.Controls, analysis.ControlResult{
					Point: found.Gates[at].Point, Arm: Head, Phase: "parse", Missing: true, Message: "no trial reports phase parse",
				})
			}, kind: series.Gap, says: "no trial reports phase parse (control-missing)",
		},
		"with them it is where it was": {spoil: twice(1.0001), kind: series.Measured, step: true},
		"fewer blocks than asked for have their error": {
			bound: "2", edit: func(spec *runSpec) { spec.Design.Blocks.Min = 20 }, kind: series.Measured, step: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := point()
			harm := tc.harm
			if harm == nil {
				harm = nothing
			}
			exp, found := hurt(t, r, 10, harm, func(spec *runSpec) {
				if tc.bound != "" {
					spec.Gates[0].Bound = tc.bound
				}
				if tc.edit != nil {
					tc.edit(spec)
				}
			})
			if tc.spoil != nil {
				tc.spoil(found)
			}
			records := of(t, r, exp, found)
			if len(records) != 1 || records[0].Record.Kind != tc.kind || (records[0].Record.Step != nil) != tc.step ||
				!strings.Contains(records[0].Record.Reason, tc.says) {
				t.Fatalf("records %+v, want one of kind %s that says %q, with a step: %v", records, tc.kind, tc.says, tc.step)
			}
			_, err := Difference(exp, found, records[0].Key, []string{Head}, []string{Anchor})
			if (err == nil) != (tc.kind == series.Measured) {
				t.Errorf("a confirming run has %v", err)
			}
		})
	}
}

// Whoever may write an analysis may give a reason of any length, and every series of a schedule keeps it.
func TestAReasonIsKeptAsFarAsItIsRead(t *testing.T) {
	r := point()
	exp, found := measured(t, r, 6)
	invalidate(Head)(exp, found)
	for i := range found.Candidates {
		found.Candidates[i].Reason = strings.Repeat("ä", 1<<20)
	}
	keys := []series.Key{}
	for _, keyed := range of(t, r, exp, found) {
		keys = append(keys, keyed.Key)
		if length := len([]rune(keyed.Record.Reason)); length > mostReason+1 {
			t.Errorf("a reason of %d characters", length)
		}
	}
	for _, keyed := range r.Gap(keys, strings.Repeat("ä", 1<<20)) {
		if length := len([]rune(keyed.Record.Reason)); length > mostReason+1 || !strings.HasSuffix(keyed.Record.Reason, "…") {
			t.Errorf("a reason of %d characters", length)
		}
	}
}

func invalidate(arm string) func(*experiment.Experiment, *analysis.Analysis) {
	return func(_ *experiment.Experiment, a *analysis.Analysis) {
		for i := range a.Candidates {
			if a.Candidates[i].Name == arm {
				a.Candidates[i].Verdict, a.Candidates[i].Reason = experiment.VerdictInvalid, "spoilt"
			}
		}
	}
}

func without(arm string) func(*experiment.Experiment, *analysis.Analysis) {
	return func(_ *experiment.Experiment, a *analysis.Analysis) {
		var left []analysis.RatioResult
		for _, r := range a.Ratios {
			if r.Candidate != arm {
				left = append(left, r)
			}
		}
		a.Ratios = left
	}
}

func TestWhatIsAskedIsTheSameForEveryRevision(t *testing.T) {
	workload := func(r *Run, edits ...func(*runSpec)) string {
		t.Helper()
		exp, _ := measured(t, r, 3, edits...)
		out, err := r.Workload(exp)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	written := func(r *Run) { r.Parameters = map[string]string{"strategy": Placeholder} }
	plain := workload(point(written))
	for name, tc := range map[string]struct {
		run  *Run
		edit func(*runSpec)
		same bool
	}{
		"another revision":          {point(written, func(r *Run) { r.Arms[Head] = Revision{Revision: "r4"} }), func(*runSpec) {}, true},
		"without its predecessor":   {point(written, func(r *Run) { delete(r.Arms, Predecessor) }), func(*runSpec) {}, true},
		"another bound":             {point(written), func(s *runSpec) { s.Gates[0].Bound = "1.5" }, true},
		"more blocks":               {point(written), func(s *runSpec) { s.Design.Blocks = assayv1alpha1.Blocks{Min: 20, Max: 20} }, true},
		"another parameter":         {point(written), func(s *runSpec) { s.Parameters["pendingDelta"] = "1" }, false},
		"another order":             {point(written), func(s *runSpec) { s.Design.Order = assayv1alpha1.OrderRandom }, false},
		"another form of revisions": {point(func(r *Run) { r.Parameters = map[string]string{"strategy": "v" + Placeholder} }), func(*runSpec) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := workload(tc.run, tc.edit); (got == plain) != tc.same {
				t.Errorf("%s, and plainly %s", got, plain)
			}
		})
	}
}

func TestWhatIsFollowedIsWhatGatesJudge(t *testing.T) {
	exp, err := specimen.Scan(nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, key := range point().Keys(exp) {
		got = append(got, key.Point+" "+key.Metric+"."+key.Statistic)
	}
	want := []string{
		"batchSize=1,pendingDelta=0 latency.p95", "batchSize=1,pendingDelta=1 latency.p95", "batchSize=8,pendingDelta=0 throughput.value",
		"batchSize=8,pendingDelta=1 throughput.value",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if worse := Worse(exp, series.Key{Metric: "throughput"}); worse(0.1) || !worse(-0.1) {
		t.Error("more throughput is worse")
	}
	if worse := Worse(exp, series.Key{Metric: "latency"}); !worse(0.1) || worse(-0.1) {
		t.Error("less latency is worse")
	}
}

func TestARunWithoutARevisionIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*Run)
		says string
	}{
		"no head":     {func(r *Run) { delete(r.Arms, Head) }, "both need a revision"},
		"no anchor":   {func(r *Run) { delete(r.Arms, Anchor) }, "both need a revision"},
		"no project":  {func(r *Run) { r.Project = "" }, "part of a series' key"},
		"no schedule": {func(r *Run) { r.Schedule = "" }, "what had it measured"},
		"no time":     {func(r *Run) { r.At = time.Time{} }, "at is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(point(tc.edit))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(raw); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want an error that says %q", err, tc.says)
			}
		})
	}
	r := point()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	again.Ledger = r.Ledger
	if diff := cmp.Diff(r, again); diff != "" {
		t.Error(diff)
	}
}
