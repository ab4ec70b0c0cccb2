package bench

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/suggest"
)

// Figures describes the metric that the commands report, and its place in their output.
type Figures struct {
	// Format of the output; None measures the process only.
	Format assayv1alpha1.OutputFormat
	// Path is the output file; "" selects standard output, or the file of the usual arguments of the format.
	Path string
	// Benchmark is the name as the tool writes it; empty is the only one there is.
	Benchmark string
	// Metric is the name of the metric in the output; "" selects the usual time of the format.
	Metric string
	// HigherIsBetter turns the direction of a figure that the table below does not know.
	HigherIsBetter bool
}

// FormatNames returns the values of --format.
func FormatNames() []string { return format.Tools() }

// ParseFormat parses the name of a format, ignoring case. Go is an alias of GoBench.
func ParseFormat(text string) (assayv1alpha1.OutputFormat, error) {
	if strings.EqualFold(text, "Go") {
		return assayv1alpha1.GoBenchOutput, nil
	}
	for _, name := range FormatNames() {
		if strings.EqualFold(text, name) {
			return assayv1alpha1.OutputFormat(name), nil
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
	if f.Metric == "" && (f.format().NoUsualField || f.format().ByPath) {
		return fmt.Errorf("--format %s has no usual figure: name one with --metric", f.Format)
	}
	return nil
}

// format returns the behaviour of the format.
func (f *Figures) format() format.Format { return format.Named(string(f.Format)) }

// units of the figures that are no times; the rest of GoBench has its field as unit. Figures of other kinds are plain numbers.
var units = map[string]string{
	"B/op": "By", "allocs/op": "allocs", "MB/s": "By/s", "memory_usage_byte": "By", "bytes_per_second": "By/s", "items_per_second": "items/s",
	"throughput": "elements/s", "ops": "operations/s", "iops": "operations/s", "bw_bytes": "By/s", "Requests/sec": "requests/s",
	"Transfer/sec": "By/s", "tps": "transactions/s", "summary.requestsPerSec": "requests/s", "summary.sizePerSec": "By/s",
	"sum_received.bits_per_second": "By/s", "sum_sent.bits_per_second": "By/s", "events per second": "events/s",
	"gc.alloc.rate.norm": "By", "BytesAllocatedPerOperation": "By",
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
	case f.Metric == "" && f.format().UsualRate != "":
		out.Name, out.Unit = "rate", f.format().UsualRate
	case f.Format == assayv1alpha1.JMHOutput && f.HigherIsBetter && strings.HasPrefix(cmp.Or(f.Metric, "score"), "score"):
		// In the mode of throughput a score is a rate.
		out.Name, out.Unit = "rate", "operations/s"
	case f.format().IsTime(f.Metric):
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
	if f.Format == assayv1alpha1.JSONOutput {
		out.From = &assayv1alpha1.MetricSource{Path: f.Metric}
	}
	// Criterion's folder does not state the unit, which is this one unless the program replaces Criterion's clock.
	if f.Format == assayv1alpha1.CriterionOutput && out.Unit == "s" {
		source := ptr.Deref(out.From, assayv1alpha1.MetricSource{})
		source.Unit = "ns"
		out.From = &source
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
