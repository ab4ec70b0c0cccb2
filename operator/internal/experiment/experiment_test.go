package experiment

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

type values = assayv1alpha1.ParameterValues

var testRun = record.Run{Namespace: "default", Name: "scan", UID: "0000-1"}

func testTemplate() assayv1alpha1.BenchmarkTemplateSpec {
	return assayv1alpha1.BenchmarkTemplateSpec{
		Image: "example/scan:1", Command: []string{"/scan", "run"},
		Parameters: []assayv1alpha1.Parameter{
			{Name: "batchSize", Type: assayv1alpha1.IntegerParameter, Default: ptr.To("1"), Minimum: ptr.To(resource.MustParse("1")), Maximum: ptr.To(resource.MustParse("32"))},
			{Name: "strategy", Default: ptr.To("loop"), Enum: []string{"loop", "fused"}},
			{Name: "ratio", Type: assayv1alpha1.NumberParameter, Default: ptr.To("0.5")},
			{Name: "ceilings", Type: assayv1alpha1.BooleanParameter, Default: ptr.To("true")},
			{Name: "note", Default: ptr.To("")},
			{Name: "iterations", Type: assayv1alpha1.IntegerParameter, Default: ptr.To("30")},
		},
		Metrics: []assayv1alpha1.Metric{
			{Name: "latency", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, SamplesFrom: "iterations"},
			{Name: "throughput", Unit: "queries/s", Direction: assayv1alpha1.HigherIsBetter, Statistic: assayv1alpha1.StatisticValue},
		},
	}
}

func testSpec() assayv1alpha1.BenchmarkRunSpec {
	return assayv1alpha1.BenchmarkRunSpec{
		TemplateRef: &assayv1alpha1.TemplateReference{Name: "scan"},
		Sweep:       &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1", "8"}}}},
		Arms: []assayv1alpha1.Arm{
			{Name: "loop", Baseline: true, Parameters: values{"strategy": "loop"}},
			{Name: "fused", Parameters: values{"strategy": "fused"}},
		},
	}
}

