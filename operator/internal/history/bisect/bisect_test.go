package bisect

import (
	"encoding/json"
	"fmt"
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
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/locate"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/record"
)

var latency = series.Key{Project: "team", Benchmark: "scan", Point: "batchSize=1", Metric: "latency", Statistic: "median"}

func searchOf(revisions int) *Search {
	out := &Search{Key: latency, Question: Defaults(revisions)}
	for i := range revisions {
		out.Revisions = append(out.Revisions, points.Revision{Revision: fmt.Sprintf("c%d", i), Image: fmt.Sprintf("a/b@sha256:%064x", i)})
	}
	return out
}

// freeze returns the experiment of a wave.
func freeze(s *Search, wave *locate.Wave, failed map[int]string, edits ...func(*assayv1alpha1.BenchmarkRunSpec)) (*experiment.Experiment,
	error) {
	var wrong error
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Sweep.Axes = []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1"}}}
		spec.Arms = []assayv1alpha1.Arm{{Name: points.Head, Parameters: assayv1alpha1.ParameterValues{"strategy": "loop"}}}
		spec.Gates = []assayv1alpha1.Gate{
			{Name: "no-slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05", Candidate: points.Head},
		}
		for _, edit := range edits {
			edit(spec)
		}
		var made assayv1alpha1.BenchmarkRunSpec
		made, wrong = s.Spec(*spec, wave, failed, func(arm *assayv1alpha1.Arm, r points.Revision) { arm.Image = r.Image })
		*spec = made
	})
	if wrong != nil {
		return nil, wrong
	}
	return exp, err
}

// play measures the waves of a search until it ends. Each wave runs in a simulated new process, which has only the JSON of the search.
func play(t *testing.T, s *Search, seconds func(int) float64, missing func(int) string) *Answer {
	t.Helper()
	for {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		s = &Search{}
		if err := json.Unmarshal(raw, s); err != nil {
			t.Fatal(err)
		}
		step := s.Next()
		if step.Wave == nil {
			break
		}
		ran := Ran{Wave: step.Wave, Failed: map[int]string{}, Ledger: fmt.Sprintf("ledger-%d", len(s.Done))}
		for _, r := range step.Wave.Revisions {
			if why := missing(r); why != "" {
				ran.Failed[r] = why
			}
		}
		if ran.Failed[0] == "" && ran.Failed[len(s.Revisions)-1] == "" {
			measure(t, s, &ran, seconds)
		}
		if err := s.Add(ran); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := s.Answer()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Ledgers) != len(s.Done) {
		t.Errorf("%d waves and the ledgers %v", len(s.Done), s.Ledgers)
	}
	return answer
}

func measure(t *testing.T, s *Search, ran *Ran, seconds func(int) float64) {
	t.Helper()
	exp, err := freeze(s, ran.Wave, ran.Failed)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, ran.Wave.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	machine := fixture.Machine{
		Seed: uint64(len(s.Done)) + 1, Noise: fixture.Noise{Block: 0.05, Trial: 0.005},
		Seconds: func(_ record.Point, arm string) float64 {
			var r int
			if _, err := fmt.Sscanf(arm, "r%d", &r); err != nil {
				panic(err)
			}
			return seconds(r)
		},
	}
	attempts := machine.Run(exp, wave)
	ran.Experiment, ran.Analysis = exp, analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
}

func never(int) string { return "" }

