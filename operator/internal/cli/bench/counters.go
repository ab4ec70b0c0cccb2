package bench

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// counter is a count of a trial, by its name in process metrics.
type counter struct{ name, title string }

// counters are the counts of the kernel for a process and those of its children that it waited for, from its launch to its end, as
// wait4(2) returns them, and those of the processor for the process and all that it started. The former are there on every machine.
var counters = []counter{
	{"minorFaults", "minor page faults"}, {"majorFaults", "major page faults"}, {"voluntaryContextSwitches", "voluntary context switches"},
	{"involuntaryContextSwitches", "involuntary context switches"}, {"instructions", "instructions"}, {"cycles", "cycles"},
	{"cacheMisses", "cache misses"}, {"branchMisses", "branch misses"}, {"packageEnergy", "energy of the processor"},
}

// splitCounters returns the counters of a machine and the sentence about those that it does not have, "" if it has all. Missing has a
// reason for each counter that the machine cannot count.
func splitCounters(missing map[string]string) (has []counter, lacks string) {
	var names []string
	reasons := map[string]bool{}
	for _, of := range counters {
		if reason := missing[of.name]; reason != "" {
			names, reasons[reason] = append(names, of.title), true
		} else {
			has = append(has, of)
		}
	}
	if len(names) == 0 {
		return has, ""
	}
	return has, "this machine does not count " + strings.Join(names, ", ") + ": " + strings.Join(slices.Sorted(maps.Keys(reasons)), "; ")
}

// nameCounters makes a run estimate and show the counters, which decide nothing.
func nameCounters(run *assayv1alpha1.BenchmarkRun, counters []counter) {
	figures := assayv1alpha1.ReportTable{Name: "counters", Title: "Counters, for each trial"}
	for _, counter := range counters {
		figures.Columns = append(figures.Columns, assayv1alpha1.ReportColumn{Title: counter.title, Metric: record.ProcessPrefix + counter.name})
	}
	compared := figures
	compared.Name, compared.Title = "counters-compared", "Counters, as multiples of the baseline"
	compared.Columns = slices.Clone(figures.Columns)
	for i := range compared.Columns {
		compared.Columns[i].Compared = true
	}
	run.Spec.Report = &assayv1alpha1.Report{Tables: []assayv1alpha1.ReportTable{figures, compared}}
}

// countersOf formats the counters of a candidate as multiples of the baseline's. A counter without a ratio, such as one that is zero for
// the baseline, is left out; "" if all are.
func countersOf(result *analysis.Analysis, candidate string) string {
	var said []string
	for _, counter := range counters {
		at := slices.IndexFunc(result.Ratios, func(r analysis.RatioResult) bool {
			return r.Candidate == candidate && r.Metric == record.ProcessPrefix+counter.name
		})
		if at >= 0 {
			said = append(said, counter.title+" "+cmp.Or(analysis.Describe(&result.Ratios[at].Estimate), "unknown"))
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "  counters: " + strings.Join(said, ", ") + ", " + quantity.Percent(result.Confidence, 4) + " confidence"
}
