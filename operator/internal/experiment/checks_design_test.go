package experiment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

type (
	runSpec      = assayv1alpha1.BenchmarkRunSpec
	templateSpec = assayv1alpha1.BenchmarkTemplateSpec
)

// refusal is an invalid edit, the field of the expected problem and a part of its message.
type refusal struct {
	edit  func(*runSpec, *templateSpec)
	field string
	says  string
}

func blockingGate(name string, op assayv1alpha1.GateOperator, bound string) assayv1alpha1.Gate {
	return assayv1alpha1.Gate{Name: name, Metric: "throughput", Op: op, Bound: bound}
}

func TestFreeze_InvalidDesignsAreRejected(t *testing.T) {
	adaptive := func(s *runSpec) {
		s.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"}
		s.Gates = []assayv1alpha1.Gate{blockingGate("gain", assayv1alpha1.RatioAtLeast, "1.5")}
	}
	checkRefusals(t, testSpec, map[string]refusal{
		"a null arm beside one arm only": {
			func(s *runSpec, _ *templateSpec) {
				s.Arms, s.Design.NullArm = s.Arms[:1], true
			},
			"spec.design.nullArm", "the run has one arm: add an arm, or remove nullArm",
		},
		"a null arm beside an arm of that name": {
			func(s *runSpec, _ *templateSpec) { s.Arms[1].Name, s.Design.NullArm = "null", true },
			"spec.arms", `an arm is named "null", as the one that spec.design.nullArm adds: rename it`,
		},
		"more warm-ups than trials": {
			func(s *runSpec, _ *templateSpec) {
				s.Design.WarmupTrials = 4
			},
			"spec.design.warmupTrials", "4 warm-ups of every arm and point and measure 3",
		},
		"a gate confidence below that of the results": {
			func(s *runSpec, _ *templateSpec) { s.Design.GateConfidence = "0.9" },
			"spec.design.gateConfidence", "value 0.9 is below spec.design.confidence 0.95",
		},
		"an invalid gate confidence": {
			func(s *runSpec, _ *templateSpec) { s.Design.GateConfidence = "high" },
			"spec.design.gateConfidence", `invalid value "high": allowed are numbers between 0.5 and 1; write it as 0.995`,
		},
		"a stopping rule that begins with too few blocks": {
			func(s *runSpec, _ *templateSpec) { adaptive(s); s.Design.Blocks.Min = 9 },
			"spec.design.stop", "spec.design.blocks.min is 9 and a stopping rule needs at least 10",
		},
		"a rare slowdown of nothing": {
			func(s *runSpec, _ *templateSpec) { s.Design.RareSlowdown = "0%" },
			"spec.design.rareSlowdown", `invalid value "0%": allowed are shares above 0% and up to 1000%`,
		},
		"an unknown time unit": {
			func(_ *runSpec, t *templateSpec) { t.Metrics[0].Unit = "CPU-seconds" },
			"template.metrics[0].unit", `unknown time unit "CPU-seconds": use s, ms, us, ns or a rate`,
		},
		"a correlation of one": {
			func(s *runSpec, _ *templateSpec) { s.Design.BlockCorrelation = "1" },
			"spec.design.blockCorrelation", `invalid value "1": allowed are numbers between 0 and 0.95; write it as 0.85, or remove it`,
		},
		"a correlation that too few blocks carry": {
			func(s *runSpec, _ *templateSpec) { s.Design.BlockCorrelation, s.Design.Blocks.Min = "0.85", 5 },
			"spec.design.blocks.min", "found 5 blocks, and at least 6 are needed to estimate an interval with spec.design.blockCorrelation 0.85",
		},
		"a correlation that too few confirming blocks carry": {
			func(s *runSpec, _ *templateSpec) {
				s.Design.BlockCorrelation, s.Design.Confirm = "0.85", &assayv1alpha1.Confirm{Blocks: 5}
				s.Gates = []assayv1alpha1.Gate{blockingGate("gain", assayv1alpha1.RatioAtLeast, "1.5")}
			},
			"spec.design.confirm.blocks", "found 5 blocks, and at least 6 are needed to confirm a verdict with spec.design.blockCorrelation 0.85",
		},
		"a control phase without a name": {
			func(s *runSpec, _ *templateSpec) { s.Design.ControlPhases = []string{"load", " "} },
			"spec.design.controlPhases[1]", "the phase has no name",
		},
		"a precision of nothing": {
			func(s *runSpec, _ *templateSpec) { adaptive(s); s.Design.Stop.RelativeHalfWidth = "0.0%" },
			"spec.design.stop.relativeHalfWidth", `invalid value "0.0%"`,
		},
		"a stopping rule for a difference, which may be 0": {
			func(s *runSpec, _ *templateSpec) {
				adaptive(s)
				s.Gates[0].Op, s.Gates[0].Bound = assayv1alpha1.DifferenceAtLeast, "0"
			},
			"spec.design.stop", "no Blocking gate has an interval to make narrower: add one with RatioAtLeast, ",
		},
		"a stopping rule without an interval to make narrower": {
			func(s *runSpec, _ *templateSpec) {
				adaptive(s)
				s.Gates = append(s.Gates, assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual})
				s.Gates[0].Severity = assayv1alpha1.Advisory
			},
			"spec.design.stop", "no Blocking gate has an interval to make narrower",
		},
		"a stopping rule that may add no block": {
			func(s *runSpec, _ *templateSpec) { adaptive(s); s.Design.Blocks.Max = 10 },
			"spec.design.stop", "spec.design.blocks.max is 10 like min",
		},
		"a stopping rule that can never be met within the budget": {
			func(s *runSpec, _ *templateSpec) { adaptive(s); s.Budget.Trials = 131 },
			"spec.budget.trials", "the budget of 131 allows 10 blocks of 12 trials, so that spec.design.stop could never add one to the first 10",
		},
		"a confirmation that the budget does not hold": {
			func(s *runSpec, _ *templateSpec) {
				s.Gates = []assayv1alpha1.Gate{blockingGate("gain", assayv1alpha1.RatioAtLeast, "1.5")}
				s.Design.Confirm = &assayv1alpha1.Confirm{Blocks: 4}
				s.Budget.Trials = 167
			},
			"spec.budget.trials", "10 blocks and 4 to confirm them, of 12 trials each, are 168 trials and the budget is 167",
		},
		"a confirmation of no verdict": {
			func(s *runSpec, _ *templateSpec) { s.Design.Confirm = &assayv1alpha1.Confirm{} },
			"spec.design.confirm", "no verdict to confirm",
		},
		"contradicting ratio gates": {
			func(s *runSpec, _ *templateSpec) {
				most := blockingGate("most", assayv1alpha1.RatioAtMost, "1.1")
				most.At, most.Candidate = values{"batchSize": "8"}, "fused"
				s.Gates = []assayv1alpha1.Gate{most, blockingGate("least", assayv1alpha1.RatioAtLeast, "1.2")}
			},
			"spec.gates[1]", `"least" asks for at least 1.2 and "most" (spec.gates[0]) for at most 1.1 of the same throughput`,
		},
		"contradicting level gates": {
			func(s *runSpec, _ *templateSpec) {
				s.Gates = []assayv1alpha1.Gate{blockingGate("least", assayv1alpha1.AtLeast, "23k"), blockingGate("most", assayv1alpha1.AtMost, "23000")}
			},
			"spec.gates[0]", "no interval meets both",
		},
	})
}