// A gate of the template need not judge revisions, and a template need not have a gate.
func TestAdd_IncomparableRevisionIsSkipped(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(at int, a *record.Attempt)
		says   string
	}{
		"nothing happens":         {func(int, *record.Attempt) {}, ""},
		"measured on shared CPUs": {func(_ int, a *record.Attempt) { a.Isolation.Level = "Shared" }, "(measured-unlike)"},
		"half of its trials crash": {func(at int, a *record.Attempt) {
			if at%2 == 0 {
				a.Outcome, a.Result = record.Failed, nil
			}
		}, "(incomplete)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := searchOf(5)
			wave := s.Next().Wave
			exp, err := freeze(s, wave, nil, func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Gates = nil })
			if err != nil {
				t.Fatal(err)
			}
			planned, err := fixture.Wave(exp, 0, 0, wave.Blocks)
			if err != nil {
				t.Fatal(err)
			}
			machine := fixture.Machine{
				Seed: 1, Noise: fixture.Noise{Block: 0.05, Trial: 0.005}, Seconds: func(record.Point, string) float64 { return 0.01 },
			}
			attempts, at := machine.Run(exp, planned), 0
			for i := range attempts {
				if a := &attempts[i]; a.Arm == Arm(2) && !a.Warmup {
					tc.change(at, a)
					at++
				}
			}
			found := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*planned}, Attempts: attempts}, 0)
			if err := s.Add(Ran{Wave: wave, Experiment: exp, Analysis: found}); err != nil {
				t.Fatal(err)
			}
			for _, level := range s.Done[0].Levels {
				if level.Failed != (level.Revision == 2 && tc.says != "") || level.Failed && !strings.Contains(level.Why, tc.says) {
					t.Errorf("revision %d failed: %v, %q", level.Revision, level.Failed, level.Why)
				}
			}
		})
	}
}