func TestFreeze_InvalidRunsAreRejected(t *testing.T) {
	type edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)
	gate := func(g assayv1alpha1.Gate) edit {
		return func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			s.Gates = []assayv1alpha1.Gate{g}
		}
	}
	cases := map[string]refusal{
		"a parameter that the template does not have": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Parameters = values{"rowz": "1"}
			},
			"spec.parameters.rowz", `no parameter "rowz": allowed are batchSize, strategy`,
		},
		"a parameter without default and without value": {
			func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Parameters[4].Default = nil
			},
			"spec.parameters", `parameter "note" has no default and no value`,
		},
		"a value above the maximum, once although it is in two cells": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Sweep.Axes[0].Values = []string{"8", "64"}
			},
			"spec.sweep.axes[0].values[1]", "value 64, above its maximum 32",
		},
		"a value below the minimum": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Sweep.Axes[0].Values = []string{"0"}
			},
			"spec.sweep.axes[0].values[0]", "value 0, below its minimum 1",
		},
		"an invalid integer": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Parameters = values{"iterations": "many"}
			},
			"spec.parameters.iterations", `invalid value "many": allowed are integers`,
		},
		"an invalid number": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Parameters = values{"ratio": "half"}
			},
			"spec.parameters.ratio", `invalid value "half": allowed are numbers`,
		},
		"an invalid boolean": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Parameters = values{"ceilings": "yes"}
			},
			"spec.parameters.ceilings", "allowed are true and false",
		},
		"a value outside the enumeration": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Arms[1].Parameters = values{"strategy": "magic"}
			},
			"spec.arms[1].parameters.strategy", "allowed are loop, fused",
		},
		"a NUL character": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Parameters = values{"note": "a\x00b"}
			},
			"spec.parameters.note", "NUL character",
		},
		"an axis that the template does not have": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Sweep.Axes[0].Name = "batch"
			},
			"spec.sweep.axes[0].name", `no parameter "batch"`,
		},
		"an axis that an arm overrules": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Arms[1].Parameters["batchSize"] = "4"
			},
			"spec.arms[1].parameters.batchSize", "is a sweep axis",
		},
		"an included point that is there already": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Sweep.Include = []values{{"batchSize": "8"}}
			},
			"spec.sweep", `point "batchSize=8" appears twice`,
		},
		"a sweep whose exclusions leave no point": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Sweep.Exclude = []values{{"batchSize": "1"}, {"batchSize": "8"}}
			},
			"spec.sweep", "no point is left",
		},
		"more trials than the budget": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) { s.Budget.Trials = 119 },
			"spec.budget.trials", "10 blocks of 12 trials are 120 trials and the budget is 119",
		},
		"a gate on a metric that does not exist": {
			gate(assayv1alpha1.Gate{Name: "g", Metric: "speed", Op: assayv1alpha1.RatioAtLeast, Bound: "1"}),
			"spec.gates[0].metric", `no metric "speed": allowed are latency, throughput`,
		},
		"a gate at a point that does not exist": {
			gate(assayv1alpha1.Gate{Name: "g", Metric: "throughput", At: values{"batchSize": "3"}, Op: assayv1alpha1.RatioAtLeast, Bound: "1"}),
			"spec.gates[0].at", "no point matches batchSize=3",
		},
		"a gate at an axis that does not exist": {
			gate(assayv1alpha1.Gate{Name: "g", Metric: "throughput", At: values{"rows": "3"}, Op: assayv1alpha1.RatioAtLeast, Bound: "1"}),
			"spec.gates[0].at.rows", `invalid axis "rows"`,
		},
		"a gate on an arm that does not exist": {
			gate(assayv1alpha1.Gate{Name: "g", Metric: "throughput", Candidate: "fast", Op: assayv1alpha1.RatioAtLeast, Bound: "1"}),
			"spec.gates[0].candidate", `invalid candidate "fast": allowed is fused`,
		},
		"a gate on the baseline itself": {
			gate(assayv1alpha1.Gate{Name: "g", Metric: "throughput", Candidate: "loop", Op: assayv1alpha1.RatioAtLeast, Bound: "1"}),
			"spec.gates[0].candidate", `invalid candidate "loop"`,
		},
		"a percentile that never has enough samples": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Parameters = values{"iterations": "5"}
				s.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: "latency", Statistic: assayv1alpha1.StatisticP95, Op: assayv1alpha1.RatioAtMost,
					Bound: "1.05"}}
			},
			"spec.gates[0].statistic", "p95 of latency needs at least 200 samples",
		},
		"a duration as the bound of a rate": {
			gate(assayv1alpha1.Gate{Name: "g", Metric: "throughput", Op: assayv1alpha1.AtLeast, Bound: "2ms"}),
			"spec.gates[0].bound", "is a duration and the metric's unit is",
		},
		"a ratio with a suffix": {
			gate(assayv1alpha1.Gate{Name: "g", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "2k"}),
			"spec.gates[0].bound", "write a plain number",
		},
		"a gate that compares, in a run with one arm": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Arms = s.Arms[:1]
				s.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "1"}}
			},
			"spec.gates[0].op", "the run has one arm",
		},
		"a parity gate on outputs that cannot be compared": {
			func(s *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Parity = assayv1alpha1.ParityNone
				s.Gates = []assayv1alpha1.Gate{{Name: "g", Op: assayv1alpha1.ParityEqual}}
			},
			"spec.gates[0].op", "parity: None",
		},
		"a parity gate between arms with different inputs": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Parity = assayv1alpha1.ParityPerArm
				s.Gates = []assayv1alpha1.Gate{{Name: "g", Op: assayv1alpha1.ParityEqual}}
			},
			"spec.gates[0].op", "spec.parity is PerArm",
		},
		"outputs compared per arm where they cannot be compared": {
			func(s *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Parity, tpl.Parity = assayv1alpha1.ParityPerArm, assayv1alpha1.ParityNone
			},
			"spec.parity", "remove spec.parity",
		},
		"a prediction on a metric that does not exist": {
			func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				s.Predictions = []assayv1alpha1.Prediction{{Metric: "speed", Ratio: "2"}}
			},
			"spec.predictions[0].metric", `no metric "speed"`,
		},
		"a minimum above the maximum": {
			func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Parameters[0].Minimum = ptr.To(resource.MustParse("64"))
			},
			"template.parameters[0]", "minimum 64 of parameter \"batchSize\" exceeds its maximum 32",
		},
		"a number with more zeros than there is memory": {
			func(s *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Parameters[2].Minimum = ptr.To(resource.MustParse("1"))
				s.Parameters = values{"ratio": "0e99999999"}
			},
			"spec.parameters.ratio", `parameter "ratio" has invalid value "0e99999999": it cannot be compared with its bounds`,
		},
		"a command that names an unknown parameter": {
			func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Command = append(tpl.Command, "$(rows)")
			},
			"template.command[2]", `$(rows): the template has no parameter "rows"`,
		},
	}
	checkRefusals(t, testSpec, cases)
}

