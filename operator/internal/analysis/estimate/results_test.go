package estimate_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/fixture"
)

func TestResults_IncludeEveryMetricAndArm(t *testing.T) {
	t.Parallel()
	shown := func(got *analysis.Analysis) string {
		seen := map[string]bool{}
		for _, result := range got.Arms {
			seen[result.Metric] = true
		}
		var out []string
		for _, name := range []string{"latency", "throughput", "process.wallTime", "process.cpuTime", "process.peakMemory"} {
			if seen[name] {
				out = append(out, name)
			}
		}
		return strings.Join(out, " ")
	}
	memory := assayv1alpha1.Gate{Name: "g", Metric: "process.peakMemory", Op: assayv1alpha1.AtMost, Bound: "1Gi"}
	machine := fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}
	if got := shown(analyzed.SimulateScan(t, 4, machine, nil).Analyze()); got != "latency throughput" {
		t.Errorf("nothing names a process metric, and shown are %s", got)
	}
	got := analyzed.SimulateScan(t, 4, machine, fixture.WithGates(memory)).Analyze()
	if names := shown(got); names != "latency throughput process.peakMemory" {
		t.Errorf("a gate names peak memory, and shown are %s", names)
	}
	// The resource usage of every arm is always present.
	if use := got.Usage.Processes; len(use) != 3 || use[0].Arm != "loop" || use[0].Used["peakMemory"] != 75497472 ||
		use[0].Used["wallTime"] <= 0 {
		t.Errorf("processes: %+v", use)
	}
	if _, ok := got.Usage.Processes[0].Used["cpuTime"]; ok {
		t.Error("the CPU time is known only in part and is shown")
	}
}
