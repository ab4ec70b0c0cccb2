package bench

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/suggest"
)

// Figures is what a program reports of itself, and where.
type Figures struct {
	// Format of the output; None measures the process only.
	Format assayv1alpha1.OutputFormat
	// Path of the file with the figures; empty is standard output, or what the format's usual arguments write.
	Path string
	// Benchmark is the name as the tool writes it; empty is the only one there is.
	Benchmark string
	// Metric is the figure in the tool's words; empty is what the format usually has, a time.
	Metric string
	// HigherIsBetter turns the direction of a figure that the table below does not know.
	HigherIsBetter bool
}

// formats that a command line can have; an AssayResult needs a template that says what is in it.
var formats = []assayv1alpha1.OutputFormat{
	assayv1alpha1.NoOutput, assayv1alpha1.GoBenchOutput, assayv1alpha1.CriterionOutput, assayv1alpha1.GoogleBenchmarkOutput,
	assayv1alpha1.HyperfineOutput, assayv1alpha1.PytestBenchmarkOutput, assayv1alpha1.K6Output, assayv1alpha1.JMHOutput,
	assayv1alpha1.BenchmarkDotNetOutput, assayv1alpha1.FioOutput, assayv1alpha1.WrkOutput, assayv1alpha1.SysbenchOutput,
	assayv1alpha1.DivanOutput, assayv1alpha1.Catch2Output, assayv1alpha1.CSVOutput,
}

// withoutUsual are the formats of which no figure is the usual one.
var withoutUsual = []assayv1alpha1.OutputFormat{assayv1alpha1.CSVOutput, assayv1alpha1.K6Output, assayv1alpha1.SysbenchOutput}

// FormatNames are the words of --format.
func FormatNames() []string {
	out := make([]string, 0, len(formats))
	for _, format := range formats {
		out = append(out, string(format))
	}
	return out
}

// ParseFormat reads a format whatever its case; Go is short for GoBench.
func ParseFormat(text string) (assayv1alpha1.OutputFormat, error) {
	if strings.EqualFold(text, "Go") {
		return assayv1alpha1.GoBenchOutput, nil
	}
	for _, format := range formats {
		if strings.EqualFold(text, string(format)) {
			return format, nil
		}
	}
	return "", fmt.Errorf("invalid --format %q: %s", text, suggest.Allowed(text, append([]string{"Go"}, FormatNames()...)))
}

// check reports figures that could not be found.
func (f *Figures) check() error {
	if f.Format == assayv1alpha1.NoOutput {
		if f.Path != "" || f.Benchmark != "" || f.Metric != "" || f.HigherIsBetter {
			return fmt.Errorf("--figures, --benchmark, --metric and --higher-is-better are for programs that report figures: name the form " +
				"with --format")
		}
		return nil
	}
	if f.Metric == "" && slices.Contains(withoutUsual, f.Format) {
		return fmt.Errorf("--format %s has no usual figure: name one with --metric", f.Format)
	}
	return nil
}

// usual are the arguments that make a test binary that is named without any print its figures.
func (f *Figures) usual() []string {
	switch f.Format {
	case assayv1alpha1.GoBenchOutput:
		which := "."
		if f.Benchmark != "" {
			// Each level of a name has an expression of its own.
			which = "^" + strings.ReplaceAll(regexp.QuoteMeta(f.Benchmark), "/", "$/^") + "$"
		}
		return []string{"-test.run=^$", "-test.bench=" + which, "-test.benchtime=50ms", "-test.benchmem"}
	case assayv1alpha1.CriterionOutput:
		return append([]string{"--bench", "--noplot", "--warm-up-time=0.1", "--measurement-time=0.5", "--sample-size=20"}, f.filter("")...)
	case assayv1alpha1.GoogleBenchmarkOutput:
		return append([]string{"--benchmark_format=json"}, f.filter("--benchmark_filter=")...)
	case assayv1alpha1.DivanOutput:
		return []string{"--bench", "--sample-count=50"}
	case assayv1alpha1.Catch2Output:
		return []string{"--reporter", "xml", "--benchmark-samples", "50", "--benchmark-warmup-time", "20"}
	default:
		return nil
	}
}

