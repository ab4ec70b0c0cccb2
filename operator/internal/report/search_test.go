package report

import (
	"bytes"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/search"
	"assay.dev/assay/operator/test/golden"
)

func TestGoldenSearch(t *testing.T) {
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		template.Parameters = append(template.Parameters, assayv1alpha1.Parameter{Name: "rate", Type: assayv1alpha1.IntegerParameter})
		spec.Parameters = assayv1alpha1.ParameterValues{"batchSize": "1"}
		spec.Sweep, spec.Gates, spec.Predictions = nil, nil, nil
		spec.Search = &assayv1alpha1.Search{
			Maximize:  "throughput",
			Over:      assayv1alpha1.SearchAxis{Axis: "rate", Low: resource.MustParse("100"), High: resource.MustParse("400"), Resolution: "100%"},
			SubjectTo: []assayv1alpha1.Constraint{{Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "4ms"}},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	const constraint = "latency median at most 4.000 ms"
	level := func(index int, load string, probe, fresh search.Outcome) search.Level {
		out := search.Level{Index: index, Load: load, Probe: search.Finding{Outcome: probe, Planned: 10, Blocks: 10}}
		if probe != search.Feasible {
			out.Probe.Constraint = constraint
		}
		if fresh != "" {
			out.Fresh = &search.Finding{Outcome: fresh, Planned: 10, Blocks: 9}
		}
		return out
	}
	throughput := &analysis.Estimate{Value: 199, Unit: "queries/s", Low: ptr.To(198.0), High: ptr.To(200.0), Blocks: 19}
	result := &analysis.Analysis{
		Wave: 3, Confidence: 0.95, GateConfidence: 0.995,
		Arms: []analysis.ArmResult{{Point: "rate=200", Arm: "loop", Metric: "throughput", Statistic: experiment.StatisticValue, Estimate: *throughput}},
		Search: []analysis.SearchResult{
			{
				Arm: "loop", Axis: "rate", Metric: "throughput", FeasibleMax: "200", InfeasibleMin: "400", FirstBreach: "400", BindingConstraint: constraint,
				Interval: &analysis.LoadInterval{Low: "200", High: "400"}, Value: throughput, Confirmed: true, Complete: true,
				Reason: "200 meets every constraint and 400 breaks " + constraint + "; confirmed on fresh blocks",
				Levels: []search.Level{level(0, "100", search.Feasible, ""), level(1, "200", search.Feasible, search.Feasible), level(2, "400", search.Failed, search.Failed)},
			},
			{
				Arm: "fused-naive", Axis: "rate", Metric: "throughput", FeasibleMax: "400", Value: throughput, Confirmed: true, Complete: true,
				Reason: "the highest load tried, 400, still meets every constraint; confirmed on fresh blocks",
				Levels: []search.Level{level(2, "400", search.Feasible, search.Feasible)},
			},
			{
				Arm: "fused-m4r", Axis: "rate", Metric: "throughput", InfeasibleMin: "100", FirstBreach: "100", BindingConstraint: constraint, Complete: true,
				Reason: "the lowest load tried, 100, already breaks " + constraint, Levels: []search.Level{level(0, "100", search.Infeasible, "")},
			},
		},
	}
	var terminal bytes.Buffer
	if err := Terminal(&terminal, exp, result); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"search.md": Markdown(exp, result), "search.csv": CSV(exp, result),
		"search.txt": terminal.Bytes()} {
		golden.Check(t, filepath.Join("testdata", name), string(got))
	}
}
