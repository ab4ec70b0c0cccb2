package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/schedule"
)

// ScheduledRun creates a run of a schedule and returns it as the API server has it. An existing run of the schedule with the same spec is
// returned. A run of another owner or with another spec is an error: users who may create runs may name any owner, and the measurements of
// such a run would become a point of the series.
func (a *Applier) ScheduledRun(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule,
	run *assayv1alpha1.BenchmarkRun) (*assayv1alpha1.BenchmarkRun, error) {
	created := run.DeepCopy()
	err := a.Client.Create(ctx, created, client.FieldOwner(FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return created, err
	}
	var current assayv1alpha1.BenchmarkRun
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(run), &current); err != nil {
		return nil, err
	}
	same := metav1.IsControlledBy(&current, s)
	if same {
		// The spec as the API server would store it, with its defaults and the namespace's mutations.
		asked := run.DeepCopy()
		asked.Name, asked.GenerateName = "", run.Name+"-"
		if err := a.Client.Create(ctx, asked, client.DryRunAll); err != nil {
			return nil, err
		}
		same = equality.Semantic.DeepEqual(unchanging(current.Spec), unchanging(asked.Spec))
	}
	if !same {
		return nil, &ForeignError{text: fmt.Sprintf("BenchmarkRun %s in namespace %s exists and is not this schedule's: delete it, or create "+
			"this schedule under another name", run.Name, run.Namespace)}
	}
	return &current, nil
}

// unchanging returns a spec without the fields of a run that may change.
func unchanging(spec assayv1alpha1.BenchmarkRunSpec) assayv1alpha1.BenchmarkRunSpec {
	spec.Suspend, spec.Cancel, spec.TTLSecondsAfterFinished = nil, nil, nil
	return spec
}

// ChangeEvent is an event about a change of a series. Its name is derived from the change, so that repeating an interrupted write creates
// no second event.
type ChangeEvent struct{ Name, Type, Reason, Message string }

// ChangeEvent records an event about a change.
func (a *Applier) ChangeEvent(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, of ChangeEvent, at time.Time) error {
	const most = 1024 // That the API server takes.
	stamp := metav1.NewTime(at)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "." + of.Name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: assayv1alpha1.GroupVersion.String(), Kind: "BenchmarkSchedule", Namespace: s.Namespace, Name: s.Name, UID: s.UID,
		},
		Type: of.Type, Reason: of.Reason, Message: record.Truncate(of.Message, most), Source: corev1.EventSource{Component: FieldOwner},
		ReportingController: FieldOwner, FirstTimestamp: stamp, LastTimestamp: stamp, Count: 1,
	}
	return client.IgnoreAlreadyExists(a.Client.Create(ctx, event))
}

// MarkRevisions records which run measured or skipped recorded revisions. A deleted revision is ignored.
func (a *Applier) MarkRevisions(ctx context.Context, namespace string, marks []schedule.Mark) error {
	for _, mark := range marks {
		target := object("BenchmarkRevision", namespace, mark.Of)
		target.Object["status"] = map[string]any{"sequence": mark.Sequence, "measured": mark.Measured}
		err := a.Client.Status().Patch(ctx, target, client.Apply, client.FieldOwner(FieldOwner), client.ForceOwnership)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("mark BenchmarkRevision %s: %w", mark.Of.Name, err)
		}
	}
	return nil
}

// object identifies an object without any other field. A version without a uid or a resource version matches any.
func object(kind, namespace string, version schedule.Version) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(assayv1alpha1.GroupVersion.WithKind(kind))
	out.SetNamespace(namespace)
	out.SetName(version.Name)
	out.SetUID(types.UID(version.UID))
	out.SetResourceVersion(version.ResourceVersion)
	return out
}

// CancelRun cancels a run of a schedule. It is a patch, because the operator does not own the spec of a run.
func (a *Applier) CancelRun(ctx context.Context, namespace string, run schedule.Run) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": run.UID, "resourceVersion": run.ResourceVersion}, "spec": map[string]any{"cancel": true},
	})
	if err != nil {
		return err
	}
	target := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: run.Name}}
	return client.IgnoreNotFound(a.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)))
}

// Delete deletes runs of a schedule, or recorded revisions: each as it was read, and none that was changed since.
func (a *Applier) Delete(ctx context.Context, kind, namespace string, versions []schedule.Version) error {
	var errs []error
	for _, version := range versions {
		asRead := client.Preconditions{UID: ptr.To(types.UID(version.UID)), ResourceVersion: &version.ResourceVersion}
		errs = append(errs, client.IgnoreNotFound(a.Client.Delete(ctx, object(kind, namespace, version), asRead)))
	}
	return errors.Join(errs...)
}

// ScheduleStatus writes the status of a schedule, the whole of it. It was computed from one version of the schedule and is refused as a
// conflict for any other: so a number is given by one operator only.
func (a *Applier) ScheduleStatus(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule,
	status *assayv1alpha1.BenchmarkScheduleStatus) error {
	version := schedule.Version{Name: s.Name, UID: string(s.UID), ResourceVersion: s.ResourceVersion}
	return a.replaceStatus(ctx, object("BenchmarkSchedule", s.Namespace, version), status)
}