func (f *Figures) filter(flag string) []string {
	if f.Benchmark == "" {
		return nil
	}
	return []string{flag + "^" + regexp.QuoteMeta(f.Benchmark) + "$"}
}

// units of the figures that are no times; the rest of GoBench has its field as unit. Figures of other kinds are plain numbers.
var units = map[string]string{
	"B/op": "By", "allocs/op": "allocs", "MB/s": "By/s", "memory_usage_byte": "By", "bytes_per_second": "By/s", "items_per_second": "items/s",
	"throughput": "elements/s", "ops": "operations/s", "iops": "operations/s", "bw_bytes": "By/s", "Requests/sec": "requests/s",
	"Transfer/sec": "By/s", "events per second": "events/s", "gc.alloc.rate.norm": "By", "BytesAllocatedPerOperation": "By",
}

// rates are the units of usual figures that are no times.
var rates = map[assayv1alpha1.OutputFormat]string{assayv1alpha1.FioOutput: "operations/s", assayv1alpha1.WrkOutput: "requests/s"}

var times = []string{
	"", "ns/op", "sample", "real_time", "cpu_time", "times", "data", "mean", "median", "slope", "std_dev", "median_abs_dev", "stddev", "min",
	"max", "user", "system", "iqr", "q1", "q3", "score", "score.mean", "OriginalValues", "Mean", "Median", "Min", "Max", "P95", "fastest",
	"slowest",
}

// isTime reports whether the figure is a time.
func (f *Figures) isTime() bool {
	switch f.Format {
	case assayv1alpha1.CSVOutput, assayv1alpha1.K6Output:
		return false
	case assayv1alpha1.FioOutput:
		return strings.Contains(f.Metric, "lat_ns.") && !strings.HasSuffix(f.Metric, ".N")
	case assayv1alpha1.WrkOutput:
		return strings.HasPrefix(f.Metric, "Latency ") && f.Metric != "Latency +/- Stdev"
	case assayv1alpha1.SysbenchOutput:
		return slices.Contains([]string{"min", "avg", "max", "sum", "total time"}, f.Metric) || strings.HasSuffix(f.Metric, " percentile")
	default:
		return slices.Contains(times, f.Metric)
	}
}

var notMetricName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// metric is the template's, nil without figures.
func (f *Figures) metric() *assayv1alpha1.Metric {
	if f.Format == assayv1alpha1.NoOutput {
		return nil
	}
	out := &assayv1alpha1.Metric{Name: "time", Unit: "1", Direction: assayv1alpha1.LowerIsBetter}
	switch unit := units[f.Metric]; {
	case unit != "":
		out.Unit = unit
	case f.Metric == "" && rates[f.Format] != "":
		out.Name, out.Unit = "rate", rates[f.Format]
	case f.Format == assayv1alpha1.JMHOutput && f.HigherIsBetter && strings.HasPrefix(cmp.Or(f.Metric, "score"), "score"):
		// In the mode of throughput a score is a rate.
		out.Name, out.Unit = "rate", "operations/s"
	case f.isTime():
		out.Unit = "s"
	case f.Format == assayv1alpha1.GoBenchOutput:
		out.Unit = f.Metric
	}
	if f.HigherIsBetter || strings.HasSuffix(out.Unit, "/s") {
		out.Direction = assayv1alpha1.HigherIsBetter
	}
	if f.Metric != "" {
		out.Name = camel(f.Metric)
	}
	if f.Metric != "" || f.Benchmark != "" {
		out.From = &assayv1alpha1.MetricSource{Benchmark: f.Benchmark, Field: f.Metric}
	}
	return out
}

// camel turns a tool's word into a metric's name: ns/op becomes nsOp.
func camel(text string) string {
	name := ""
	for word := range strings.FieldsSeq(notMetricName.ReplaceAllString(text, " ")) {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	if name == "" || name[0] < 'A' {
		return "figure" + name // Names begin with a letter.
	}
	return strings.ToLower(name[:1]) + name[1:]
}
