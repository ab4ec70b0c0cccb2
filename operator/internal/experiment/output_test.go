package experiment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// hyperfine sets the template's output format to Hyperfine.
func hyperfine(t *templateSpec) {
	t.Output.Format, t.Parity = assayv1alpha1.HyperfineOutput, assayv1alpha1.ParityNone
}

func TestFreeze_UnreadableOutputsAreRejected(t *testing.T) {
	from := func(t *templateSpec, metric int, from assayv1alpha1.MetricSource) { t.Metrics[metric].From = &from }
	k6 := func(t *templateSpec) {
		hyperfine(t)
		t.Output.Format = assayv1alpha1.K6Output
		for i := range t.Metrics {
			from(t, i, assayv1alpha1.MetricSource{Benchmark: "http_reqs", Field: "rate"})
		}
	}
	// selects gives every metric a figure of a format without units.
	selects := func(t *templateSpec, output assayv1alpha1.Output, source assayv1alpha1.MetricSource) {
		hyperfine(t)
		t.Output = output
		for i := range t.Metrics {
			of := source
			if !convertible(of.Unit, t.Metrics[i].Unit) {
				of.Unit = t.Metrics[i].Unit
			}
			from(t, i, of)
		}
	}
	column := assayv1alpha1.MetricSource{Field: "ms", Unit: "ms"}
	figure := assayv1alpha1.MetricSource{Path: "$.runs[*].ms", Unit: "ms"}
	json, csv := assayv1alpha1.JSONOutput, assayv1alpha1.CSVOutput
	checkRefusals(t, testSpec, map[string]refusal{
		"a column of times without a unit": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: csv}, column)
				from(t, 0, assayv1alpha1.MetricSource{Field: "ms"})
			},
			"template.metrics[0].from.unit", "CSV does not state units",
		},
		"a column of an unknown unit": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: csv}, column)
				from(t, 0, assayv1alpha1.MetricSource{Field: "ms", Unit: "mss"})
			},
			"template.metrics[0].from.unit", `invalid unit "mss": figures in it cannot be converted to "s"`,
		},
		"a document without a path": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: json}, figure)
				from(t, 0, assayv1alpha1.MetricSource{Unit: "ms"})
			},
			"template.metrics[0].from.path", "such as $.summary.p99",
		},
		"a path that is no JSONPath": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: json}, figure)
				from(t, 0, assayv1alpha1.MetricSource{Path: "runs.ms", Unit: "ms"})
			},
			"template.metrics[0].from.path", `invalid JSONPath "runs.ms"`,
		},
		"a field of a document": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: json}, figure)
				from(t, 0, assayv1alpha1.MetricSource{Field: "p99", Path: "$.p99", Unit: "ms"})
			},
			"template.metrics[0].from", "remove benchmark and field",
		},
		"a path in another format": {
			func(_ *runSpec, t *templateSpec) {
				hyperfine(t)
				from(t, 0, assayv1alpha1.MetricSource{Path: "$.p99"})
			},
			"template.metrics[0].from.path", "set output.format to JSON",
		},
		"a percentile of one value": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: json}, figure)
				from(t, 0, assayv1alpha1.MetricSource{Path: "$.summary['p50']", Unit: "ms"})
				t.Metrics[0].Statistic = assayv1alpha1.StatisticP95
			},
			"template.metrics[0].statistic", "JSON gives one figure per trial and no samples",
		},
		"an error path that is no JSONPath": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: json, JSON: &assayv1alpha1.JSONOutputSettings{ErrorPath: "$["}}, figure)
			},
			"template.output.json.errorPath", `invalid JSONPath "$["`,
		},
		"settings of a table in another format": {
			func(_ *runSpec, t *templateSpec) {
				hyperfine(t)
				t.Output.CSV = &assayv1alpha1.CSVOutputSettings{Separator: ";"}
			},
			"template.output.csv", "set output.format to CSV",
		},
		"settings of a document in another format": {
			func(_ *runSpec, t *templateSpec) {
				hyperfine(t)
				t.Output.JSON = &assayv1alpha1.JSONOutputSettings{ErrorPath: "$.error"}
			},
			"template.output.json", "set output.format to JSON",
		},
		"one mark for decimals and thousands": {
			func(_ *runSpec, t *templateSpec) {
				settings := &assayv1alpha1.CSVOutputSettings{DecimalMark: ",", ThousandsMark: ","}
				selects(t, assayv1alpha1.Output{Format: csv, CSV: settings}, column)
			},
			"template.output.csv.thousandsMark", "the decimal mark too",
		},
		"comments that begin like fields": {
			func(_ *runSpec, t *templateSpec) {
				settings := &assayv1alpha1.CSVOutputSettings{Separator: ";", Comment: ";"}
				selects(t, assayv1alpha1.Output{Format: csv, CSV: settings}, column)
			},
			"template.output.csv.comment", "the separator too",
		},
		"a digit that separates fields": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: csv, CSV: &assayv1alpha1.CSVOutputSettings{Separator: "0"}}, column)
			},
			"template.output.csv.separator", "no quote, digit or line break",
		},
		"a metric of k6 without its name": {
			func(_ *runSpec, t *templateSpec) { k6(t); from(t, 0, assayv1alpha1.MetricSource{Field: "p(95)"}) },
			"template.metrics[0].from.benchmark", "such as http_req_duration",
		},
		"a benchmark of a parameter that the template lacks": {
			func(_ *runSpec, t *templateSpec) {
				hyperfine(t)
				from(t, 0, assayv1alpha1.MetricSource{Benchmark: "sort/$(batchsize)"})
			},
			"template.metrics[0].from.benchmark", "the template has no parameter \"batchsize\"",
		},
		"rows that nothing chooses": {
			func(_ *runSpec, t *templateSpec) {
				selects(t, assayv1alpha1.Output{Format: csv}, column)
				from(t, 0, assayv1alpha1.MetricSource{Field: "ms", Benchmark: "encode", Unit: "ms"})
			},
			"template.metrics[0].from.benchmark", "write column=value",
		},
		"a path that leads out of the trial's folder": {
			func(_ *runSpec, t *templateSpec) { t.Output.Path = "a/../../b" },
			"template.output.path", "it contains ..",
		},
		"a folder of Criterion that other trials write too": {
			func(_ *runSpec, t *templateSpec) {
				hyperfine(t)
				t.Output = assayv1alpha1.Output{Format: assayv1alpha1.CriterionOutput, Path: "/tmp/criterion"}
			},
			"template.output.path", "relative to the trial's own folder",
		},
		"a percentile of summaries": {
			func(_ *runSpec, t *templateSpec) { k6(t); t.Metrics[0].Statistic = assayv1alpha1.StatisticP95 },
			"template.metrics[0].statistic", "K6 gives one figure per trial and no samples",
		},
		"a gate on a percentile of summaries": {
			func(s *runSpec, t *templateSpec) {
				hyperfine(t)
				from(t, 0, assayv1alpha1.MetricSource{Field: "mean"})
				s.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: "latency", Statistic: assayv1alpha1.StatisticP90, Op: assayv1alpha1.RatioAtMost,
					Bound: "1"}}
			},
			"spec.gates[0].statistic", "p90 of metric \"latency\" cannot be computed",
		},
		"an argument of a parameter that the command names": {
			func(_ *runSpec, t *templateSpec) {
				t.Command, t.Parameters[0].Argument = append(t.Command, "$(batchSize)"), "-n"
			},
			"template.parameters[0].argument", "would never be used",
		},
		"a variable of two parameters": {
			func(_ *runSpec, t *templateSpec) { t.Parameters[0].Env, t.Parameters[2].Env = "THREADS", "THREADS" },
			"template.parameters[2].env", "variable THREADS is already set by another parameter: use another name",
		},
		"a variable of Assay's": {
			func(_ *runSpec, t *templateSpec) { t.Parameters[0].Env = "ASSAY_TRIAL" },
			"template.parameters[0].env", "reserved for Assay",
		},
	})
}

