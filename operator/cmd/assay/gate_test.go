package main

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestGateExitsWithTheVerdict(t *testing.T) {
	failed := []metav1.Condition{{Type: assayv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: "InvalidExperiment",
		Message: "spec.arms: none"}}
	for name, test := range map[string]struct {
		status  assayv1alpha1.BenchmarkRunStatus
		lenient bool
		code    int // 0 passes
	}{
		"Go passes":                               {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictGo}},
		"NoGo has a code of its own":              {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictNoGo}, code: exitNoGo},
		"NoGo is never allowed":                   {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictNoGo}, lenient: true, code: exitNoGo},
		"Inconclusive does not pass":              {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictInconclusive}, code: exitInconclusive},
		"Inconclusive passes when it is allowed":  {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictInconclusive}, lenient: true},
		"Invalid does not pass, allowed or not":   {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictInvalid}, lenient: true, code: exitInconclusive},
		"a run without a verdict does not pass":   {code: exitInconclusive},
		"a run that failed is an error, not NoGo": {status: assayv1alpha1.BenchmarkRunStatus{Conditions: failed}, code: exitError},
	} {
		t.Run(name, func(t *testing.T) {
			err := gateError(&assayv1alpha1.BenchmarkRun{Status: test.status}, test.lenient)
			code := 0
			var coded *exitCode
			switch {
			case errors.As(err, &coded):
				code = coded.code
			case err != nil:
				code = exitError
			}
			if code != test.code {
				t.Errorf("exit code %d (%v), want %d", code, err, test.code)
			}
		})
	}
}
