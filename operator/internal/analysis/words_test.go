package analysis

import (
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestAsked_DescribesEveryOperator(t *testing.T) {
	exp := &experiment.Experiment{
		Arms: []record.Arm{{Name: "loop", Baseline: true}, {Name: "fused"}},
		Plan: experiment.Plan{Metrics: []experiment.Metric{{Name: "latency", Unit: "s"}, {Name: "throughput", Unit: "queries/s"}}},
	}
	for says, c := range map[string]struct {
		asks  experiment.Condition
		bound string
	}{
		"throughput at least 1.500x of loop":   {experiment.Condition{Metric: "throughput", Statistic: "value", Op: experiment.RatioAtLeast, Bound: ptr.To(1.5)}, "1.500x"},
		"latency p95 at most 1.050x of loop":   {experiment.Condition{Metric: "latency", Statistic: "p95", Op: experiment.RatioAtMost, Bound: ptr.To(1.05)}, "1.050x"},
		"latency median at most 20.00 ms":      {experiment.Condition{Metric: "latency", Statistic: "median", Op: experiment.AtMost, Bound: ptr.To(0.02)}, "20.00 ms"},
		"throughput at least 23.00 kqueries/s": {experiment.Condition{Metric: "throughput", Statistic: "value", Op: experiment.AtLeast, Bound: ptr.To(23e3)}, "23.00 kqueries/s"},
		"at least 95% of its trials complete":  {experiment.Condition{Op: experiment.Completes, Bound: ptr.To(0.95)}, "95%"},
		"the outputs agree":                    {experiment.Condition{Op: experiment.ParityEqual}, ""},
	} {
		if got := Asked(exp, c.asks); got != says {
			t.Errorf("got %q, want %q", got, says)
		}
		if got := BoundText(exp, c.asks); got != c.bound {
			t.Errorf("%s: the bound is %q, want %q", says, got, c.bound)
		}
	}
}

func TestDescribe_Estimates(t *testing.T) {
	cases := map[string]struct {
		estimate *Estimate
		want     string
	}{
		"a ratio":                  {&Estimate{Value: 2, Unit: "1", Ratio: true}, "2.000x"},
		"a share":                  {&Estimate{Value: 0.5, Unit: "1"}, "0.5000"},
		"a time with its interval": {&Estimate{Value: 0.0021, Unit: "s", Low: ptr.To(0.002), High: ptr.To(0.0022)}, "2.100 ms [2.000, 2.200]"},
		"no estimate is no number": {nil, "no estimate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Describe(c.estimate); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
