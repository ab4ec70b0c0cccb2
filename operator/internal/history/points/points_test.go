package points

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
	"assay.dev/assay/operator/test/scanned"
)

type runSpec = assayv1alpha1.BenchmarkRunSpec

var began = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

// True times in seconds of all arms, including those of a confirming run.
var seconds = map[string]float64{
	Anchor: 0.010, Predecessor: 0.011, Head: 0.012, NextAnchor: 0.005, "old-1": 0.010, "old-2": 0.010, "new-1": 0.012, "new-2": 0.012,
}

// point returns a run of a series: revision r3 with predecessor r2 and anchor v1.
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

// measured executes the run on a simulated machine.
func measured(t *testing.T, r *Run, blocks int, edits ...func(*runSpec)) (*experiment.Experiment, *analysis.Analysis) {
	t.Helper()
	return hurt(t, r, blocks, func([]record.Attempt) {}, edits...)
}

// hurt is measured with attempts modified by harm.
func hurt(t *testing.T, r *Run, blocks int, harm func([]record.Attempt), edits ...func(*runSpec)) (*experiment.Experiment,
	*analysis.Analysis) {
	t.Helper()
	exp, err := fixture.ScanExperiment(func(spec *runSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
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
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	if err != nil {
		t.Fatal(err)
	}
	machine := fixture.Machine{
		Seed: 1, Noise: fixture.Noise{Block: 0.01, Trial: 0.001}, Seconds: func(_ record.Point, arm string) float64 { return seconds[arm] },
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
			t.Errorf("the series would reject the record: %v", err)
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

func TestRun_PointComparesHeadWithAnchorAndPredecessor(t *testing.T) {
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

func TestRun_RecordsOfAnAnalysis(t *testing.T) {
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
		"a bridge is a separate record":          {edit: func(r *Run) { r.Arms[NextAnchor] = Revision{Revision: "v2"} }, blocks: 6, kinds: []series.Kind{series.Measured, series.Bridge}, step: true},
		"a failed remeasurement adds no record":  {edit: func(r *Run) { r.Analysis = 2 }, blocks: 6, spoil: invalidate(Head)},
		"a verdict of Invalid is a gap":          {blocks: 6, spoil: invalidate(Head), kinds: []series.Kind{series.Gap}, reason: "its verdict is Invalid: spoilt"},
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
				case series.Unpaired:
					t.Errorf("a run has the unpaired value %+v", keyed.Record)
				case series.Gap:
					if !strings.Contains(keyed.Record.Reason, tc.reason) || keyed.Record.Ratio != (series.Estimate{}) {
						t.Errorf("gap %+v, want one with reason %q", keyed.Record, tc.reason)
					}
				}
			}
			if diff := cmp.Diff(tc.kinds, kinds); diff != "" || len(ids) != len(kinds) {
				t.Errorf("%s, names %v", diff, ids)
			}
		})
	}
}

