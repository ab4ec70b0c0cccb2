package observe

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/schedule"
)

// Schedule reads what is known of a schedule without asking anybody but the API server, past the caches: a run that was created or a
// revision that was marked a moment ago must not be missing.
func Schedule(ctx context.Context, live client.Reader, s *assayv1alpha1.BenchmarkSchedule) (schedule.Observed, error) {
	out := schedule.Observed{Schedule: s}
	here := client.InNamespace(s.Namespace)
	var runs assayv1alpha1.BenchmarkRunList
	if err := live.List(ctx, &runs, here, client.MatchingLabels{schedule.ScheduleLabel: s.Name}); err != nil {
		return out, fmt.Errorf("list runs: %w", err)
	}
	for i := range runs.Items {
		run := &runs.Items[i]
		if !metav1.IsControlledBy(run, s) {
			continue
		}
		sequence, err := strconv.ParseInt(run.Labels[schedule.SequenceLabel], 10, 64)
		if err != nil {
			continue // Somebody gave it another label: status.active has its number.
		}
		out.Runs = append(out.Runs, schedule.Run{
			Name: run.Name, UID: string(run.UID), Sequence: sequence,
			Ended: plan.Ended(run), Succeeded: run.Status.Phase == assayv1alpha1.PhaseSucceeded,
			Cancelled: plan.Cancelled(run), Deleting: !run.DeletionTimestamp.IsZero(),
		})
	}
	var schedules assayv1alpha1.BenchmarkScheduleList
	if err := live.List(ctx, &schedules, here); err != nil {
		return out, fmt.Errorf("list schedules: %w", err)
	}
	out.Rival = rival(s, schedules.Items)
	if s.Spec.Source.Type != assayv1alpha1.RevisionSource {
		return out, nil
	}
	var revisions assayv1alpha1.BenchmarkRevisionList
	if err := live.List(ctx, &revisions, here); err != nil {
		return out, fmt.Errorf("list recorded revisions: %w", err)
	}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		if r.Spec.Series != s.Spec.Series || !r.DeletionTimestamp.IsZero() {
			continue
		}
		recorded := schedule.Recorded{Name: r.Name, Revision: r.Spec.Revision, CreatedAt: r.CreationTimestamp.Time, Sequence: r.Status.Sequence}
		if r.Spec.ReportedAt != nil {
			recorded.ReportedAt = r.Spec.ReportedAt.Time
		}
		out.Revisions = append(out.Revisions, recorded)
	}
	return out, nil
}

// rival is the oldest schedule of the same series that is older than this one; empty where there is none.
func rival(s *assayv1alpha1.BenchmarkSchedule, all []assayv1alpha1.BenchmarkSchedule) string {
	older := func(a, b *assayv1alpha1.BenchmarkSchedule) bool {
		if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
			return a.CreationTimestamp.Before(&b.CreationTimestamp)
		}
		return a.Name < b.Name
	}
	oldest := s
	for i := range all {
		other := &all[i]
		if other.Spec.Series == s.Spec.Series && other.DeletionTimestamp.IsZero() && older(other, oldest) {
			oldest = other
		}
	}
	if oldest.Name == s.Name {
		return ""
	}
	return oldest.Name
}