// checkRefusals applies each invalid edit to a valid experiment and expects exactly one problem.
func checkRefusals(t *testing.T, sound func() assayv1alpha1.BenchmarkRunSpec, cases map[string]refusal) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, template := sound(), testTemplate()
			tc.edit(&spec, &template)
			_, err := freezeAndCheck(t, spec, template)
			var invalid *Invalid
			if !errors.As(err, &invalid) {
				t.Fatalf("Freeze: got %v, want *Invalid", err)
			}
			got := 0
			for _, p := range invalid.Problems {
				if p.Field == tc.field && strings.Contains(p.Message, tc.says) {
					got++
				}
			}
			if got != 1 {
				t.Errorf("want exactly one problem at %s that says %q, got:\n%s", tc.field, tc.says, strings.ReplaceAll(err.Error(), "; ", "\n"))
			}
		})
	}
}

func TestFreeze_AllProblemsAreReported(t *testing.T) {
	spec := testSpec()
	spec.Parameters = values{"rowz": "1", "ratio": "half"}
	spec.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: "speed", Op: assayv1alpha1.AtLeast, Bound: "1"}}
	_, err := freezeAndCheck(t, spec, testTemplate())
	var invalid *Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) != 3 {
		t.Fatalf("want three problems, got: %v", err)
	}
}

