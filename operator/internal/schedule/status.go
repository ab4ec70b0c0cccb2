package schedule

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/record"
)

// Outcome is the result of an action.
type Outcome struct {
	// Err is the error of the action, and Reason its category. History reports whether the history caused it.
	Err     error
	Reason  string
	History bool
	// UID of the created run.
	UID string
	// Measured reports whether a run added a point, and Suspicion is the change for which a confirming run became due.
	Measured  bool
	Suspicion string
	// Locating is the change to locate next.
	Locating string
}

// maxMessageBytes bounds the message of a condition.
const maxMessageBytes = 1024

// Status returns the status after a decision and its outcome.
func Status(o Observed, decision Decision, outcome Outcome, now time.Time) assayv1alpha1.BenchmarkScheduleStatus {
	out := *o.Schedule.Status.DeepCopy()
	if !o.Schedule.DeletionTimestamp.IsZero() {
		return out
	}
	out.ObservedGeneration, out.History = o.Schedule.Generation, o.History
	out.PendingRevisions = 0
	if o.Schedule.Spec.Source.Type == assayv1alpha1.RevisionSource {
		out.PendingRevisions = int32(len(o.pending()))
	}
	if !decision.Dealt.IsZero() {
		out.LastScheduleTime = ptr.To(metav1.NewTime(decision.Dealt))
		out.Missed += decision.Missed
	}
	out.NextScheduleTime = nil
	if !decision.Due.IsZero() {
		out.NextScheduleTime = ptr.To(metav1.NewTime(decision.Due))
	}
	if o.Confirmation != nil && o.Confirmation.Change == "" {
		out.Suspicion = "" // The suspicion has passed, or requires further points.
	}
	if o.Search != nil {
		out.Locating = o.Search.Change
	}
	if decision.Next != nil {
		give(&out, &decision)
	}
	if outcome.Err == nil {
		done(&out, decision.Action, outcome)
	}
	conditions(&out, o.Schedule.Generation, decision, outcome, now)
	return out
}

// give stores a number before any action.
func give(out *assayv1alpha1.BenchmarkScheduleStatus, decision *Decision) {
	next := decision.Next.DeepCopy()
	next.Gap = record.Truncate(next.Gap, maxMessageBytes)
	out.Next, out.LastSequence = next, next.Sequence
	out.Head, out.Suspicion = cmp.Or(decision.Head, out.Head), cmp.Or(next.Confirms, out.Suspicion)
	if next.Locates != "" {
		out.LastWave = next.Sequence
	}
}

// done applies an executed action to the status.
func done(out *assayv1alpha1.BenchmarkScheduleStatus, action Action, outcome Outcome) {
	over := func(sequence int64) {
		out.Active = slices.DeleteFunc(out.Active, func(r assayv1alpha1.ScheduledRun) bool { return r.Sequence == sequence })
		if out.Next != nil && out.Next.Sequence == sequence {
			out.Next = nil
		}
	}
	switch action := action.(type) {
	case Start:
		over(action.Next.Sequence)
		created := action.Next
		created.UID = outcome.UID
		out.Active = append(out.Active, created)
	case RecordGap:
		over(action.Run.Sequence)
		if action.Run.Confirms != "" {
			out.Suspicion = "" // The next point requests another run.
		}
	case Record:
		over(action.Run.Sequence)
		out.Suspicion = outcome.Suspicion
		out.Locating = cmp.Or(outcome.Locating, out.Locating)
		if outcome.Measured && action.Run.Confirms == "" {
			measured(out, &action.Run) // A wave has neither head nor anchor.
		}
	case Locate:
		out.Locating = outcome.Locating
	}
}

// measured updates the reference of the next run.
func measured(out *assayv1alpha1.BenchmarkScheduleStatus, run *assayv1alpha1.ScheduledRun) {
	out.Predecessor = cmp.Or(arm(run, points.Head), out.Predecessor)
	out.Anchor = cmp.Or(arm(run, points.NextAnchor), arm(run, points.Anchor), out.Anchor)
}

// Warning returns the reason and the message of an event if a schedule that started runs cannot start one now, or for another reason than
// before; empty otherwise, and for one that a user suspended.
func Warning(before, after *assayv1alpha1.BenchmarkScheduleStatus) (reason, message string) {
	condition := meta.FindStatusCondition(after.Conditions, assayv1alpha1.ConditionScheduled)
	if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason == assayv1alpha1.ReasonSuspended {
		return "", ""
	}
	old := meta.FindStatusCondition(before.Conditions, assayv1alpha1.ConditionScheduled)
	if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
		return "", ""
	}
	return condition.Reason, condition.Message
}

func conditions(out *assayv1alpha1.BenchmarkScheduleStatus, generation int64, decision Decision, outcome Outcome, now time.Time) {
	set := func(kind string, value bool, reason, message string) {
		status := metav1.ConditionFalse
		if value {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&out.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: record.Truncate(message, maxMessageBytes), ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	switch {
	case outcome.Err != nil && outcome.History:
		set(assayv1alpha1.ConditionRecorded, false, outcome.Reason, cannot(decision, outcome.Err))
	case outcome.Err != nil:
		set(assayv1alpha1.ConditionScheduled, false, outcome.Reason, cannot(decision, outcome.Err))
		return
	default:
		switch decision.Action.(type) {
		case Record, RecordGap:
			set(assayv1alpha1.ConditionRecorded, true, assayv1alpha1.ReasonRecorded, "all finished runs are in the history")
		}
	}
	if decision.Reason != "" {
		set(assayv1alpha1.ConditionScheduled, decision.Scheduled, decision.Reason, decision.Message)
	}
}

func cannot(decision Decision, err error) string {
	if decision.Action == nil {
		return "cannot read the history: " + err.Error()
	}
	return "cannot " + decision.Action.String() + ": " + err.Error()
}
