package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

func TestReason_FirstCause(t *testing.T) {
	lost := &analysis.Cause{Arm: "new", Trial: "w000-b0000-s00000", Lost: 20, Of: 20, Reason: "no result on standard output"}
	const said = `20 of 20 trials of arm new gave no usable result, the first (w000-b0000-s00000): "no result on standard output"`
	condition := func(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message}
	}
	complete := condition(assayv1alpha1.ConditionComplete, "True", assayv1alpha1.ReasonVerdictReached, "verdict")
	finished := condition(assayv1alpha1.ConditionProgressing, "False", assayv1alpha1.ReasonFinished, "verdict")
	invalid := &analysis.Analysis{Verdict: experiment.VerdictInvalid, Cause: lost}
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		result     *analysis.Analysis
		want       string
	}{
		"a verdict that lost trials prevent": {[]metav1.Condition{finished, complete}, invalid, said},
		"a broken setup": {[]metav1.Condition{condition(assayv1alpha1.ConditionFailed, "True", assayv1alpha1.ReasonSetupBroken, "long")},
			&analysis.Analysis{Verdict: experiment.VerdictInvalid, SetupBroken: "no trial completed"}, "no trial completed"},
		"a setup that starts no block": {[]metav1.Condition{condition(assayv1alpha1.ConditionFailed, "True", assayv1alpha1.ReasonSetupBroken,
			"no pod starts")}, nil, "SetupBroken: no pod starts"},
		"a budget that ended with lost trials": {[]metav1.Condition{condition(assayv1alpha1.ConditionComplete, "True",
			assayv1alpha1.ReasonBudgetExhausted, "spec.budget.wallClock of 1m is used up")}, invalid, said},
		"a failure without an analysis": {[]metav1.Condition{condition(assayv1alpha1.ConditionFailed, "True", assayv1alpha1.ReasonImageNotPulled,
			`image "x" cannot be pulled`)}, nil, `ImageNotPulled: image "x" cannot be pulled`},
		"a failure beside an older analysis": {[]metav1.Condition{condition(assayv1alpha1.ConditionFailed, "True",
			assayv1alpha1.ReasonAnalysisFailed, "out of memory")}, invalid, "AnalysisFailed: out of memory"},
		"Go has none": {[]metav1.Condition{finished, complete}, &analysis.Analysis{Verdict: experiment.VerdictGo, Cause: lost}, ""},
		"a wait":      {[]metav1.Condition{condition(assayv1alpha1.ConditionProgressing, "False", "NoNodeMatches", "no node has 64 CPUs")}, nil, "NoNodeMatches: no node has 64 CPUs"},
		"the wait that comes first": {[]metav1.Condition{condition(assayv1alpha1.ConditionProgressing, "False", "LedgerUnreachable", "waiting"),
			condition(assayv1alpha1.ConditionLedgerReady, "False", "LedgerUnreachable", "connection refused")}, nil,
			"LedgerUnreachable: connection refused"},
		"a run with losses so far": {[]metav1.Condition{condition(assayv1alpha1.ConditionProgressing, "True", "WaveRunning", "r")}, invalid, said},
		"a run without a finding":  {[]metav1.Condition{condition(assayv1alpha1.ConditionProgressing, "True", "WaveRunning", "r")}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := assayv1alpha1.BenchmarkRunStatus{Conditions: c.conditions, Reason: "of before"}
			if setReason(&out, c.result, ""); out.Reason != c.want {
				t.Errorf("got  %q\nwant %q", out.Reason, c.want)
			}
		})
	}
	runs := condition(assayv1alpha1.ConditionProgressing, "True", "WaveRunning", "r")
	failing := assayv1alpha1.BenchmarkRunStatus{Conditions: []metav1.Condition{runs}}
	if setReason(&failing, nil, "the first trial failed"); failing.Reason != "the first trial failed" {
		t.Errorf("a failure before the analysis: %q", failing.Reason)
	}
	failed := condition(assayv1alpha1.ConditionFailed, "True", "X", strings.Repeat("é", 5000))
	long := assayv1alpha1.BenchmarkRunStatus{Conditions: []metav1.Condition{failed}}
	if setReason(&long, nil, ""); len(long.Reason) > maxReason {
		t.Errorf("%d bytes", len(long.Reason))
	}
}
