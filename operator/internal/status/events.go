package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/record"
)

// Event is a Kubernetes event to emit.
type Event struct{ Type, Reason, Message string }

// maxEventBytes is the API server's limit of an event's message.
const maxEventBytes = 1024

func event(kind, reason, format string, args ...any) Event {
	return Event{kind, reason, record.Truncate(fmt.Sprintf(format, args...), maxEventBytes)}
}

// Events are the events of the changes from one status to the next.
func Events(before, after *assayv1alpha1.BenchmarkRunStatus) []Event {
	var out []Event
	if after.Wave != nil && (before.Wave == nil || *before.Wave != *after.Wave) {
		out = append(out, event(corev1.EventTypeNormal, "WaveStarted", "wave %d started: execution %s, %d trials planned in all", *after.Wave,
			after.Execution, after.Trials.Planned))
	}
	for _, condition := range after.Conditions {
		old := meta.FindStatusCondition(before.Conditions, condition.Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		if kind := eventType(condition, old); kind != "" {
			out = append(out, event(kind, condition.Reason, "%s", condition.Message))
		}
	}
	return out
}

// warnings are the reasons of a run that does not progress without an intervention.
var warnings = []string{
	assayv1alpha1.ReasonNoNodeMatches, assayv1alpha1.ReasonWaitingForNode, assayv1alpha1.ReasonImageNotPulled,
	assayv1alpha1.ReasonPodNotEnding, assayv1alpha1.ReasonPodNotStarted, assayv1alpha1.ReasonPodKept, assayv1alpha1.ReasonWriteFailed,
	assayv1alpha1.ReasonBudgetExhausted, assayv1alpha1.ReasonEngineMissing, assayv1alpha1.ReasonEngineTooOld, assayv1alpha1.ReasonLedgerFull,
}

// eventType is the type of event for a change of a condition; empty for a change without an event.
func eventType(condition metav1.Condition, old *metav1.Condition) string {
	isTrue := condition.Status == metav1.ConditionTrue
	switch of := condition.Type; {
	case of == assayv1alpha1.ConditionAccepted && isTrue,
		of == assayv1alpha1.ConditionLedgerReady && isTrue && old != nil,
		of == assayv1alpha1.ConditionSuspended && (isTrue || old != nil),
		of == assayv1alpha1.ConditionProgressing && condition.Reason == assayv1alpha1.ReasonWaitingForTurn,
		of == assayv1alpha1.ConditionComplete:
		return corev1.EventTypeNormal
	case of == assayv1alpha1.ConditionAccepted,
		of == assayv1alpha1.ConditionLedgerReady && !isTrue,
		of == assayv1alpha1.ConditionProgressing && slices.Contains(warnings, condition.Reason),
		of == assayv1alpha1.ConditionFailed:
		return corev1.EventTypeWarning
	}
	return ""
}

// PodEvents warn when the status begins to report blocks without exclusive CPUs.
func PodEvents(world *observe.World, after *assayv1alpha1.BenchmarkRunStatus) []Event {
	demoted := world.Demoted()
	reports := func(status *assayv1alpha1.BenchmarkRunStatus) bool {
		condition := meta.FindStatusCondition(status.Conditions, assayv1alpha1.ConditionProgressing)
		return condition != nil && strings.Contains(condition.Message, demoted)
	}
	if demoted == "" || reports(&world.Run.Status) || !reports(after) {
		return nil
	}
	return []Event{event(corev1.EventTypeWarning, "CPUsNotExclusive", "%s", demoted)}
}

// AcceptanceEvents warn once, when a run is accepted, of requests that no block can meet.
func AcceptanceEvents(before, after *assayv1alpha1.BenchmarkRunStatus, spec *assayv1alpha1.BenchmarkRunSpec) []Event {
	if meta.IsStatusConditionTrue(before.Conditions, assayv1alpha1.ConditionAccepted) ||
		!meta.IsStatusConditionTrue(after.Conditions, assayv1alpha1.ConditionAccepted) {
		return nil
	}
	var out []Event
	for _, warning := range experiment.EnvironmentWarnings(ptr.Deref(spec.Environment, assayv1alpha1.Environment{}).Require) {
		out = append(out, event(corev1.EventTypeWarning, "RequirementUnknown", "%s", warning))
	}
	return out
}