func TestHasSamples_FormatsAndFields(t *testing.T) {
	cases := map[string]struct {
		output assayv1alpha1.Output
		from   assayv1alpha1.MetricSource
		want   bool
	}{
		"metrics reported by the program":            {assayv1alpha1.Output{Format: assayv1alpha1.AssayResult}, assayv1alpha1.MetricSource{}, true},
		"repeated lines of go test":                  {assayv1alpha1.Output{Format: assayv1alpha1.GoBenchOutput}, assayv1alpha1.MetricSource{Field: "B/op"}, true},
		"runs of hyperfine":                          {assayv1alpha1.Output{Format: assayv1alpha1.HyperfineOutput}, assayv1alpha1.MetricSource{}, true},
		"hyperfine's own mean":                       {assayv1alpha1.Output{Format: assayv1alpha1.HyperfineOutput}, assayv1alpha1.MetricSource{Field: "mean"}, false},
		"Criterion's folder":                         {assayv1alpha1.Output{Format: assayv1alpha1.CriterionOutput, Path: "criterion"}, assayv1alpha1.MetricSource{}, true},
		"Criterion's slope":                          {assayv1alpha1.Output{Format: assayv1alpha1.CriterionOutput, Path: "criterion"}, assayv1alpha1.MetricSource{Field: "slope"}, false},
		"Criterion's printed output":                 {assayv1alpha1.Output{Format: assayv1alpha1.CriterionOutput}, assayv1alpha1.MetricSource{}, false},
		"repetitions of Google Benchmark":            {assayv1alpha1.Output{Format: assayv1alpha1.GoogleBenchmarkOutput}, assayv1alpha1.MetricSource{Benchmark: "BM_Sum/8"}, true},
		"an aggregate of Google Benchmark":           {assayv1alpha1.Output{Format: assayv1alpha1.GoogleBenchmarkOutput}, assayv1alpha1.MetricSource{Benchmark: "BM_Sum/8_median"}, false},
		"rounds of pytest-benchmark":                 {assayv1alpha1.Output{Format: assayv1alpha1.PytestBenchmarkOutput}, assayv1alpha1.MetricSource{Field: "data"}, true},
		"operations per second of pytest-benchmark":  {assayv1alpha1.Output{Format: assayv1alpha1.PytestBenchmarkOutput}, assayv1alpha1.MetricSource{Field: "ops"}, false},
		"k6's percentile, which is a figure as such": {assayv1alpha1.Output{Format: assayv1alpha1.K6Output}, assayv1alpha1.MetricSource{Field: "p(95)"}, false},
		"iterations of JMH":                          {assayv1alpha1.Output{Format: assayv1alpha1.JMHOutput}, assayv1alpha1.MetricSource{}, true},
		"a profiler's iterations":                    {assayv1alpha1.Output{Format: assayv1alpha1.JMHOutput}, assayv1alpha1.MetricSource{Field: "gc.alloc.rate.norm"}, true},
		"JMH's own mean":                             {assayv1alpha1.Output{Format: assayv1alpha1.JMHOutput}, assayv1alpha1.MetricSource{Field: "score.mean"}, false},
		"JMH's own percentile":                       {assayv1alpha1.Output{Format: assayv1alpha1.JMHOutput}, assayv1alpha1.MetricSource{Field: "score.p(99.0)"}, false},
		"iterations of BenchmarkDotNet":              {assayv1alpha1.Output{Format: assayv1alpha1.BenchmarkDotNetOutput}, assayv1alpha1.MetricSource{}, true},
		"BenchmarkDotNet's own mean":                 {assayv1alpha1.Output{Format: assayv1alpha1.BenchmarkDotNetOutput}, assayv1alpha1.MetricSource{Field: "Mean"}, false},
		"a figure of fio":                            {assayv1alpha1.Output{Format: assayv1alpha1.FioOutput}, assayv1alpha1.MetricSource{}, false},
		"a figure of wrk":                            {assayv1alpha1.Output{Format: assayv1alpha1.WrkOutput}, assayv1alpha1.MetricSource{Field: "Latency 99%"}, false},
		"a figure of sysbench":                       {assayv1alpha1.Output{Format: assayv1alpha1.SysbenchOutput}, assayv1alpha1.MetricSource{Field: "avg"}, false},
		"divan's median":                             {assayv1alpha1.Output{Format: assayv1alpha1.DivanOutput}, assayv1alpha1.MetricSource{}, false},
		"Catch2's mean":                              {assayv1alpha1.Output{Format: assayv1alpha1.Catch2Output}, assayv1alpha1.MetricSource{}, false},
		"one value of a document":                    {assayv1alpha1.Output{Format: assayv1alpha1.JSONOutput}, assayv1alpha1.MetricSource{Path: "$.a['b:*'][0]"}, false},
		"values of a document":                       {assayv1alpha1.Output{Format: assayv1alpha1.JSONOutput}, assayv1alpha1.MetricSource{Path: "$.a[*]"}, true},
		"a figure of pgbench":                        {assayv1alpha1.Output{Format: assayv1alpha1.PgbenchOutput}, assayv1alpha1.MetricSource{}, false},
		"a percentile of oha":                        {assayv1alpha1.Output{Format: assayv1alpha1.OhaOutput}, assayv1alpha1.MetricSource{Field: "latencyPercentiles.p99"}, false},
		"rows of a table":                            {assayv1alpha1.Output{Format: assayv1alpha1.CSVOutput}, assayv1alpha1.MetricSource{Field: "ms"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hasSamples(readOutput(&assayv1alpha1.BenchmarkTemplateSpec{Output: tc.output,
				Metrics: []assayv1alpha1.Metric{{Name: "time", From: &tc.from}}}), "time"); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestArguments_FormsOfParameters(t *testing.T) {
	template := testTemplate()
	template.Command = []string{"/tool", "--level", "$(strategy)"}
	template.Parameters = []assayv1alpha1.Parameter{
		{Name: "strategy", Default: ptr.To("fast")},
		{Name: "usual", Default: ptr.To("1")},
		{Name: "rounds", Default: ptr.To("-5"), Argument: "-n"},
		{Name: "size", Default: ptr.To("a b=c"), Argument: "--input-size="},
		{Name: "threads", Default: ptr.To("2"), Argument: "None", Env: "GOMAXPROCS"},
	}
	template.Metrics[0].SamplesFrom = ""
	frozen, err := freezeAndCheck(t, assayv1alpha1.BenchmarkRunSpec{Arms: []assayv1alpha1.Arm{{Name: "only"}}}, template)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/tool", "--level", "fast", "--usual=1", "-n", "-5", "--input-size=a b=c"}
	if diff := cmp.Diff(want, frozen.Cells[0].Argv); diff != "" {
		t.Error(diff)
	}
	if got := frozen.Cells[0].Env; got["GOMAXPROCS"] != "2" || got["ASSAY_PARAM_THREADS"] != "2" {
		t.Errorf("the variables are %v", got)
	}
}
