package status

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// Event says once that something happened.
type Event struct{ Type, Reason, Message string }

// maxEventBytes is what an Event's message may have.
const maxEventBytes = 1024

func event(kind, reason, format string, args ...any) Event {
	return Event{kind, reason, truncate(fmt.Sprintf(format, args...), maxEventBytes)}
}

// Events are what a new status says that the old one did not.
func Events(before, after *assayv1alpha1.BenchmarkRunStatus) []Event {
	var out []Event
	add := func(kind, reason, format string, args ...any) {
		out = append(out, event(kind, reason, format, args...))
	}
	if after.Wave != nil && (before.Wave == nil || *before.Wave != *after.Wave) {
		add(corev1.EventTypeNormal, "WaveStarted", "wave %d started: workflow %s, %d trials planned in all", *after.Wave, after.Workflow, after.Trials.Planned)
	}
	for _, condition := range after.Conditions {
		old := meta.FindStatusCondition(before.Conditions, condition.Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		if kind := eventType(condition, old); kind != "" {
			add(kind, condition.Reason, "%s", condition.Message)
		}
	}
	return out
}

// warnings are the reasons why a run does not go on that somebody has to do something about.
var warnings = []string{
	assayv1alpha1.ReasonNoNodeMatches, assayv1alpha1.ReasonWaitingForNode, assayv1alpha1.ReasonImageNotPulled,
	assayv1alpha1.ReasonPodNotEnding, assayv1alpha1.ReasonWriteFailed, assayv1alpha1.ReasonBudgetExhausted, assayv1alpha1.ReasonArgoMissing, assayv1alpha1.ReasonArgoTooOld,
}

// eventType tells which changes of a condition are worth an event; empty is none.
func eventType(condition metav1.Condition, old *metav1.Condition) string {
	isTrue := condition.Status == metav1.ConditionTrue
	switch condition.Type {
	case assayv1alpha1.ConditionAccepted:
		if isTrue {
			return corev1.EventTypeNormal
		}
		return corev1.EventTypeWarning
	case assayv1alpha1.ConditionLedgerReady:
		switch {
		case !isTrue:
			return corev1.EventTypeWarning
		case old != nil:
			return corev1.EventTypeNormal
		}
	case assayv1alpha1.ConditionProgressing:
		if slices.Contains(warnings, condition.Reason) {
			return corev1.EventTypeWarning
		}
	case assayv1alpha1.ConditionSuspended:
		if isTrue || old != nil && old.Status == metav1.ConditionTrue {
			return corev1.EventTypeNormal
		}
	case assayv1alpha1.ConditionComplete:
		return corev1.EventTypeNormal
	case assayv1alpha1.ConditionFailed:
		return corev1.EventTypeWarning
	}
	return ""
}

// AcceptanceEvents warn, once, of what an accepted run asks for that no block will find.
func AcceptanceEvents(before, after *assayv1alpha1.BenchmarkRunStatus, spec *assayv1alpha1.BenchmarkRunSpec) []Event {
	if meta.IsStatusConditionTrue(before.Conditions, assayv1alpha1.ConditionAccepted) || !meta.IsStatusConditionTrue(after.Conditions, assayv1alpha1.ConditionAccepted) {
		return nil
	}
	var out []Event
	for _, warning := range experiment.EnvironmentWarnings(ptr.Deref(spec.Environment, assayv1alpha1.Environment{}).Require) {
		out = append(out, event(corev1.EventTypeWarning, "RequirementUnknown", "%s", warning))
	}
	return out
}
