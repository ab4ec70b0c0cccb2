// Package specimen makes experiments as people write them, for what is simulated and tested.
package specimen

import (
	"encoding/json"
	"errors"
	"strconv"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/simulate"
)

// Scan is an experiment in the form of the batch scan study: the axes batchSize and pendingDelta, the arms loop (the
// baseline), fused-naive and fused-m4r. Edit may change it before it is frozen.
func Scan(edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)) (*experiment.Experiment, error) {
	strategy := func(name string) assayv1alpha1.ParameterValues {
		return assayv1alpha1.ParameterValues{"strategy": name}
	}
	template := assayv1alpha1.BenchmarkTemplateSpec{
		Image: "assay.dev/pir-scan:0.1.0", Command: []string{"/usr/local/bin/pir-scan"},
		Parameters: []assayv1alpha1.Parameter{
			{Name: "batchSize", Type: assayv1alpha1.IntegerParameter},
			{Name: "pendingDelta", Type: assayv1alpha1.IntegerParameter, Default: ptr.To("0")},
			{Name: "strategy"},
			{Name: "iterations", Type: assayv1alpha1.IntegerParameter, Default: ptr.To("30")},
		},
		Metrics: []assayv1alpha1.Metric{
			{Name: "latency", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, SamplesFrom: "iterations"},
			{Name: "throughput", Unit: "queries/s", Direction: assayv1alpha1.HigherIsBetter, Statistic: assayv1alpha1.StatisticValue},
		},
	}
	spec := assayv1alpha1.BenchmarkRunSpec{
		TemplateRef: &assayv1alpha1.TemplateReference{Name: "pir-scan"},
		Sweep: &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{
			{Name: "batchSize", Values: []string{"1", "8"}}, {Name: "pendingDelta", Values: []string{"0", "1"}},
		}},
		Arms: []assayv1alpha1.Arm{
			{Name: "loop", Baseline: true, Parameters: strategy("loop")},
			{Name: "fused-naive", Parameters: strategy("fused-naive")},
			{Name: "fused-m4r", Parameters: strategy("fused-m4r")},
		},
		Design: assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 8}, WarmupTrials: 1},
		Gates: []assayv1alpha1.Gate{
			{Name: "parity", Op: assayv1alpha1.ParityEqual},
			{Name: "gain-at-8", Metric: "throughput", At: assayv1alpha1.ParameterValues{"batchSize": "8"}, Op: assayv1alpha1.RatioAtLeast,
				Bound: "1.5"},
			{Name: "no-q1-regression", Metric: "latency", Statistic: assayv1alpha1.StatisticP95, At: assayv1alpha1.ParameterValues{"batchSize": "1"},
				Op: assayv1alpha1.RatioAtMost, Bound: "1.05"},
			{Name: "slo", Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "20ms", Severity: assayv1alpha1.Advisory},
		},
		Predictions: []assayv1alpha1.Prediction{{Metric: "throughput", At: assayv1alpha1.ParameterValues{"batchSize": "8"}, Ratio: "1.5"}},
	}
	if edit != nil {
		edit(&spec, &template)
	}
	return experiment.Freeze(record.Run{Namespace: "benchmarks", Name: "pir-batch-scan", UID: "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11"}, spec,
		template)
}

// Pair is the smallest experiment with a verdict: one metric, two arms called old and new, and one gate that asks for any
// gain at all. With no true difference every Go and every NoGo of it is false. Edit may change it before it is frozen.
func Pair(edit func(*assayv1alpha1.BenchmarkRunSpec)) (*experiment.Experiment, error) {
	template := assayv1alpha1.BenchmarkTemplateSpec{
		Image: "assay.dev/simulated:0.1.0", Command: []string{"/simulated"}, Parity: assayv1alpha1.ParityNone,
		Parameters: []assayv1alpha1.Parameter{{Name: "version"}, {Name: "size", Default: ptr.To("1")}},
		Metrics: []assayv1alpha1.Metric{
			{Name: "time", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, Statistic: assayv1alpha1.StatisticValue},
		},
	}
	spec := assayv1alpha1.BenchmarkRunSpec{
		TemplateRef: &assayv1alpha1.TemplateReference{Name: "simulated"},
		Arms: []assayv1alpha1.Arm{
			{Name: "old", Baseline: true, Parameters: assayv1alpha1.ParameterValues{"version": "old"}},
			{Name: "new", Parameters: assayv1alpha1.ParameterValues{"version": "new"}},
		},
		Gates: []assayv1alpha1.Gate{{Name: "faster", Metric: "time", Op: assayv1alpha1.RatioAtMost, Bound: "1"}},
	}
	if edit != nil {
		edit(&spec)
	}
	return experiment.Freeze(record.Run{Namespace: "calibration", Name: "simulated", UID: "0d9f5c1e-6a57-4b6e-8d8f-3f6f2a9b7c10"}, spec,
		template)
}

// Of is Pair as a scenario has it designed.
func Of(scenario simulate.Scenario) (*experiment.Experiment, error) {
	return Pair(func(spec *assayv1alpha1.BenchmarkRunSpec) {
		design := scenario.Design
		if design.Blocks > 0 {
			spec.Design.Blocks = assayv1alpha1.Blocks{Min: design.Blocks, Max: design.Blocks}
		}
		spec.Design.NullArm, spec.Design.BlockCorrelation, spec.Design.RareSlowdown = design.NullArm, design.BlockCorrelation, design.RareSlowdown
		if design.Points > 0 {
			axis := assayv1alpha1.SweepAxis{Name: "size"}
			for size := range design.Points {
				axis.Values = append(axis.Values, strconv.Itoa(size+1))
			}
			spec.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{axis}}
		}
		if design.HalfWidth != "" {
			spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: design.HalfWidth}
		}
		if design.Confirm {
			spec.Design.Confirm = &assayv1alpha1.Confirm{}
		}
		if design.AtMost != "" {
			spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: design.AtMost}}
		}
		for i := range spec.Arms {
			for b := range scenario.Builds {
				name := simulate.BuildName(b)
				spec.Arms[i].Builds = append(spec.Arms[i].Builds, assayv1alpha1.Build{Name: name, Program: "/builds/" + name})
			}
		}
	})
}

// Written are the spec and the template that an experiment was frozen from.
func Written(exp *experiment.Experiment) (spec assayv1alpha1.BenchmarkRunSpec, template assayv1alpha1.BenchmarkTemplateSpec, err error) {
	return spec, template, errors.Join(json.Unmarshal(exp.Spec, &spec), json.Unmarshal(exp.Template, &template))
}