func TestFreeze_GatesOfDifferentPointsDoNotContradict(t *testing.T) {
	spec := testSpec()
	least, most := blockingGate("least", assayv1alpha1.RatioAtLeast, "1.2"), blockingGate("most", assayv1alpha1.RatioAtMost, "1.1")
	least.At, most.At = values{"batchSize": "8"}, values{"batchSize": "1"}
	elsewhere := blockingGate("level", assayv1alpha1.AtMost, "1")
	most.AllowWorse, elsewhere.AllowWorse = true, true
	spec.Gates = []assayv1alpha1.Gate{least, most, elsewhere}
	if _, err := freezeAndCheck(t, spec, testTemplate()); err != nil {
		t.Errorf("gates at other points and of another kind are refused: %v", err)
	}
}

func TestFreeze_NullArmRepeatsBaseline(t *testing.T) {
	spec := testSpec()
	spec.Design.NullArm = true
	frozen, err := freezeAndCheck(t, spec, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Arm{{Name: "loop", Baseline: true}, {Name: "fused"}, {Name: "null", Null: true}}
	if diff := cmp.Diff(want, frozen.Arms); diff != "" {
		t.Errorf("arms (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"fused"}, frozen.Candidates()); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	for point := range frozen.Points {
		baseline, null := frozen.Cells[3*point], frozen.Cells[3*point+2]
		if null.Arm != 2 || null.Point != point {
			t.Fatalf("cell %d is of arm %d at point %d", 3*point+2, null.Arm, null.Point)
		}
		null.Arm = baseline.Arm
		if diff := cmp.Diff(baseline, null); diff != "" {
			t.Errorf("the null arm's command differs from the baseline's (-baseline +null):\n%s", diff)
		}
	}
}

func testSearch() runSpec {
	spec := testSpec()
	spec.Sweep = nil
	spec.Search = &assayv1alpha1.Search{
		Maximize: "throughput",
		Over:     assayv1alpha1.SearchAxis{Axis: "batchSize", Low: resource.MustParse("1"), High: resource.MustParse("32"), Resolution: "50%"},
		SubjectTo: []assayv1alpha1.Constraint{
			{Metric: "latency", Statistic: assayv1alpha1.StatisticP95, Op: assayv1alpha1.AtMost, Bound: "2ms"},
		},
	}
	return spec
}

func TestFreeze_InvalidSearchesAreRejected(t *testing.T) {
	checkRefusals(t, testSearch, map[string]refusal{
		"a search axis that is also a sweep axis": {
			func(s *runSpec, _ *templateSpec) { s.Sweep = testSpec().Sweep },
			"spec.sweep.axes[0].name", `"batchSize" is the search axis`,
		},
		"a sweep beside the search": {
			func(s *runSpec, _ *templateSpec) {
				s.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "ratio", Values: []string{"1"}}}}
			},
			"spec.sweep", "one answer per arm and a sweep many points",
		},
		"a search axis that an arm sets": {
			func(s *runSpec, _ *templateSpec) { s.Arms[1].Parameters["batchSize"] = "8" },
			"spec.arms[1].parameters.batchSize", "is the search axis",
		},
		"a search axis that the run sets": {
			func(s *runSpec, _ *templateSpec) { s.Parameters = values{"batchSize": "8"} },
			"spec.parameters.batchSize", "is the search axis",
		},
		"a search axis that is no number": {
			func(s *runSpec, _ *templateSpec) { s.Search.Over.Axis = "strategy" },
			"spec.search.over.axis", `parameter "strategy" has type String: a load must be an Integer or a Number`,
		},
		"a search axis that the template does not have": {
			func(s *runSpec, _ *templateSpec) { s.Search.Over.Axis = "rate" },
			"spec.search.over.axis", `no parameter "rate": allowed are batchSize`,
		},
		"bounds that are equal": {
			func(s *runSpec, _ *templateSpec) { s.Search.Over.Low = s.Search.Over.High },
			"spec.search.over", "low and high are both 32",
		},
		"a lowest load of nothing": {
			func(s *runSpec, _ *templateSpec) { s.Search.Over.Low = resource.MustParse("0") },
			"spec.search.over.low", "invalid value 0: the loads are multiples of it",
		},
		"a load above the parameter's maximum": {
			func(s *runSpec, _ *templateSpec) { s.Search.Over.High = resource.MustParse("33") },
			"spec.search.over.high", "value 33, above its maximum 32",
		},
		"a load below the parameter's minimum": {
			func(s *runSpec, tpl *templateSpec) { tpl.Parameters[0].Minimum = ptr.To(resource.MustParse("2")) },
			"spec.search.over.low", "value 1, below its minimum 2",
		},
		"a resolution of nothing": {
			func(s *runSpec, _ *templateSpec) { s.Search.Over.Resolution = "0%" },
			"spec.search.over.resolution", `invalid value "0%": loads would not differ`,
		},
		"a resolution too fine": {
			func(s *runSpec, _ *templateSpec) { s.Search.Over.Resolution = "1%" },
			"spec.search.over.resolution", "350 loads from 1 to 32 in steps of 1% times 2 arms are more than 512",
		},
		"a metric to maximize that the template does not have": {
			func(s *runSpec, _ *templateSpec) { s.Search.Maximize = "speed" },
			"spec.search.maximize", `no metric "speed"`,
		},
		"a constraint on a metric that the template does not have": {
			func(s *runSpec, _ *templateSpec) { s.Search.SubjectTo[0].Metric = "speed" },
			"spec.search.subjectTo[0].metric", `no metric "speed"`,
		},
		"a constraint whose bound is in another unit": {
			func(s *runSpec, _ *templateSpec) { s.Search.SubjectTo[0].Metric = "throughput" },
			"spec.search.subjectTo[0].bound", `is a duration and the metric's unit is "queries/s"`,
		},
		"a constraint on a ratio": {
			func(s *runSpec, _ *templateSpec) { s.Search.SubjectTo[0].Op = assayv1alpha1.RatioAtMost },
			"spec.search.subjectTo[0].op", `invalid value "RatioAtMost": allowed are AtLeast, AtMost`,
		},
		"a percentile that never has enough samples": {
			func(s *runSpec, _ *templateSpec) { s.Parameters = values{"iterations": "9"} },
			"spec.search.subjectTo[0].statistic", "needs at least 200 samples and arm \"loop\" gets 180 at a load",
		},
		"constraints that contradict each other": {
			func(s *runSpec, _ *templateSpec) {
				s.Search.SubjectTo = append(s.Search.SubjectTo,
					assayv1alpha1.Constraint{Metric: "latency", Statistic: assayv1alpha1.StatisticP95, Op: assayv1alpha1.AtLeast, Bound: "3ms"})
			},
			"spec.search.subjectTo[1]", "at least 3ms and spec.search.subjectTo[0] for at most 2ms",
		},
		"a gate at a value of the search axis": {
			func(s *runSpec, _ *templateSpec) {
				s.Gates = []assayv1alpha1.Gate{blockingGate("gain", assayv1alpha1.RatioAtLeast, "1.5")}
				s.Gates[0].At = values{"batchSize": "8"}
			},
			"spec.gates[0].at.batchSize", "the loads to try are not known beforehand",
		},
		"gates beside the search": {
			func(s *runSpec, _ *templateSpec) {
				s.Gates = []assayv1alpha1.Gate{blockingGate("gain", assayv1alpha1.RatioAtLeast, "1.5")}
			},
			"spec.gates", "a search has no verdict",
		},
		"a prediction beside the search": {
			func(s *runSpec, _ *templateSpec) {
				s.Predictions = []assayv1alpha1.Prediction{{Metric: "throughput", Ratio: "2"}}
			},
			"spec.predictions", "a search chooses its points",
		},
		"a stopping rule beside the search": {
			func(s *runSpec, _ *templateSpec) { s.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"} },
			"spec.design.stop", "a search has its own stopping rule",
		},
		"too few blocks for an interval": {
			func(s *runSpec, _ *templateSpec) { s.Design.Blocks.Min = 2; s.Parameters = values{"iterations": "100"} },
			"spec.design.blocks.min", "use at least 3",
		},
		"a first pass that the budget does not hold": {
			func(s *runSpec, _ *templateSpec) { s.Budget.Trials = 419 },
			"spec.budget.trials", "trying 7 loads of 2 arms in 10 blocks takes 420 trials and the budget is 419",
		},
	})
}

