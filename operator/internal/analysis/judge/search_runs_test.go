package judge_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

// searchExperiment searches rates from 100 to 1600 in doublings under a median latency of at most 4 ms.
func searchExperiment(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec)) *experiment.Experiment {
	t.Helper()
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		template.Parameters = append(template.Parameters, assayv1alpha1.Parameter{Name: "rate", Type: assayv1alpha1.IntegerParameter})
		spec.Parameters = assayv1alpha1.ParameterValues{"batchSize": "1"}
		spec.Sweep, spec.Gates, spec.Predictions = nil, nil, nil
		spec.Arms = []assayv1alpha1.Arm{spec.Arms[0], spec.Arms[2]}
		spec.Design.Blocks = assayv1alpha1.Blocks{Min: 4, Max: 12}
		spec.Search = &assayv1alpha1.Search{
			Maximize:  "throughput",
			Over:      assayv1alpha1.SearchAxis{Axis: "rate", Low: resource.MustParse("100"), High: resource.MustParse("1600"), Resolution: "100%"},
			SubjectTo: []assayv1alpha1.Constraint{{Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "4ms"}},
		}
		if edit != nil {
			edit(spec)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return exp
}

// served is a system whose latency is 4 ms at the capacity.
func served(capacity map[string]float64) func(record.Point, string) float64 {
	return func(point record.Point, arm string) float64 {
		rate, err := strconv.ParseFloat(point.Parameters["rate"], 64)
		if err != nil {
			return math.NaN()
		}
		return 0.004 * rate / capacity[arm]
	}
}

// searchTo runs a search to its end. Damage may change the attempts of a wave before they are judged.
func searchTo(t *testing.T, exp *experiment.Experiment, machine fixture.Machine, damage func(*record.Attempt)) *analysis.Analysis {
	t.Helper()
	course, evidence := design.Begin(exp), record.Evidence{}
	var found *analysis.Analysis
	_, err := course.Follow([]design.Lane{{}}, func(wave *record.Wave, _ string) (design.Findings, bool, error) {
		if wave.Wave > 60 {
			t.Fatalf("the search does not end: %+v", found.Search)
		}
		machine.Seed++
		attempts := machine.Run(exp, wave)
		for i := range attempts {
			if damage != nil {
				damage(&attempts[i])
			}
		}
		evidence.Waves, evidence.Attempts = course.Waves, append(evidence.Attempts, attempts...)
		found = analyze.Evidence(exp, evidence, wave.Wave)
		return found.Findings(), false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSearch_Answers(t *testing.T) {
	t.Parallel()
	capacity := map[string]float64{"loop": 300, "fused-m4r": 700, "null": 300}
	quiet := fixture.Noise{Block: 0.01, Arm: 0.01}
	at := func(rate string, arm string) func(*record.Attempt) bool {
		return func(a *record.Attempt) bool { return a.Arm == arm && a.Point == "rate="+rate }
	}
	type answer struct{ feasible, infeasible, binding, says string }
	cases := map[string]struct {
		edit   func(*assayv1alpha1.BenchmarkRunSpec)
		damage func(*record.Attempt)
		want   map[string]answer
	}{
		"every arm has its own capacity, the null arm the baseline's": {
			func(s *assayv1alpha1.BenchmarkRunSpec) { s.Design.NullArm = true }, nil,
			map[string]answer{
				"loop":      {"200", "400", "latency median at most 4.000 ms", "200 meets every constraint and 400 breaks latency median at most 4.000 ms; confirmed on fresh blocks"},
				"fused-m4r": {"400", "800", "latency median at most 4.000 ms", "confirmed"},
				"null":      {"200", "400", "latency median at most 4.000 ms", "confirmed"},
			},
		},
		"a lower bound": {
			func(s *assayv1alpha1.BenchmarkRunSpec) {
				s.Search.SubjectTo = []assayv1alpha1.Constraint{{Metric: "throughput", Op: assayv1alpha1.AtLeast, Bound: "250"}}
			}, nil,
			map[string]answer{"loop": {"200", "400", "throughput at least 250.0 queries/s", ""},
				"fused-m4r": {"400", "800", "throughput at least 250.0 queries/s", ""}},
		},
		"the tightest of two constraints binds": {
			func(s *assayv1alpha1.BenchmarkRunSpec) {
				s.Search.SubjectTo = append(s.Search.SubjectTo,
					assayv1alpha1.Constraint{Metric: "latency", Statistic: assayv1alpha1.StatisticMax, Op: assayv1alpha1.AtMost, Bound: "2ms"})
			}, nil,
			map[string]answer{"loop": {"100", "200", "latency max at most 2.000 ms", ""},
				"fused-m4r": {"200", "400", "latency max at most 2.000 ms", ""}},
		},
		"a load that some trials do not complete is broken, and not Invalid": {
			nil, func(a *record.Attempt) {
				if at("400", "fused-m4r")(a) && a.Slot%2 == 1 {
					a.Outcome, a.Result, a.ExitCode, a.Message = record.TimedOut, nil, nil, "it took longer than 5m"
				}
			},
			map[string]answer{"loop": {"200", "400", "latency median at most 4.000 ms", ""},
				"fused-m4r": {"200", "400", "completing: trial w", "breaks completing: trial"}},
		},
		"a load whose blocks were all lost is no breach": {
			nil, func(a *record.Attempt) {
				if at("200", "loop")(a) {
					a.Outcome, a.Result, a.ExitCode, a.Message = record.NotStarted, nil, nil, "the node was drained"
				}
			},
			map[string]answer{"loop": {"100", "400", "latency median at most 4.000 ms", "200 is undecided after 0 blocks"},
				"fused-m4r": {"400", "800", "latency median at most 4.000 ms", ""}},
		},
		"losses of every arm at a load excuse none of them": {
			nil, func(a *record.Attempt) {
				if a.Point == "rate=200" && a.Slot%experiment.VisitTrials == 2 {
					a.Outcome, a.Result, a.ExitCode, a.Message = record.NotStarted, nil, nil, "the node was drained"
				}
			},
			map[string]answer{"loop": {"100", "400", "latency median at most 4.000 ms", "200 is undecided"},
				"fused-m4r": {"400", "800", "latency median at most 4.000 ms", ""}},
		},
		"a load right at the bound is neither": {
			func(s *assayv1alpha1.BenchmarkRunSpec) { s.Search.SubjectTo[0].Bound = "2.667ms" }, nil,
			map[string]answer{"loop": {"100", "400", "latency median at most 2.667 ms", "200 is undecided after 12 blocks"},
				"fused-m4r": {"400", "800", "", ""}},
		},
		"an arm of another workload than its baseline is not judged": {
			nil, func(a *record.Attempt) {
				if a.Arm == "fused-m4r" {
					a.Result.Workload.Name = "other"
				}
			},
			map[string]answer{"loop": {"200", "400", "latency median at most 4.000 ms", ""},
				"fused-m4r": {"", "", "", `not judged: the results of arm fused-m4r are of workload "other"`}},
		},
		"a wrong output has no capacity": {
			nil, func(a *record.Attempt) {
				if a.Arm == "fused-m4r" {
					a.Result.Parity.Digest = strings.Repeat("f", 64)
				}
			},
			map[string]answer{"loop": {"200", "400", "latency median at most 4.000 ms", ""}, "fused-m4r": {"", "", "", "not judged: "}},
		},
	}
	for name, tc := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			exp := searchExperiment(t, tc.edit)
			found := searchTo(t, exp, fixture.Machine{Seconds: served(capacity), Noise: quiet}, tc.damage)
			if found.Verdict != "" {
				t.Errorf("a search has verdict %s", found.Verdict)
			}
			if len(found.Search) != len(tc.want) {
				t.Fatalf("%d answers, want %d", len(found.Search), len(tc.want))
			}
			for _, got := range found.Search {
				want := tc.want[got.Arm]
				if got.FeasibleMax != want.feasible || got.InfeasibleMin != want.infeasible ||
					!strings.HasPrefix(got.BindingConstraint, want.binding) ||
					!strings.Contains(got.Reason, want.says) || !got.Complete {
					t.Errorf("%s: got %+v, want %+v", got.Arm, got, want)
				}
				if want.feasible == "" {
					continue
				}
				if got.Interval == nil || got.Interval.Low != want.feasible || got.Interval.High != want.infeasible {
					t.Errorf("%s: interval %+v", got.Arm, got.Interval)
				}
				index := slices.IndexFunc(got.Levels, func(l search.Level) bool { return l.Load == want.feasible })
				if got.Value == nil || got.Value.Blocks != got.Levels[index].Probe.Blocks+got.Levels[index].Fresh.Blocks {
					t.Errorf("%s: value %+v over the blocks of %+v", got.Arm, got.Value, got.Levels[index])
				}
			}
		})
	}
}

// The whole way, from plan to attempts to analysis to plan: the interval holds the truth at least 95 times in 100.
func TestSearch_IntervalContainsTheTruth(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	exp := searchExperiment(t, func(s *assayv1alpha1.BenchmarkRunSpec) {
		s.Arms = s.Arms[:1]
		s.Arms[0].Baseline = false
		s.Search.Over.Resolution, s.Parameters["iterations"] = "10%", "3"
	})
	const runs = 40
	held, bounded := 0, 0
	for seed := range uint64(runs) {
		capacity := 150 * math.Pow(8, float64(seed)/runs)
		found := searchTo(t, exp, fixture.Machine{
			Seed: 1000 * seed, Seconds: served(map[string]float64{"loop": capacity}), Noise: fixture.Noise{Block: 0.05, Arm: 0.03, Trial: 0.02}, Samples: 3,
		}, nil).Search[0]
		if found.Interval == nil {
			continue
		}
		bounded++
		low, err := strconv.ParseFloat(found.Interval.Low, 64)
		high, err2 := strconv.ParseFloat(found.Interval.High, 64)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if low <= capacity && capacity < high {
			held++
		}
	}
	t.Logf("%d of %d searches have an interval and %d of them hold the truth", bounded, runs, held)
	if bounded < runs*95/100 || held < bounded*95/100 {
		t.Errorf("%d of %d searches have an interval and %d of them hold the truth, want 95 %%", bounded, runs, held)
	}
}
