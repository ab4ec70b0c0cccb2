package export

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Benchstat renders the used trials in the Go benchmark format, one line per trial, named Benchmark<template>/<axis>=<value>/arm=<name>,
// with a unit per metric such as latency-sec. benchstat -col /arm compares the arms. It ignores blocks, so its intervals are wider than
// those of the report.
func Benchstat(exp *experiment.Experiment, analyzed *analysis.Analysis, evidence record.Evidence) ([]byte, error) {
	excluded := map[string]string{}
	for _, exclusion := range analyzed.Excluded {
		excluded[exclusion.Attempt] = exclusion.Reason
	}
	var out bytes.Buffer
	// Configuration lines would split two runs into separate tables of benchstat, so the run is identified by a comment.
	fmt.Fprintf(&out, "# run %s/%s %s, experiment %s, evidence %s\n", escape(exp.Run.Namespace, ""), escape(exp.Run.Name, ""),
		escape(exp.Run.UID, ""), escape(exp.Digest, ""), escape(analyzed.Evidence, ""))
	w, processes := benchfmt.NewWriter(&out), processMetrics(exp)
	for _, metric := range exp.Metrics() {
		if err := w.Write(&benchfmt.UnitMetadata{OrigUnit: unitOf(metric.Name, metric.Unit),
			UnitMetadataKey: benchfmt.UnitMetadataKey{Key: "better"}, Value: direction(exp, metric.Name)}); err != nil {
			return nil, err
		}
	}
	for i := range evidence.Attempts {
		attempt := &evidence.Attempts[i]
		if attempt.Wave > analyzed.Wave || !counts(attempt, excluded) {
			continue
		}
		result := &benchfmt.Result{Config: config(analyzed), Name: benchmarkName(exp, attempt), Iters: 1}
		for _, name := range metricNames(attempt, processes) {
			reported, known := attempt.Metric(name)
			if !known {
				continue
			}
			value, samples, ok := oneNumber(exp, name, reported)
			if !ok {
				continue
			}
			result.Iters = max(result.Iters, int(samples))
			result.Values = append(result.Values, benchfmt.Value{Value: value, Unit: unitOf(name, reported.Unit)})
		}
		if len(result.Values) > 0 {
			if err := w.Write(result); err != nil {
				return nil, err
			}
		}
	}
	return out.Bytes(), nil
}

// oneNumber is the metric's own statistic of the trial, or the median where that is a percentile, which one trial has not.
func oneNumber(exp *experiment.Experiment, name string, reported record.Metric) (float64, int64, bool) {
	statistics, samples, err := trial.Statistics(reported)
	if err != nil || len(statistics) == 0 {
		return 0, 0, false
	}
	own := experiment.StatisticMedian
	if metric := exp.Metric(name); metric != nil {
		own = metric.Statistic
	}
	for _, wanted := range []experiment.Statistic{own, experiment.StatisticMedian, experiment.StatisticValue} {
		if i := slices.IndexFunc(statistics, func(s trial.Statistic) bool { return s.Statistic == wanted }); i >= 0 {
			return statistics[i].Value, samples, true
		}
	}
	return 0, 0, false
}

// units are the names that benchstat knows base units by.
var units = map[string]string{"s": "sec", "By": "B"}

// unitOf combines a metric and its unit into one word like the tools of Go, such as p50-latency-ns. benchstat distinguishes metrics by
// their unit only.
func unitOf(metric, unit string) string {
	metric = escape(metric, "")
	if _, tidied := benchunit.Tidy(1, metric); tidied != metric {
		metric += "_" // A metric called ns would be taken for its unit.
	}
	first, rest, _ := strings.Cut(unit, "/")
	first = cmp.Or(units[first], first)
	if rest != "" {
		first += "/" + rest
	}
	if unit == "1" {
		return metric
	}
	return metric + "-" + escape(first, "")
}

// config are the keys that benchstat shows above its tables, and by which it refuses to mix machines.
func config(result *analysis.Analysis) []benchfmt.Config {
	var out []benchfmt.Config
	for _, key := range []struct{ name, from string }{{"goarch", "architecture"}, {"cpu", "cpuModel"}} {
		if value, ok := result.Environment[key.from].(string); ok && value != "" {
			value = cmp.Or(architectures[value], plain(value))
			out = append(out, benchfmt.Config{Key: key.name, Value: []byte(value), File: true})
		}
	}
	return out
}

// plain is a text in one line, whose words stay apart.
func plain(text string) string {
	words := strings.Fields(text)
	for i := range words {
		words[i] = escape(words[i], "")
	}
	return strings.Join(words, " ")
}

// architectures are Go's names for those of the fingerprint.
var architectures = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// benchmarkName ends in the number of CPUs, as go test's names do: without it the 512 of an arm called avx-512 would be
// taken for one.
func benchmarkName(exp *experiment.Experiment, attempt *record.Attempt) benchfmt.Name {
	var out strings.Builder
	for part := range strings.SplitSeq(cmp.Or(exp.Plan.Template, exp.Run.Name), "-") {
		if part != "" {
			out.WriteString(escape(strings.ToUpper(part[:1])+part[1:], "/"))
		}
	}
	if i := slices.IndexFunc(exp.Points, func(p record.Point) bool { return p.Key == attempt.Point }); i >= 0 {
		for _, axis := range exp.Axes() {
			fmt.Fprintf(&out, "/%s=%s", escape(axis, "/="), escape(exp.Points[i].Parameters[axis], "/"))
		}
	}
	fmt.Fprintf(&out, "/arm=%s-%d", escape(attempt.Arm, "/"), max(1, exp.Plan.Placement.CPUs))
	return benchfmt.Name(out.String())
}

// escape escapes white space and separators injectively.
func escape(text, separators string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '%' || strings.ContainsRune(separators, r) {
			for _, b := range []byte(string(r)) {
				fmt.Fprintf(&out, "%%%02X", b)
			}
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
