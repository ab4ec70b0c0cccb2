package observe

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/pages"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/schedule"
)

// Schedule reads the state of a schedule from the API server, past the caches: a run that was created or a revision that was marked a
// moment ago must not be missing. Only the other schedules are read from the cache. The watch delivers schedules in the order in which they
// were written, so that the cache has those before this one; reading thousands of schedules of a megabyte each for each of them would block
// the operator.
func Schedule(ctx context.Context, cache, live client.Reader, s *assayv1alpha1.BenchmarkSchedule) (schedule.Observed, error) {
	out := schedule.Observed{Schedule: s}
	var err error
	if out.Runs, err = runsOf(ctx, live, s); err != nil {
		return out, err
	}
	var others assayv1alpha1.BenchmarkScheduleList
	if err := cache.List(ctx, &others, client.InNamespace(s.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list schedules: %w", err)
	}
	if oldest := oldestOf(s, others.Items); oldest != s.Name {
		out.Rival = oldest
	}
	if !schedule.ReadsRevisions(s) {
		return out, nil
	}
	out.Revisions, err = revisionsOf(ctx, live, s)
	return out, err
}

// revisionsOf are the recorded revisions of a schedule's series, of those that the namespace has of any.
func revisionsOf(ctx context.Context, live client.Reader, s *assayv1alpha1.BenchmarkSchedule) ([]schedule.Recorded, error) {
	var out []schedule.Recorded
	err := pages.Each(ctx, live, &assayv1alpha1.BenchmarkRevisionList{}, s.Namespace, func(r *assayv1alpha1.BenchmarkRevision) {
		if r.Spec.Series != s.Spec.Series || !r.DeletionTimestamp.IsZero() {
			return
		}
		out = append(out, schedule.Recorded{
			Version: versionOf(r), Revision: r.Spec.Revision, CreatedAt: r.CreationTimestamp.Time, Sequence: r.Status.Sequence,
			ReportedAt: ptr.Deref(r.Spec.ReportedAt, metav1.MicroTime{}).Time,
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list recorded revisions: %w", err)
	}
	return out, nil
}

// runsOf are the runs that a schedule owns. They are found by their label, which every user who may change runs may change. The most
// important runs, which the history does not have yet, are also found by their names.
func runsOf(ctx context.Context, live client.Reader, s *assayv1alpha1.BenchmarkSchedule) ([]schedule.Run, error) {
	seen := map[string]bool{}
	var out []schedule.Run
	add := func(run *assayv1alpha1.BenchmarkRun) {
		sequence := schedule.SequenceOf(s.Name, run.Name)
		if seen[run.Name] || sequence == 0 || !metav1.IsControlledBy(run, s) {
			return
		}
		seen[run.Name] = true
		out = append(out, schedule.Run{
			Version: versionOf(run), Sequence: sequence,
			Ended: plan.Ended(run), Succeeded: run.Status.Phase == assayv1alpha1.PhaseSucceeded,
			Cancelled: plan.Cancelled(run), Deleting: !run.DeletionTimestamp.IsZero(),
		})
	}
	if err := pages.Each(ctx, live, &assayv1alpha1.BenchmarkRunList{}, s.Namespace, add,
		client.MatchingLabels{schedule.ScheduleLabel: s.Name}); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	for _, active := range s.Status.Active {
		if seen[active.Name] {
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

func versionOf(object client.Object) schedule.Version {
	return schedule.Version{Name: object.GetName(), UID: string(object.GetUID()), ResourceVersion: object.GetResourceVersion()}
}

// oldestOf returns which of a schedule and the others of its series measures. Only the name is retained, because the rest may be a
// megabyte.
func oldestOf(s *assayv1alpha1.BenchmarkSchedule, others []assayv1alpha1.BenchmarkSchedule) string {
	oldest := s
	for i := range others {
		other := &others[i]
		if other.Spec.Series == s.Spec.Series && other.DeletionTimestamp.IsZero() &&
			cmp.Or(other.CreationTimestamp.Compare(oldest.CreationTimestamp.Time), cmp.Compare(other.Name, oldest.Name)) < 0 {
			oldest = other
		}
	}
	return strings.Clone(oldest.Name)
}
