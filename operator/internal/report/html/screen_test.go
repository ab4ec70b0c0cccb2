package html

import (
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// A page has a sentence only if the data support it.
func TestPage_SentencesHaveData(t *testing.T) {
	fails := func(attempts []record.Attempt) {
		for i := range attempts {
			attempts[i].Outcome, attempts[i].Result, attempts[i].Message = record.Failed, nil, "exit status 1"
		}
	}
	bound := func(bound string) func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec) {
		return func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: "throughput", At: assayv1alpha1.ParameterValues{"batchSize": "8"},
				Op: assayv1alpha1.RatioAtLeast, Bound: bound}}
		}
	}
	const widened, thin, completed = "No interval was widened", "hin line is", "A gate on completed trials"
	const shape = "share of trials up to a value"
	for name, c := range map[string]struct {
		of          story
		says, lacks []string
	}{
		"every trial failed": {simulated(t, nil, fails), []string{"Next step: Repair the workload", "exit status 1"},
			[]string{widened, thin, shape, `<p class="levels">`}},
		"a bound that no change does not cover": {simulated(t, bound("1.5"), nil),
			[]string{thin, completed, shape, `<p class="levels">throughput at batchSize=8`, " → fused-m4r ", " queries/s</p>"}, nil},
		"a bound that covers no change": {simulated(t, bound("1"), nil), []string{completed, shape}, []string{thin}},
	} {
		t.Run(name, func(t *testing.T) {
			page := c.of.page(t)
			for _, text := range c.says {
				if !strings.Contains(page, text) {
					t.Errorf("the page lacks %q", text)
				}
			}
			for _, text := range c.lacks {
				if strings.Contains(page, text) {
					t.Errorf("the page has %q", text)
				}
			}
		})
	}
}