func TestFreeze_ValuesArePassedVerbatim(t *testing.T) {
	hostile := "{{workflow.name}} \"quoted\" 'single'\nnew line; $(touch x) `id` $(strategy) \\ %s &|<>"
	spec, template := testSpec(), testTemplate()
	spec.Parameters = values{"note": hostile}
	template.Command = []string{"/scan", "--batch=$(batchSize)", "$(unknownIsRefusedElsewhere"}
	frozen, err := freezeAndCheck(t, spec, template)
	if err != nil {
		t.Fatal(err)
	}
	got := frozen.Cells[0]
	want := []string{"/scan", "--batch=1", "$(unknownIsRefusedElsewhere", "--strategy=loop", "--ratio=0.5", "--ceilings=true",
		"--note=" + hostile, "--iterations=30"}
	if diff := cmp.Diff(want, got.Argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
	if got.Env["ASSAY_PARAM_NOTE"] != hostile || got.Env["ASSAY_PARAM_BATCH_SIZE"] != "1" {
		t.Errorf("environment: %q", got.Env)
	}
}

func TestFreeze_PointsOfSweep(t *testing.T) {
	cases := map[string]struct {
		sweep *assayv1alpha1.Sweep
		want  []string
	}{
		"no sweep is one point with an empty key": {nil, []string{""}},
		"a grid varies the last axis fastest": {
			&assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1", "2"}},
				{Name: "ratio", Values: []string{"0", "1"}}}},
			[]string{"batchSize=1,ratio=0", "batchSize=1,ratio=1", "batchSize=2,ratio=0", "batchSize=2,ratio=1"},
		},
		"zip takes the axes side by side": {
			&assayv1alpha1.Sweep{Mode: assayv1alpha1.ZipSweep,
				Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1", "2"}}, {Name: "ratio", Values: []string{"0", "1"}}}},
			[]string{"batchSize=1,ratio=0", "batchSize=2,ratio=1"},
		},
		"include adds after the axes and exclude removes last": {
			&assayv1alpha1.Sweep{
				Axes:    []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1", "2", "4"}}},
				Include: []assayv1alpha1.ParameterValues{{"batchSize": "32"}},
				Exclude: []assayv1alpha1.ParameterValues{{"batchSize": "2"}},
			},
			[]string{"batchSize=1", "batchSize=4", "batchSize=32"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			spec.Sweep = tc.sweep
			frozen, err := freezeAndCheck(t, spec, testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, point := range frozen.Points {
				got = append(got, point.Key)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolve_PrecedenceOfOverrides(t *testing.T) {
	spec := testSpec()
	spec.Parameters = values{"iterations": "40", "ratio": "1"}
	spec.Sweep.Overrides = []assayv1alpha1.Override{{At: values{"batchSize": "8"}, Parameters: values{"iterations": "50", "ratio": "2"}}}
	spec.Arms[1].Parameters["ratio"] = "3"
	frozen, err := freezeAndCheck(t, spec, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, cell := range frozen.Cells {
		got = append(got, strings.Join([]string{
			frozen.Points[cell.Point].Key, frozen.Arms[cell.Arm].Name, cell.Parameters["iterations"], cell.Parameters["ratio"],
		}, " "))
	}
	want := []string{"batchSize=1 loop 40 1", "batchSize=1 fused 40 3", "batchSize=8 loop 50 2", "batchSize=8 fused 50 3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDigest(t *testing.T) {
	freeze := func(edit func(*assayv1alpha1.BenchmarkRunSpec)) string {
		spec := testSpec()
		edit(&spec)
		frozen, err := freezeAndCheck(t, spec, testTemplate())
		if err != nil {
			t.Fatal(err)
		}
		return frozen.Digest
	}
	plain := freeze(func(*assayv1alpha1.BenchmarkRunSpec) {})
	if got := freeze(func(s *assayv1alpha1.BenchmarkRunSpec) {
		s.Suspend, s.Cancel, s.TTLSecondsAfterFinished = ptr.To(true), ptr.To(true), ptr.To[int32](5)
	}); got != plain {
		t.Error("suspend, cancel and ttl must not change the digest")
	}
	if got := freeze(func(s *assayv1alpha1.BenchmarkRunSpec) { s.Design.Seed = 2 }); got == plain {
		t.Error("another seed has the same digest")
	}
}

func TestParseBound(t *testing.T) {
	for bound, want := range map[string]float64{"1.5": 1.5, "2ms": 0.002, "40us": 40e-6, "3s": 3, "7ns": 7e-9, "5m": 0.005} {
		if got, err := parseBound(bound, "s"); err != nil || got < want*(1-1e-12) || got > want*(1+1e-12) {
			t.Errorf("parseBound(%q, s) = %v, %v; want %v", bound, got, err, want)
		}
	}
	for bound, want := range map[string]float64{"23k": 23000, "1Gi": 1 << 30, "2M": 2e6} {
		if got, err := parseBound(bound, "By/s"); err != nil || got != want {
			t.Errorf("parseBound(%q, By/s) = %v, %v; want %v", bound, got, err, want)
		}
	}
}
