package explain

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestSelfReport_ComparedWithWallTime(t *testing.T) {
	exp := &experiment.Experiment{
		Points: []record.Point{{}}, Arms: []record.Arm{{Name: "loop", Baseline: true}, {Name: "new"}},
		Plan: experiment.Plan{Metrics: []experiment.Metric{{Name: "latency", Unit: "ms"}}},
	}
	trial := func(wall float64, samples ...float64) *record.Attempt {
		return &record.Attempt{ID: "pod/t", DurationSeconds: wall,
			Result: &record.Result{Metrics: map[string]*record.Metric{"latency": {Unit: "ms", Samples: samples}}}}
	}
	value := func(wall, value float64) *record.Attempt {
		return &record.Attempt{ID: "pod/t", DurationSeconds: wall,
			Result: &record.Result{Metrics: map[string]*record.Metric{"latency": {Unit: "ms", Value: ptr.To(value)}}}}
	}
	cases := map[string]struct {
		baseline, candidate *record.Attempt
		want                string // Empty: nothing is said.
	}{
		"an honest gain is gone from the wall time":                {trial(1.1, 500, 500), trial(0.6, 250, 250), ""},
		"a gain that the clock did not see":                        {trial(1.1, 500, 500), trial(1.1, 250, 250), "spent outside the measured time, or does not exist"},
		"a small gain drowns in the rest of the process":           {trial(10, 500, 500), trial(10, 250, 250), ""},
		"clients side by side take less than their sum":            {trial(0.6, 500, 500), trial(0.6, 250, 250), ""},
		"another number of samples is another amount of work":      {trial(1.1, 500, 500), trial(1.1, 250), ""},
		"one sample is longer than the process":                    {trial(1.1, 500, 500), trial(0.2, 250, 10), "arm new contradicts the runner's readings in 1 trials: pod/t reports a latency of 0.25 s and its process lived 0.2 s by the runner's clock"},
		"one value is longer than the process":                     {value(1, 500), value(1, 1500), "reports a latency of 1.5 s and its process lived 1 s"},
		"values of processes that lived longer":                    {value(1, 500), value(1, 250), ""},
		"a sample as long as the process, by another clock":        {trial(1.1, 500), trial(0.5, 500.5), ""},
		"a slower candidate has nothing to explain":                {trial(1.1, 500, 500), trial(2.1, 1000, 1000), ""},
		"half of the reported saving is real, and other work grew": {trial(1.1, 500, 500), trial(0.84, 250, 250), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &estimate.Data{Exp: exp, Chosen: &selection.Selection{}, Trials: map[selection.Cell][]*record.Attempt{
				selection.At(0, 0): {tc.baseline}, selection.At(0, len(exp.Arms)-1): {tc.candidate},
			}}
			got := strings.Join(selfReportWarnings(d), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSelfReport_ComparedWithRunnerReadings(t *testing.T) {
	many := func(n int, value float64) []float64 { return slices.Repeat([]float64{value}, n) }
	cases := map[string]struct {
		metric    string
		samples   []float64
		cpu       []float64 // User and system seconds that the runner read; nil is no reading.
		role      []float64
		effective map[string]any
		want      string // Empty: nothing is said.
	}{
		"CPU time as the runner read it":                {"cpuTime", []float64{1.5, 1.5}, []float64{2, 1}, nil, nil, ""},
		"more CPU time than the runner read":            {"cpuTime", []float64{1.5, 1.6}, []float64{2, 1}, nil, nil, "pod/t reports 3.1 s of cpuTime in all and the runner read 3 s of CPU time"},
		"CPU time by another name":                      {"userCPU", []float64{4}, []float64{2, 1}, nil, nil, "4 s of userCPU in all and the runner read 3 s"},
		"CPU time of several threads exceeds the wall":  {"cpuTime", []float64{3}, []float64{3, 1}, nil, nil, ""},
		"CPU time where the runner could not read it":   {"cpuTime", []float64{30}, nil, nil, nil, ""},
		"CPU time of a server in another role":          {"cpuTime", []float64{3.5}, []float64{2, 1}, []float64{0.5, 0.5}, nil, ""},
		"a tick of the kernel's clock":                  {"cpuTime", []float64{0.012}, []float64{0, 0.005}, nil, nil, ""},
		"a name in which cpu is no word":                {"scputter", []float64{1.5}, []float64{1, 0}, nil, nil, "reports a scputter of 1.5 s and its process lived 1 s"},
		"threads that had time for it":                  {"latency", many(4, 0.9), nil, nil, map[string]any{"threads": int64(4)}, ""},
		"more than the threads had time for":            {"latency", many(5, 0.9), nil, nil, map[string]any{"threads": 4.0}, "reports 4.5 s of latency in all and its process lived 1 s by the runner's clock, too little for 4 threads that it reports"},
		"as many at a time as most have":                {"latency", many(11, 0.9), nil, nil, nil, ""},
		"more than most programs have under way":        {"latency", many(12, 0.9), nil, nil, nil, "reports 10.8 s of latency in all and its process lived 1 s by the runner's clock, too little for the 10 at a time"},
		"threads that are not said as a number":         {"latency", many(5, 0.9), nil, nil, map[string]any{"threads": "1"}, ""},
		"one sample longer than the process, said once": {"latency", many(12, 2), nil, nil, nil, "reports a latency of 2 s"},
	}
	resources := func(of []float64) record.Resources {
		if of == nil {
			return record.Resources{}
		}
		return record.Resources{UserSeconds: &of[0], SystemSeconds: &of[1]}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			exp := &experiment.Experiment{
				Points: []record.Point{{}}, Arms: []record.Arm{{Name: "new"}},
				Plan: experiment.Plan{Metrics: []experiment.Metric{{Name: c.metric, Unit: "s"}}},
			}
			attempt := &record.Attempt{ID: "pod/t", DurationSeconds: 1, Resources: resources(c.cpu), Result: &record.Result{
				Effective: c.effective, Metrics: map[string]*record.Metric{c.metric: {Unit: "s", Samples: c.samples}},
			}}
			if c.role != nil {
				attempt.Roles = []record.RoleSeen{{Name: "server", Resources: ptr.To(resources(c.role))}}
			}
			d := &estimate.Data{Exp: exp, Chosen: &selection.Selection{}, Trials: map[selection.Cell][]*record.Attempt{
				selection.At(0, 0): {attempt},
			}}
			got := append(selfReportWarnings(d), strictWarnings(d)...)
			got = slices.DeleteFunc(got, func(w string) bool { return strings.Contains(w, "gateConfidence") })
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("%q, want one warning with %q", got, c.want)
			}
		})
	}
}