func TestFreeze_LoadsOfSearch(t *testing.T) {
	cases := map[string]struct {
		edit func(*assayv1alpha1.SearchAxis)
		want []string
	}{
		"integers are rounded, and come once": {
			func(*assayv1alpha1.SearchAxis) {}, []string{"1", "2", "3", "5", "8", "11", "17", "26", "32"},
		},
		"numbers have five digits, and the last load is high": {
			func(a *assayv1alpha1.SearchAxis) {
				a.Axis, a.Low, a.High, a.Resolution = "ratio", resource.MustParse("100"), resource.MustParse("150"), "7%"
			},
			[]string{"100", "107", "114.49", "122.5", "131.08", "140.26", "150"},
		},
		"a suffix is a number": {
			func(a *assayv1alpha1.SearchAxis) {
				a.Axis, a.Low, a.High, a.Resolution = "ratio", resource.MustParse("1k"), resource.MustParse("4k"), "100%"
			},
			[]string{"1000", "2000", "4000"},
		},
		"a step beyond high leaves the two ends": {
			func(a *assayv1alpha1.SearchAxis) { a.High, a.Resolution = resource.MustParse("2"), "500%" }, []string{"1", "2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := testSearch()
			tc.edit(&spec.Search.Over)
			frozen, err := freezeAndCheck(t, spec, testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, frozen.Search().Loads); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if axis := spec.Search.Over.Axis; frozen.Points[1].Key != axis+"="+tc.want[1] || frozen.Cells[2].Parameters[axis] != tc.want[1] {
				t.Errorf("point %q, parameters %v", frozen.Points[1].Key, frozen.Cells[2].Parameters)
			}
		})
	}
}
