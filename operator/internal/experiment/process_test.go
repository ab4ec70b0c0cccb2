package experiment

import (
	"slices"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func names(metrics []*Metric) []string {
	var out []string
	for _, metric := range metrics {
		out = append(out, metric.Name)
	}
	return out
}

func TestFreeze_ProcessMetricsOfEveryTemplate(t *testing.T) {
	roles := []assayv1alpha1.Role{{Name: "server", Command: []string{"/kv"}}, {Name: "client", Command: []string{"/kv"}, Result: true}}
	cases := map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)
		// shown are the results' metrics beside the template's.
		shown []string
	}{
		"no field names it, so it is not shown": {func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec) {}, nil},
		"a gate, a prediction and a column": {func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			s.Gates = []assayv1alpha1.Gate{{Name: "memory", Metric: "process.peakMemory", Op: assayv1alpha1.AtMost, Bound: "1Gi"}}
			s.Predictions = []assayv1alpha1.Prediction{{Metric: "process.cpuTime", Ratio: "0.5"}}
			s.Report = &assayv1alpha1.Report{Tables: []assayv1alpha1.ReportTable{{Name: "own",
				Columns: []assayv1alpha1.ReportColumn{{Title: "faults", Metric: "process.majorFaults"}}}}}
		}, []string{"process.cpuTime", "process.peakMemory", "process.majorFaults"}},
		"a constraint of a search": {func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			*s = testSearch()
			s.Search.SubjectTo = []assayv1alpha1.Constraint{{Metric: "process.wallTime", Op: assayv1alpha1.AtMost, Bound: "2s"}}
		}, []string{"process.wallTime"}},
		"a role that is not the one with the result": {func(s *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
			tpl.Command, tpl.Roles = nil, roles
			s.Gates = []assayv1alpha1.Gate{{Name: "server", Metric: "process.server.cpuTime", Op: assayv1alpha1.RatioAtMost, Bound: "1.1"}}
		}, []string{"process.server.cpuTime"}},
		"a program that reports nothing": {func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
			tpl.Metrics, tpl.Parity, tpl.Output.Format = nil, assayv1alpha1.ParityNone, assayv1alpha1.NoOutput
		}, []string{"process.wallTime", "process.cpuTime", "process.peakMemory"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, template := testSpec(), testTemplate()
			tc.edit(&spec, &template)
			frozen, err := freezeAndCheck(t, spec, template)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(frozen.Metrics())[len(template.Metrics):]; !slices.Equal(got, tc.shown) {
				t.Errorf("shown are %v, want %v", got, tc.shown)
			}
			for _, metric := range frozen.Metrics() {
				if got := frozen.Metric(metric.Name); got == nil || *got != *metric {
					t.Errorf("Metric(%q) is %+v", metric.Name, got)
				}
			}
		})
	}
}

func TestFreeze_InvalidProcessMetricsAreRejected(t *testing.T) {
	cases := map[string]refusal{
		"a quantity that is not read": {func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			s.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: "process.energy", Op: assayv1alpha1.AtMost, Bound: "1"}}
		}, "spec.gates[0].metric", `no metric "process.energy": allowed are latency, throughput, process.wallTime`},
		"a role that the template does not have": {func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			s.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: "process.server.cpuTime", Op: assayv1alpha1.AtMost, Bound: "1"}}
		}, "spec.gates[0].metric", `no metric "process.server.cpuTime"`},
		"a bound in another unit": {func(s *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			s.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: "process.peakMemory", Op: assayv1alpha1.AtMost, Bound: "2ms"}}
		}, "spec.gates[0].bound", `a duration and the metric's unit is "By"`},
		"another tool's output without a metric": {func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
			tpl.Metrics, tpl.Parity, tpl.Output.Format = nil, assayv1alpha1.ParityNone, assayv1alpha1.GoBenchOutput
		}, "template.metrics", "GoBench is read for metrics and the template has none"},
	}
	checkRefusals(t, testSpec, cases)
}
