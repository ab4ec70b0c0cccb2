// Package format defines the output formats of workloads: which figures a benchmark tool reports, and how. The formats are named and
// described in the schema of a wave, and read by runner/adapters. It is pure.
package format

import (
	"regexp"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
)

// Formats without a tool.
const (
	// AssayResult is the JSON object of result.schema.json.
	AssayResult = "AssayResult"
	// None is the format of programs that report nothing.
	None = "None"
)

// Format is the behaviour of one output format.
type Format struct {
	Name string
	// NoUsualField: metrics must name the field, because no figure of the tool is the usual one.
	NoUsualField bool
	// ByPath: a path selects figures, which have neither names nor a usual one.
	ByPath bool
	// NoUnits: the output does not state units, so that metrics of times and sizes must name them.
	NoUnits bool
	// UsualRate is the unit of the usual figure if it is a rate; empty for a time.
	UsualRate string
	// fields are those of which the tool reports every sample; the empty name is the usual field. Nil means all fields and an empty list
	// none. samples replaces it where this depends on more than the field.
	fields  []string
	samples func(from From) bool
	// isTime reports whether a field is a time in seconds. Nil looks it up in times.
	isTime func(field string) bool
	// arguments make a benchmark program that is started without arguments print its figures; nil adds none.
	arguments func(benchmark string) []string
}

// From selects a figure in the output of a tool. Empty Benchmark and Field are the only benchmark and the usual field. Path is the JSONPath
// of a figure in a document.
type From struct{ Benchmark, Field, Path string }

// formats lists all formats, in the order of the schema.
var formats = []Format{
	{Name: AssayResult},
	{Name: "GoBench", arguments: func(benchmark string) []string {
		which := "."
		if benchmark != "" {
			// Each level of a name is matched by its own expression.
			which = "^" + strings.ReplaceAll(regexp.QuoteMeta(benchmark), "/", "$/^") + "$"
		}
		return []string{"-test.run=^$", "-test.bench=" + which, "-test.benchtime=50ms", "-test.benchmem"}
	}},
	{Name: "Criterion", fields: []string{"", "sample", "throughput"}, arguments: func(benchmark string) []string {
		return append([]string{"--bench", "--noplot", "--warm-up-time=0.1", "--measurement-time=0.5", "--sample-size=20"},
			filter("", benchmark)...)
	}},
	{Name: "GoogleBenchmark", samples: func(from From) bool {
		aggregates := []string{"_mean", "_median", "_stddev", "_cv"}
		return !slices.ContainsFunc(aggregates, func(ending string) bool { return strings.HasSuffix(from.Benchmark, ending) })
	}, arguments: func(benchmark string) []string {
		return append([]string{"--benchmark_format=json"}, filter("--benchmark_filter=", benchmark)...)
	}},
	{Name: "Hyperfine", fields: []string{"", "times", "memory_usage_byte"}},
	{Name: "PytestBenchmark", fields: []string{"", "data"}},
	{Name: "K6", fields: []string{}, NoUsualField: true, isTime: never},
	{Name: "JMH", samples: func(from From) bool {
		// Every metric has its iterations, and statistics of them that JMH computes.
		return !strings.HasSuffix(from.Field, ".mean") && !strings.Contains(from.Field, ".p(")
	}},
	{Name: "BenchmarkDotNet", fields: []string{"", "OriginalValues"}},
	{Name: "Fio", fields: []string{}, UsualRate: "operations/s", isTime: func(field string) bool {
		return strings.Contains(field, "lat_ns.") && !strings.HasSuffix(field, ".N")
	}},
	{Name: "Wrk", fields: []string{}, UsualRate: "requests/s", isTime: func(field string) bool {
		return strings.HasPrefix(field, "Latency ") && field != "Latency +/- Stdev"
	}},
	{Name: "Sysbench", fields: []string{}, NoUsualField: true, isTime: func(field string) bool {
		return slices.Contains([]string{"min", "avg", "max", "sum", "total time"}, field) || strings.HasSuffix(field, " percentile")
	}},
	{Name: "Divan", fields: []string{}, arguments: func(string) []string { return []string{"--bench", "--sample-count=50"} }},
	{Name: "Catch2", fields: []string{}, arguments: func(string) []string {
		return []string{"--reporter", "xml", "--benchmark-samples", "50", "--benchmark-warmup-time", "20"}
	}},
	{Name: "Iperf3", fields: []string{}, NoUsualField: true, isTime: func(field string) bool { return strings.HasSuffix(field, "_ms") }},
	{Name: "Pgbench", fields: []string{}, UsualRate: "transactions/s", isTime: func(field string) bool {
		return strings.HasPrefix(field, "latency ") || field == "initial connection time" || strings.HasPrefix(field, "rate limit ")
	}},
	{Name: "Vegeta", fields: []string{}, isTime: func(field string) bool { return field == "" || strings.HasPrefix(field, "latencies.") }},
	{Name: "Oha", fields: []string{}, UsualRate: "requests/s", isTime: func(field string) bool {
		begins := func(prefix string) bool { return strings.HasPrefix(field, prefix) }
		return slices.Contains([]string{"summary.total", "summary.average", "summary.fastest", "summary.slowest"}, field) ||
			slices.ContainsFunc([]string{"latencyPercentiles", "firstBytePercentiles", "details.", "metrics.latency_ms."}, begins)
	}},
	// The metric is the benchmark, whose name says whether it is a time.
	{Name: "AIPerf", fields: []string{}, isTime: never},
	{Name: "JSON", ByPath: true, NoUnits: true, isTime: never, samples: func(from From) bool {
		single, err := SingleValue(from.Path)
		return err == nil && !single
	}},
	{Name: "CSV", NoUsualField: true, NoUnits: true, isTime: never},
	{Name: None},
}