// JSON cannot represent NaN and infinities; a wave whose result cannot be stored would be repeated forever.
func TestAdd_AnyResultCanBeStored(t *testing.T) {
	invalid := func(r int) analysis.Candidate {
		return analysis.Candidate{Name: Arm(r), Verdict: experiment.VerdictInvalid, Reason: "it is invalid"}
	}
	for name, tc := range map[string]struct {
		seconds func(int) float64
		edit    func(*analysis.Analysis)
		says    string
	}{
		"one revision remains": {slower(0.04, 3), func(a *analysis.Analysis) {
			a.Candidates = nil
			for r := range 4 {
				a.Candidates = append(a.Candidates, invalid(r))
			}
		}, "the first revision could not be measured"},
		"only the baseline remains": {slower(0.04, 3), func(a *analysis.Analysis) {
			a.Candidates = nil
			for r := range 5 {
				a.Candidates = append(a.Candidates, invalid(r+1))
			}
		}, "could be measured"},
		"ratios that overflow": {slower(0.04, 3), func(a *analysis.Analysis) {
			for i := range a.Ratios {
				for block := range a.Ratios[i].PerBlock {
					a.Ratios[i].PerBlock[block] = map[string]float64{Arm(1): 1, Arm(2): 1e-300}[a.Ratios[i].Candidate]
					if r := a.Ratios[i].Candidate; r == Arm(3) || r == Arm(4) {
						a.Ratios[i].PerBlock[block] = 1e300
					}
				}
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := searchOf(5)
			s.Question.Shift = 700 // Of an untrusted analysis.
			for step := s.Next(); step.Wave != nil; step = s.Next() {
				ran := Ran{Wave: step.Wave, Failed: map[int]string{}}
				measure(t, s, &ran, tc.seconds)
				tc.edit(ran.Analysis)
				if err := s.Add(ran); err != nil {
					t.Fatal(err)
				}
				if _, err := json.Marshal(s); err != nil {
					t.Fatalf("%v: %+v", err, s.Done)
				}
			}
			answer, err := s.Answer()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := json.Marshal(answer); err != nil || !strings.Contains(answer.Why, tc.says) {
				t.Errorf("%v: %+v", err, answer)
			}
		})
	}
}

// slower increases the time by this share from each of these revisions on.
func slower(by float64, at ...int) func(int) float64 {
	return func(r int) float64 {
		out := 0.01
		for _, c := range at {
			if r >= c {
				out *= 1 + by
			}
		}
		return out
	}
}

func TestAnswer_CulpritsAndReasons(t *testing.T) {
	unbuilt := func(which ...int) func(int) string {
		return func(r int) string {
			if slices.Contains(which, r) {
				return "it does not build"
			}
			return ""
		}
	}
	for name, tc := range map[string]struct {
		seconds func(int) float64
		missing func(int) string
		want    []string
		skipped []string
		why     string
	}{
		"one culprit": {slower(0.04, 23), never, []string{"c23"}, nil, ""},
		"two commits": {slower(0.05, 9, 31), never, []string{"c9", "c31"}, nil, ""},
		"a range around revisions that do not build": {slower(0.04, 23), unbuilt(22, 23), []string{"one of 3 revisions after c21 up to c24"}, []string{"c22", "c23"}, ""},
		"equal ends":                          {slower(0), never, nil, nil, "the ends do not differ"},
		"an unmeasurable first revision":      {slower(0.04, 23), unbuilt(0), nil, []string{"c0"}, "the first revision could not be measured"},
		"an unmeasurable last revision":       {slower(0.04, 23), unbuilt(39), nil, []string{"c39"}, "the last revision could not be measured"},
		"a revision whose run has no figures": {func(r int) float64 { return map[bool]float64{true: 0, false: slower(0.04, 23)(r)}[r == 20] }, never, []string{"c23"}, []string{"c20"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := play(t, searchOf(40), tc.seconds, tc.missing)
			var got, skipped []string
			for i := range answer.Culprits {
				c := &answer.Culprits[i]
				got = append(got, c.Name())
				if c.Fresh == nil || math.Abs(math.Exp(c.Fresh.LogRatio)-c.Ratio) > 0.01 || c.Ratio < 1.03 || c.Ratio > 1.06 {
					t.Errorf("%+v", c)
				}
			}
			for _, s := range answer.Skipped {
				skipped = append(skipped, s.Revision)
			}
			if slices.Sort(skipped); !slices.Equal(got, tc.want) || !slices.Equal(skipped, tc.skipped) || !strings.HasPrefix(answer.Why, tc.why) {
				t.Errorf("answer %v, %q without %v: %+v", got, answer.Why, skipped, answer)
			}
			if names := answer.Names(); len(names) != len(tc.want) || len(names) > 0 && !strings.Contains(answer.Story(), names[0]) {
				t.Errorf("%v: %s", names, answer.Story())
			}
		})
	}
}

func TestSpec_ArmsOfAWave(t *testing.T) {
	s := searchOf(40)
	wave := &locate.Wave{Revisions: []int{0, 7, 9, 39}, Blocks: 10}
	exp, err := freeze(s, wave, map[int]string{7: "it does not build"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, arm := range exp.Arms {
		got = append(got, fmt.Sprintf("%s %s %v", arm.Name, arm.Image[len(arm.Image)-2:], arm.Baseline))
	}
	if diff := cmp.Diff([]string{"r0 00 true", "r9 09 false", "r39 27 false"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Spec(assayv1alpha1.BenchmarkRunSpec{}, wave, nil, nil); err == nil || !strings.Contains(err.Error(), `"head"`) {
		t.Errorf("without a head: %v", err)
	}
	if err := s.Add(Ran{Wave: wave}); err == nil || !strings.Contains(err.Error(), "the search waits for") {
		t.Errorf("an unexpected wave: %v", err)
	}
	if _, err := s.Answer(); err == nil {
		t.Error("an unfinished search has an answer")
	}
}

// TestAdd_ErrorsOfLevelsMatchTheRatio compares the difference of two levels and its error with the ratio of the analysis.
func TestAdd_ErrorsOfLevelsMatchTheRatio(t *testing.T) {
	s := searchOf(40)
	ran := Ran{Wave: s.Next().Wave, Failed: map[int]string{}}
	measure(t, s, &ran, slower(0.04, 23))
	if err := s.Add(ran); err != nil {
		t.Fatal(err)
	}
	ratio, err := points.Difference(ran.Experiment, ran.Analysis, latency, []string{Arm(39)}, []string{Arm(0)})
	if err != nil {
		t.Fatal(err)
	}
	good, bad := s.Done[0].Levels[0], s.Done[0].Levels[1]
	if apart := bad.Log - good.Log; math.Abs(apart-ratio.LogRatio) > 1e-12 || math.Abs(math.Hypot(good.SE, bad.SE)-ratio.SE) > 1e-12 {
		t.Errorf("levels %+v and %+v, ratio %+v", good, bad, ratio)
	}
}

func TestSearch_Check(t *testing.T) {
	for want, edit := range map[string]func(*Search){
		"metric is empty":                 func(s *Search) { s.Key.Metric = "" },
		"found 40, but the question":      func(s *Search) { s.Question.Revisions = 3 },
		"revisions[3]: the name is empty": func(s *Search) { s.Revisions[3].Revision = "" },
		`revisions[3]: found "c2" twice`:  func(s *Search) { s.Revisions[3].Revision = "c2" },
		"blocks: found 0":                 func(s *Search) { s.Question.Blocks = 0 },
	} {
		s := searchOf(40)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		edit(s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestEndsOf_PointsBesideTheDates(t *testing.T) {
	measured := func(metric, machine string, numbers ...int) *series.Series {
		key := latency
		key.Metric = metric
		var records []series.Record
		for _, n := range numbers {
			records = append(records, series.Record{
				Kind: series.Measured, ID: fmt.Sprint("run-", n), Schedule: "s", Sequence: int64(n), At: time.Unix(int64(n), 0), Head: fmt.Sprint("c", n),
				Image: "image", Anchor: "a", Machine: machine, Workload: "w",
				Ratio: series.Estimate{LogRatio: 0.01 * math.Sin(float64(n)), SE: 0.001, DF: 9, Blocks: 10},
			})
		}
		out, err := series.Of(key, records)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	clear, faint := measured("latency", "m", 1, 2, 4, 6, 7), measured("throughput", "m", 1, 2, 4, 6, 7)
	effects := []change.Effect{{Series: faint.Key.ID(), LogRatio: -0.02, SE: 0.01}, {Series: clear.Key.ID(), LogRatio: 0.04, SE: 0.002}}
	for name, tc := range map[string]struct {
		from, to int64
		all      []*series.Series
		want     string
		fails    string
	}{
		"the points beside its dates":                       {4, 6, []*series.Series{faint, clear}, "latency 0.04 c2 c6", ""},
		"the points of another series without the clearest": {4, 4, []*series.Series{faint}, "throughput -0.02 c2 c4", ""},
		"the first two points of an unclear date":           {1, 2, []*series.Series{clear}, "latency 0.04 c1 c2", ""},
		"no points beyond the end of a series":              {7, 9, []*series.Series{clear}, "", "no series has comparable points on both sides"},
		"no points without the series":                      {4, 6, nil, "", "no series has comparable points on both sides"},
		"no points if both have the same revision":          {1, 1, []*series.Series{clear}, "", "no series has comparable points on both sides"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &change.Change{ID: "x", From: tc.from, To: tc.to, Effects: effects}
			got, err := EndsOf(c, tc.all)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprintf("%s %g %s %s", got.Key.Metric, got.Shift, got.Good.Revision, got.Bad.Revision); text != tc.want {
				t.Errorf("%s, want %s", text, tc.want)
			}
			if q := got.Question(5); q.Shift != got.Shift || q.Between != Layout*Layout || q.Revisions != 5 {
				t.Errorf("%+v", q)
			}
		})
	}
	beside := []change.Effect{{Series: clear.Key.ID(), LogRatio: 0.04, SE: 0.002, Between: 1e-8}}
	got, err := EndsOf(&change.Change{ID: "x", From: 4, To: 6, Effects: beside}, []*series.Series{clear})
	if err != nil || got.Between != 1e-8 {
		t.Errorf("found %+v, %v; want the variance between builds of the confirming run", got, err)
	}
	var many []int
	for n := range 20 {
		many = append(many, n+1)
	}
	if between := BetweenBuilds(measured("latency", "m", many...)); between == Layout*Layout || !(between > 0) {
		t.Errorf("twenty points give a spread between builds of %g", math.Sqrt(between))
	}
}
