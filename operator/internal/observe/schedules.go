package observe

import (
	"context"
	"fmt"

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
	runs, err := runsOf(ctx, live, s)
	if err != nil {
		return out, err
	}
	for _, run := range runs {
		out.Runs = append(out.Runs, schedule.Run{
			Name: run.Name, UID: string(run.UID), Sequence: schedule.SequenceOf(s.Name, run.Name),
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
	out.Revisions, err = revisionsOf(ctx, live, s)
	return out, err
}

// revisionsPage is how many recorded revisions are held at a time: each is an object of up to a megabyte, whoever records them.
const revisionsPage = 50

// revisionsOf are the recorded revisions of a schedule's series, of those that the namespace has of any.
func revisionsOf(ctx context.Context, live client.Reader, s *assayv1alpha1.BenchmarkSchedule) ([]schedule.Recorded, error) {
	var out []schedule.Recorded
	for next := ""; ; {
		var page assayv1alpha1.BenchmarkRevisionList
		if err := live.List(ctx, &page, client.InNamespace(s.Namespace), client.Limit(revisionsPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list recorded revisions: %w", err)
		}
		for i := range page.Items {
			r := &page.Items[i]
			if r.Spec.Series != s.Spec.Series || !r.DeletionTimestamp.IsZero() {
				continue
			}
			recorded := schedule.Recorded{
				Name: r.Name, CreatedAt: r.CreationTimestamp.Time, Sequence: r.Status.Sequence,
				Revision: assayv1alpha1.Revision{Revision: r.Spec.Revision.Revision, Image: r.Spec.Image},
			}
			if r.Spec.ReportedAt != nil {
				recorded.ReportedAt = r.Spec.ReportedAt.Time
			}
			out = append(out, recorded)
		}
		if next = page.Continue; next == "" {
			return out, nil
		}
	}
}

// runsOf are the runs that a schedule owns. They are found by their label, which anybody may change who may change runs; those that matter
// most, which the history does not have yet, by their names as well.
func runsOf(ctx context.Context, live client.Reader, s *assayv1alpha1.BenchmarkSchedule) ([]*assayv1alpha1.BenchmarkRun, error) {
	var list assayv1alpha1.BenchmarkRunList
	if err := live.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels{schedule.ScheduleLabel: s.Name}); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	found := map[string]bool{}
	var out []*assayv1alpha1.BenchmarkRun
	add := func(run *assayv1alpha1.BenchmarkRun) {
		if !found[run.Name] && schedule.SequenceOf(s.Name, run.Name) != 0 && metav1.IsControlledBy(run, s) {
			found[run.Name] = true
			out = append(out, run)
		}
	}
	for i := range list.Items {
		add(&list.Items[i])
	}
	for _, active := range s.Status.Active {
		if found[active.Name] {
			continue
		}
		var run assayv1alpha1.BenchmarkRun
		err := live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: active.Name}, &run)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read BenchmarkRun %s: %w", active.Name, err)
		}
		if err == nil {
			add(&run)
		}
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