// times are the fields that are times in seconds in every format without an isTime rule.
var times = []string{
	"", "ns/op", "sample", "real_time", "cpu_time", "times", "data", "mean", "median", "slope", "std_dev", "median_abs_dev", "stddev", "min",
	"max", "user", "system", "iqr", "q1", "q3", "score", "score.mean", "OriginalValues", "Mean", "Median", "Min", "Max", "P95", "fastest",
	"slowest",
}

// SingleValue reports whether a JSONPath selects one value at most, by names and indices only. The error is that of an invalid path.
func SingleValue(path string) (bool, error) {
	parsed, err := jsonpath.Parse(path)
	if err != nil {
		return false, err
	}
	return parsed.Query().Singular() != nil, nil
}

func never(string) bool { return false }

func filter(flag, benchmark string) []string {
	if benchmark == "" {
		return nil
	}
	return []string{flag + "^" + regexp.QuoteMeta(benchmark) + "$"}
}

// Tools returns the names of the formats that a command line can have: all but AssayResult, whose metrics only a template can define. None
// comes first.
func Tools() []string {
	out := []string{None}
	for i := range formats {
		if name := formats[i].Name; name != AssayResult && name != None {
			out = append(out, name)
		}
	}
	return out
}

// Named returns the format with this name. An unknown name has the rules of a format without any.
func Named(name string) Format {
	if i := slices.IndexFunc(formats, func(of Format) bool { return of.Name == name }); i >= 0 {
		return formats[i]
	}
	return Format{Name: name}
}

// ByTool reports whether another tool writes the format, so that metrics are selected from its figures.
func (f Format) ByTool() bool { return f.Name != AssayResult && f.Name != None }

// HasSamples reports whether the tool reports the samples of a figure, of which percentiles can be computed. Text is true where Criterion's
// text is read, and not its folder.
func (f Format) HasSamples(from From, text bool) bool {
	switch {
	case f.Name == "Criterion" && text:
		return false // It prints medians.
	case f.samples != nil:
		return f.samples(from)
	default:
		return f.fields == nil || slices.Contains(f.fields, from.Field)
	}
}

// IsTime reports whether a field is a time in seconds.
func (f Format) IsTime(field string) bool {
	if f.isTime != nil {
		return f.isTime(field)
	}
	return slices.Contains(times, field)
}

// Arguments returns the arguments that make a benchmark program that is started without arguments print its figures.
func (f Format) Arguments(benchmark string) []string {
	if f.arguments == nil {
		return nil
	}
	return f.arguments(benchmark)
}
