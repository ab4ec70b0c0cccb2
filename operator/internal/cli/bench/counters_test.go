package bench

import (
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// Every counter is a quantity of processes, and every quantity that a runner has to be asked for is a counter.
func TestCounters_AreTheQuantitiesOfProcesses(t *testing.T) {
	named := map[string]bool{}
	for _, of := range counters {
		named[of.name] = true
		if _, quantity := record.FindProcessQuantity(record.ProcessPrefix + of.name); quantity == nil {
			t.Errorf("%s is no quantity of processes", of.name)
		}
	}
	for _, quantity := range record.ProcessQuantities {
		if quantity.Counted && !named[quantity.Name] {
			t.Errorf("%s is counted and not shown", quantity.Name)
		}
	}
}

func TestSplitCounters_ThoseOfTheMachineAreNamedInTheRun(t *testing.T) {
	has, lacks := splitCounters(map[string]string{
		"instructions": "", "cycles": "", "cacheMisses": "no such event", "branchMisses": "no such event", "packageEnergy": "no RAPL",
	})
	const want = "this machine does not count cache misses, branch misses, energy of the processor: no RAPL; no such event"
	if lacks != want {
		t.Errorf("%q, want %q", lacks, want)
	}
	var run assayv1alpha1.BenchmarkRun
	nameCounters(&run, has)
	var metrics []string
	for _, column := range run.Spec.Report.Tables[0].Columns {
		metrics = append(metrics, strings.TrimPrefix(column.Metric, record.ProcessPrefix))
	}
	if got := strings.Join(metrics[4:], " "); got != "instructions cycles" {
		t.Errorf("the run names %v", metrics)
	}
	if has, lacks := splitCounters(nil); len(has) != len(counters) || lacks != "" {
		t.Errorf("a machine with all counters has %d and lacks %q", len(has), lacks)
	}
}
