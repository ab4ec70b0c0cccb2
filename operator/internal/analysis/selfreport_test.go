package analysis

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestWhatAProgramSaysIsSetAgainstTheClock(t *testing.T) {
	exp := &experiment.Experiment{
		Points: []record.Point{{}}, Arms: []record.Arm{{Name: "loop", Baseline: true}, {Name: "new"}},
		Template: assayv1alpha1.BenchmarkTemplateSpec{Metrics: []assayv1alpha1.Metric{{Name: "latency", Unit: "ms"}}},
	}
	trial := func(wall float64, samples ...float64) *record.Attempt {
		return &record.Attempt{ID: "pod/t", DurationSeconds: wall, Result: &record.Result{Metrics: map[string]record.Metric{"latency": {Unit: "ms", Samples: samples}}}}
	}
	value := func(wall, value float64) *record.Attempt {
		return &record.Attempt{ID: "pod/t", DurationSeconds: wall, Result: &record.Result{Metrics: map[string]record.Metric{"latency": {Unit: "ms", Value: ptr.To(value)}}}}
	}
	cases := map[string]struct {
		baseline, candidate *record.Attempt
		want                string // Empty: nothing is said.
	}{
		"an honest gain is gone from the wall time":               {trial(1.1, 500, 500), trial(0.6, 250, 250), ""},
		"a gain that the clock did not see":                       {trial(1.1, 500, 500), trial(1.1, 250, 250), "spent outside what it measures, or is not saved"},
		"a small gain drowns in the rest of the process":          {trial(10, 500, 500), trial(10, 250, 250), ""},
		"clients side by side take less than their sum":           {trial(0.6, 500, 500), trial(0.6, 250, 250), ""},
		"another number of samples is another amount of work":     {trial(1.1, 500, 500), trial(1.1, 250), ""},
		"one sample is longer than the process":                   {trial(1.1, 500, 500), trial(0.2, 250, 10), "arm new contradicts the clock in 1 trials: pod/t reports latency 250 ms and its process lived 0.2 s"},
		"one value is longer than the process":                    {value(1, 500), value(1, 1500), "contradicts the clock"},
		"values of processes that lived longer":                   {value(1, 500), value(1, 250), ""},
		"a sample as long as the process, by a clock of its own":  {trial(1.1, 500), trial(0.5, 500.5), ""},
		"a slower candidate has nothing to explain":               {trial(1.1, 500, 500), trial(2.1, 1000, 1000), ""},
		"half of what it says it saves is there: other work grew": {trial(1.1, 500, 500), trial(0.84, 250, 250), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &data{exp: exp, trials: map[cell][]*record.Attempt{{0, 0}: {tc.baseline}, {0, len(exp.Arms) - 1}: {tc.candidate}}}
			got := strings.Join(selfReportWarnings(d), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
