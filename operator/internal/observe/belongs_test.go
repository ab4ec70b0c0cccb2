package observe

import (
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
)

func TestLedger_ExperimentOfAnotherRunIsRejected(t *testing.T) {
	cases := map[string]struct {
		edit func(*experiment.Experiment)
		says string
	}{
		"its own":                         {func(*experiment.Experiment) {}, ""},
		"that of another namespace":       {func(e *experiment.Experiment) { e.Run.Namespace = "kube-system" }, "it is of run kube-system/pir-batch-scan"},
		"that of a run of the same name":  {func(e *experiment.Experiment) { e.Run.UID = "another" }, "with uid another"},
		"with nodes that were not asked":  {func(e *experiment.Experiment) { e.Plan.Placement.MaxNodes = 100 }, "spec.placement is not the run's"},
		"with CPUs asked for":             {func(e *experiment.Experiment) { e.Plan.Requires.Isolation = "ExclusiveCPUs" }, "spec.placement is not the run's"},
		"with a node for itself, unasked": {func(e *experiment.Experiment) { e.Plan.Placement.Exclusive = "Node" }, "spec.placement is not the run's"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp, err := fixture.ScanExperiment(nil)
			if err != nil {
				t.Fatal(err)
			}
			spec, _, err := fixture.SpecAndTemplate(exp)
			if err != nil {
				t.Fatal(err)
			}
			run := &assayv1alpha1.BenchmarkRun{Spec: spec}
			run.Namespace, run.Name, run.UID = exp.Run.Namespace, exp.Run.Name, "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11"
			tc.edit(exp)
			err = belongs(run, exp)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
		})
	}
}
