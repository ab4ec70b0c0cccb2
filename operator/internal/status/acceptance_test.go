package status

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestEvents_UnreportedRequirementWarnsOnce(t *testing.T) {
	requires := func(key string) *assayv1alpha1.BenchmarkRunSpec {
		return &assayv1alpha1.BenchmarkRunSpec{Environment: &assayv1alpha1.Environment{Require: map[string]string{key: "x"}}}
	}
	accepted := assayv1alpha1.BenchmarkRunStatus{Conditions: []metav1.Condition{{Type: assayv1alpha1.ConditionAccepted,
		Status: metav1.ConditionTrue}}}
	for name, test := range map[string]struct {
		before, after assayv1alpha1.BenchmarkRunStatus
		spec          *assayv1alpha1.BenchmarkRunSpec
		warned        bool
	}{
		"an unknown key, when the run is accepted":        {after: accepted, spec: requires("cpuModell"), warned: true},
		"an unknown key, long after the run was accepted": {before: accepted, after: accepted, spec: requires("cpuModell")},
		"an unknown key, and the run is not accepted yet": {spec: requires("cpuModell")},
		"a known key": {after: accepted, spec: requires("cpuModel")},
		"a run that requires nothing of its machine": {after: accepted, spec: &assayv1alpha1.BenchmarkRunSpec{}},
	} {
		t.Run(name, func(t *testing.T) {
			events := AcceptanceEvents(&test.before, &test.after, test.spec)
			if (len(events) == 1) != test.warned || len(events) > 1 {
				t.Fatalf("%d events: %+v", len(events), events)
			}
			if test.warned && (events[0].Type != corev1.EventTypeWarning ||
				!strings.Contains(events[0].Message, "spec.environment.require.cpuModell")) {
				t.Errorf("the event is %+v", events[0])
			}
		})
	}
}