// A program may crash only where it is slow, so the remaining trials are neither a point of a history nor a confirmation.
func TestRun_TooFewRemainingTrialsAreAGap(t *testing.T) {
	for name, tc := range map[string]struct {
		arm  string
		most int
		kind series.Kind
		step bool
	}{
		"no trial is lost":                       {Head, 0, series.Measured, true},
		"head crashes in most trials":            {Head, 14, series.Gap, false},
		"the anchor crashes in most trials":      {Anchor, 14, series.Gap, false},
		"its predecessor crashes in most trials": {Predecessor, 14, series.Measured, false},
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

// A finding that makes a gate undecided also rejects the point, even if the gate would be decided without it, because the figures include
// an effect other than that of the arms.
func TestRun_UndecidableRunIsAGap(t *testing.T) {
	nothing := func([]record.Attempt) {}
	some := func(arm string, count int, change func(*record.Attempt)) func([]record.Attempt) {
		return harm(arm, func(at int, a *record.Attempt) {
			if at < count {
				change(a)
			}
		})
	}
	// gone assigns an attempt to a wave outside the analysis.
	gone := func(a *record.Attempt) { a.Wave = 99 }
	elsewhere := func(a *record.Attempt) {
		a.Environment.Soft = map[string]any{"kernelVersion": "of another machine"}
	}
	// beside slows down every other trial of head by a neighbour; noise limits reject these trials.
	beside := func(slowdown float64) func([]record.Attempt) {
		neighbour := fixture.Neighbour{Slowdown: slowdown, OtherWork: 0.4}
		return harm(Head, func(at int, a *record.Attempt) {
			if at%2 == 1 {
				neighbour.Disturb(a)
			}
		})
	}
	// still assigns the same phase duration to every arm.
	still := func(attempts []record.Attempt) {
		for i := range attempts {
			attempts[i].Result.Phases = []record.Phase{{Name: "expand", Samples: []float64{0.001 + 1e-6*float64(i%5)}}}
		}
	}
	control := func(phase string) func(*runSpec) {
		return func(spec *runSpec) { spec.Design.ControlPhases = []string{phase} }
	}
	for name, tc := range map[string]struct {
		bound string
		harm  func([]record.Attempt)
		edit  func(*runSpec)
		kind  series.Kind
		step  bool
		says  string
	}{
		"a valid run":                                       {kind: series.Measured, step: true},
		"a trial of head is missing":                        {harm: some(Head, 1, gone), kind: series.Gap, says: `"completes" is Inconclusive`},
		"a trial of the anchor is missing":                  {harm: some(Anchor, 1, gone), kind: series.Gap, says: `"completes" is Inconclusive`},
		"a missing trial of its predecessor leaves a point": {harm: some(Predecessor, 1, gone), kind: series.Measured},
		"head did not run beside the others":                {harm: some(Head, 20, elsewhere), kind: series.Gap, says: "(not-neighbours)"},
		"the same with a gate that is NoGo":                 {bound: "0.5", harm: some(Head, 20, elsewhere), kind: series.Gap, says: "(not-neighbours)"},
		"the same with an undecided gate":                   {bound: "1.2", harm: some(Head, 20, elsewhere), kind: series.Gap, says: "(not-neighbours)"},
		"the arms have constant positions": {
			edit: func(spec *runSpec) { spec.Design.Order = assayv1alpha1.OrderSequential }, kind: series.Gap, says: "(sequential-order)",
		},
		"the rejected trials would change the point":     {harm: beside(1.5), kind: series.Gap, says: "so their exclusion would change it"},
		"the rejected trials would not change the point": {harm: beside(1), kind: series.Measured, step: true},
		"an unchanged control phase":                     {edit: control("expand"), harm: still, kind: series.Measured, step: true},
		"a control phase of head moved where its gate is a NoGo": {
			bound: "0.5", edit: control("scan"), kind: series.Gap, says: "(control-moved)",
		},
		"a control phase of head is missing where its gate is a NoGo": {
			bound: "0.5", edit: control("expand"), harm: harm(Head, func(_ int, a *record.Attempt) { a.Result.Phases = nil }), kind: series.Gap,
			says: `report phase "expand" (control-missing)`,
		},
		"fewer blocks than requested have a larger error": {
			bound: "2", edit: func(spec *runSpec) { spec.Design.Blocks.Min = 20 }, kind: series.Measured, step: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := point()
			if tc.harm == nil {
				tc.harm = nothing
			}
			exp, found := hurt(t, r, 10, tc.harm, func(spec *runSpec) {
				if tc.bound != "" {
					spec.Gates[0].Bound = tc.bound
				}
				if tc.edit != nil {
					tc.edit(spec)
				}
			})
			records := of(t, r, exp, found)
			if len(records) != 1 || records[0].Record.Kind != tc.kind || (records[0].Record.Step != nil) != tc.step ||
				!strings.Contains(records[0].Record.Reason, tc.says) {
				t.Fatalf("records %+v, want one of kind %s with reason %q, with a step: %v", records, tc.kind, tc.says, tc.step)
			}
			_, err := Difference(exp, found, records[0].Key, []string{Head}, []string{Anchor})
			if (err == nil) != (tc.kind == series.Measured) {
				t.Errorf("a confirming run has %v", err)
			}
		})
	}
}

// gatesOf are gates that a template may have; a schedule sets the candidate in each of them.
var gatesOf = map[string][]assayv1alpha1.Gate{
	"a gate on every arm":     {{Name: "faster", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1"}},
	"a gate on the head":      {{Name: "faster", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1", Candidate: Head}},
	"a gate on outputs alone": {{Name: "parity", Op: assayv1alpha1.ParityEqual, Candidate: Head}},
	"no gate":                 nil,
}

// harmsOf are modifications of the trials of an arm, and the resulting reason.
var harmsOf = map[string]struct {
	to   func(at int, a *record.Attempt)
	says string
}{
	"measured on shared CPUs": {func(_ int, a *record.Attempt) { a.Isolation.Level = "Shared" }, "(measured-unlike)"},
	"the last trial of every visit crashes": {func(at int, a *record.Attempt) {
		if at%experiment.VisitTrials == experiment.VisitTrials-1 {
			a.Outcome, a.ExitCode, a.Signal, a.Result = record.Failed, nil, ptr.To(11), nil
		}
	}, "trials completed against at least 1"},
	"a trial is missing": {func(at int, a *record.Attempt) {
		if at == 3 {
			a.Wave = 99 // A wave outside the analysis.
		}
	}, "trials completed against at least 1"},
	"its program changes": {func(at int, a *record.Attempt) {
		a.Environment.Soft = maps.Clone(a.Environment.Soft)
		if a.Environment.Soft == nil {
			a.Environment.Soft = map[string]any{}
		}
		a.Environment.Soft["programDigest"] = fmt.Sprintf("blake3:%d", min(at/6, 1))
	}, "changed during the run"},
}

// harm modifies the measured trials of an arm.
func harm(arm string, to func(at int, a *record.Attempt)) func([]record.Attempt) {
	return func(attempts []record.Attempt) {
		at := 0
		for i := range attempts {
			if a := &attempts[i]; a.Arm == arm && !a.Warmup {
				to(at, a)
				at++
			}
		}
	}
}

// An arm that may not be compared is in no record of a series, independent of the gates of the run.
func TestRun_IncomparableArmIsInNoRecord(t *testing.T) {
	for gate, gates := range gatesOf {
		for what, happens := range harmsOf {
			for arm, want := range map[string]struct{ gap, step, bridged bool }{
				Head: {true, false, true}, Anchor: {true, false, false}, Predecessor: {false, false, true}, NextAnchor: {false, true, false},
			} {
				t.Run(fmt.Sprintf("%s, of %s %s", gate, arm, what), func(t *testing.T) {
					r := point(func(r *Run) { r.Arms[NextAnchor] = Revision{Revision: "v2"} })
					exp, found := hurt(t, r, 10, harm(arm, happens.to), func(spec *runSpec) { spec.Gates = gates })
					records := of(t, r, exp, found)
					if len(records) < 2 {
						t.Fatalf("%d records, want a point and a bridge at least", len(records))
					}
					for _, keyed := range records {
						one := keyed.Record
						gap := want.gap
						if one.ID != r.ID {
							gap = !want.bridged
						} else if (one.Step != nil) != want.step {
							t.Errorf("%s: the step is %+v", keyed.Key.Metric, one.Step)
						}
						if (one.Kind == series.Gap) != gap || gap && !strings.Contains(one.Reason, happens.says) {
							t.Errorf("%s: %s is %s: %q", keyed.Key.Metric, one.ID, one.Kind, one.Reason)
						}
					}
				})
			}
		}
	}
}

// The sides of a confirming run have no gates, because a schedule sets the head in them.
func TestDifference_IncomparableSidesAreRefused(t *testing.T) {
	over, under := []string{Head, "new-1", "new-2"}, []string{"old-1", "old-2"}
	for gate, gates := range gatesOf {
		confirming := func(t *testing.T, harm func([]record.Attempt)) (Keyed, error) {
			r := point(func(r *Run) { delete(r.Arms, Predecessor) })
			exp, found := hurt(t, r, 10, harm, func(spec *runSpec) {
				for _, arm := range slices.Concat(over[1:], under) {
					spec.Arms = append(spec.Arms, assayv1alpha1.Arm{Name: arm, Parameters: assayv1alpha1.ParameterValues{"strategy": arm}})
				}
				spec.Gates = gates
			})
			records := of(t, r, exp, found)
			_, err := Difference(exp, found, records[0].Key, over, under)
			return records[0], err
		}
		t.Run(gate+", without harm", func(t *testing.T) {
			if record, err := confirming(t, func([]record.Attempt) {}); err != nil || record.Record.Kind != series.Measured {
				t.Errorf("%+v, %v", record, err)
			}
		})
		for what, happens := range harmsOf {
			for _, arm := range []string{"new-1", "old-2"} {
				t.Run(fmt.Sprintf("%s, of %s %s", gate, arm, what), func(t *testing.T) {
					record, err := confirming(t, harm(arm, happens.to))
					if err == nil || !strings.Contains(err.Error(), happens.says) {
						t.Errorf("the sides are compared: %v", err)
					}
					if record.Record.Kind != series.Measured {
						t.Errorf("the point of the head is %+v", record.Record)
					}
				})
			}
		}
	}
}

// A clock with repeated readings yields figures that are no more precise than its resolution.
func TestRun_ErrorIncludesTheClockResolution(t *testing.T) {
	readings := func(of func(arm string, at int) float64) func([]record.Attempt) {
		return func(attempts []record.Attempt) {
			for i := range attempts {
				for j := range attempts[i].Result.Metrics["latency"].Samples {
					attempts[i].Result.Metrics["latency"].Samples[j] = of(attempts[i].Arm, i+j)
				}
			}
		}
	}
	ticks := map[string]float64{Anchor: 15, Predecessor: 15, Head: 16, NextAnchor: 15}
	for name, tc := range map[string]struct {
		of   func(arm string, at int) float64
		zero bool // Whether 0 is a plausible true difference.
	}{
		"always one tick apart":                         {func(arm string, _ int) float64 { return ticks[arm] * 1e-3 }, true},
		"one tick apart, alternating between two ticks": {func(arm string, at int) float64 { return (ticks[arm] + float64(at%2)) * 1e-3 }, true},
		"many ticks apart":                              {func(arm string, at int) float64 { return (100*(ticks[arm]-14) + float64(at%2)) * 1e-3 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := point()
			exp, found := hurt(t, r, 10, readings(tc.of))
			record := of(t, r, exp, found)[0].Record
			if record.Kind != series.Measured || record.Step == nil {
				t.Fatalf("got %+v", record)
			}
			for what, e := range map[string]series.Estimate{"ratio": record.Ratio, "step": *record.Step} {
				within := e.LogRatio <= stats.StudentQuantile(0.975, e.DF)*e.SE
				if within != tc.zero {
					t.Errorf("the %s is %+v", what, e)
				}
			}
			confirmation := change.Confirmation{Alpha: 0.001, Runs: 1, Searched: 100}
			m := change.Measured{LogRatio: record.Ratio.LogRatio, SE: record.Ratio.SE, DF: record.Ratio.DF, Between: 1e-8, Old: 1, New: 1}
			if outcome := confirmation.Judge(0.06, m, 1); (outcome == change.Holds) == tc.zero {
				t.Errorf("a confirming run has outcome %s for %+v", outcome, m)
			}
		})
	}
}

// An analysis may have a reason of any length, which every series of a schedule stores.
func TestRun_LongReasonIsTruncated(t *testing.T) {
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

func TestWorkload_IndependentOfTheRevision(t *testing.T) {
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
				t.Errorf("%s, without edits %s", got, plain)
			}
		})
	}
}

func TestKeys_AreTheMetricsOfGates(t *testing.T) {
	exp, err := fixture.ScanExperiment(nil)
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
		t.Error("an increase of throughput counts as worse")
	}
	if worse := Worse(exp, series.Key{Metric: "latency"}); !worse(0.1) || worse(-0.1) {
		t.Error("a decrease of latency counts as worse")
	}
}

func TestRun_CheckRequiresRevisionsAndNames(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*Run)
		says string
	}{
		"no head":     {func(r *Run) { delete(r.Arms, Head) }, "both are required"},
		"no anchor":   {func(r *Run) { delete(r.Arms, Anchor) }, "both are required"},
		"no project":  {func(r *Run) { r.Project = "" }, "required for the series' key"},
		"no schedule": {func(r *Run) { r.Schedule = "" }, "both are required"},
		"no time":     {func(r *Run) { r.At = time.Time{} }, "at is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(point(tc.edit))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(raw); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want an error with %q", err, tc.says)
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

// A run may have thousands of series, each of which is looked up among all figures.
func TestRun_RecordsInLinearTime(t *testing.T) {
	exp := &experiment.Experiment{
		Spec: json.RawMessage("{}"), Template: json.RawMessage("{}"),
		Arms: []record.Arm{{Name: Anchor, Baseline: true}, {Name: Head}, {Name: Predecessor}},
	}
	found := &analysis.Analysis{Confidence: 0.95, GateConfidence: 0.99, Environment: map[string]any{"cpu": "x"}}
	for m := range 8 {
		exp.Plan.Metrics = append(exp.Plan.Metrics, experiment.Metric{Name: fmt.Sprint("metric", m), Statistic: experiment.StatisticMedian})
	}
	perBlock := map[string]float64{"b0": 1, "b1": 1.1, "b2": 1.01}
	for p := range 1000 {
		point := fmt.Sprintf("batchSize=%d,threads=4", p)
		exp.Points = append(exp.Points, record.Point{Key: point})
		for _, metric := range exp.Plan.Metrics {
			for _, arm := range exp.Arms {
				found.Arms = append(found.Arms, analysis.ArmResult{
					Point: point, Arm: arm.Name, Metric: metric.Name, Statistic: metric.Statistic})
				if !arm.Baseline {
					found.Ratios = append(found.Ratios, analysis.RatioResult{
						Point: point, Candidate: arm.Name, Metric: metric.Name, Statistic: metric.Statistic, PerBlock: perBlock})
				}
			}
		}
	}
	r := Run{
		Project: "team", Benchmark: "scan", ID: "run", Analysis: 1, Schedule: "nightly", At: time.Unix(1e9, 0),
		Arms: map[string]Revision{Head: {Revision: "c"}, Anchor: {Revision: "a"}, Predecessor: {Revision: "b"}},
	}
	used := cputime.Start()
	out, err := r.Of(exp, found)
	if err != nil || len(out) != 8000 {
		t.Fatalf("%d records, %v", len(out), err)
	}
	if took := used(); took > 5*time.Second {
		t.Errorf("%d records take %s", len(out), took)
	}
	for _, o := range out {
		if o.Record.Kind != series.Measured || o.Record.Ratio.Blocks != 3 || o.Record.Step == nil {
			t.Fatalf("%+v", o)
		}
	}
}
