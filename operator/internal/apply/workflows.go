package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// createWorkflow starts a workflow once. One that runs already is left as it is: its lanes may have been planned on
// other nodes than there are now.
func (a *Applier) createWorkflow(ctx context.Context, run *assayv1alpha1.BenchmarkRun, wanted *argo.Workflow) error {
	var live argo.Workflow
	err := a.Live.Get(ctx, client.ObjectKeyFromObject(wanted), &live)
	if err == nil {
		return a.own(ctx, run, wanted)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("look for workflow %s: %w", wanted.Name, err)
	}
	if _, err := a.asDecidedOn(ctx, run); err != nil {
		return err
	}
	return a.applyWorkflow(ctx, run, wanted)
}

func (a *Applier) applyWorkflow(ctx context.Context, run *assayv1alpha1.BenchmarkRun, wanted *argo.Workflow) error {
	if err := a.apply(ctx, run, wanted); err != nil {
		return fmt.Errorf("apply workflow %s: %w", wanted.Name, err)
	}
	return nil
}

// suspend suspends or resumes a workflow, unless the run asks for something else by now.
func (a *Applier) suspend(ctx context.Context, run *assayv1alpha1.BenchmarkRun, name string, suspend bool) error {
	live, err := a.asDecidedOn(ctx, run)
	if err != nil {
		return err
	}
	if live.Generation != run.Generation {
		return changedSince(live, run)
	}
	return a.editWorkflow(ctx, run, name, func(live *argo.Workflow) { live.Spec.Suspend = ptr.To(suspend) })
}

// editWorkflow applies a workflow as it is, with a change. The types hold exactly the fields that Assay writes.
func (a *Applier) editWorkflow(ctx context.Context, run *assayv1alpha1.BenchmarkRun, name string, edit func(*argo.Workflow)) error {
	var live argo.Workflow
	err := a.Live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, &live)
	if apierrors.IsNotFound(err) {
		return nil // The next pass sees that it is gone.
	}
	if err != nil {
		return fmt.Errorf("look for workflow %s: %w", name, err)
	}
	wanted := &argo.Workflow{
		TypeMeta: metav1.TypeMeta{APIVersion: argo.GroupVersion.String(), Kind: "Workflow"},
		// Against this version: of two operators that do not know of each other, the second is refused.
		ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name, UID: live.UID, ResourceVersion: live.ResourceVersion,
			Labels: argo.OwnLabels(live.Labels), Annotations: argo.OwnAnnotations(live.Annotations)},
		Spec: live.Spec,
	}
	edit(wanted)
	if _, err := a.asDecidedOn(ctx, run); err != nil {
		return err
	}
	return a.applyWorkflow(ctx, run, wanted)
}

// deleteWorkflows deletes workflows. Their pods go with them, whether or not Argo's controller runs.
func (a *Applier) deleteWorkflows(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.DeleteWorkflows) error {
	for _, name := range action.Names {
		object := &argo.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: name}}
		var live metav1.PartialObjectMetadata
		live.SetGroupVersionKind(argo.GroupVersion.WithKind("Workflow"))
		err := a.Live.Get(ctx, client.ObjectKeyFromObject(object), &live)
		if apierrors.IsNotFound(err) {
			continue // Where Argo's API is gone, so are its workflows.
		}
		if err != nil {
			return fmt.Errorf("look for workflow %s: %w", name, err)
		}
		if _, err := a.asDecidedOn(ctx, run); err != nil {
			return err
		}
		if err := client.IgnoreNotFound(a.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground),
			client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})); err != nil {
			return fmt.Errorf("delete workflow %s: %w", name, err)
		}
	}
	return nil
}

// DeleteOrphans deletes the workflows of a run that is gone. Their pods go with them.
func (a *Applier) DeleteOrphans(ctx context.Context, gone lease.Holder) error {
	var run assayv1alpha1.BenchmarkRun
	err := a.Live.Get(ctx, client.ObjectKey{Namespace: gone.Namespace, Name: gone.Name}, &run)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for run %s: %w", gone.Run(), err)
	}
	if err == nil && string(run.UID) == gone.UID {
		return nil // Whoever took it for gone has read a cache that is behind.
	}
	var left []argo.Workflow
	err = observe.Each(ctx, a.Live, &argo.WorkflowList{}, gone.Namespace, func(flow *argo.Workflow) {
		if flow.DeletionTimestamp.IsZero() {
			left = append(left, argo.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: flow.Namespace, Name: flow.Name, UID: flow.UID}})
		}
	}, client.MatchingLabels{argo.ManagedByLabel: argo.ManagedBy, argo.RunUIDLabel: gone.UID})
	// Where Argo's API is gone, so are its workflows.
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("list workflows of run %s, which is gone: %w", gone.Run(), err)
	}
	for i := range left {
		object := &left[i]
		ctrl.LoggerFrom(ctx).Info("Deleting a workflow whose run is gone", "workflow", object.Name, "run", gone.Run())
		if err := client.IgnoreNotFound(a.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground),
			client.Preconditions{UID: &object.UID})); err != nil {
			return fmt.Errorf("delete workflow %s: %w", object.Name, err)
		}
	}
	return nil
}

// asDecidedOn returns the run as it is now, or a conflict if its status differs, or if it is being deleted since: an operator that does not
// lead any more, and does not know it yet, must not undo what its successor did. What the successor does has the run's status change, and
// what it writes after this look changes the version of the workflow, which is read before it.
//
// Labels and annotations decide nothing, and of the run's spec only suspend, cancel and the time to live can change. Whoever may write them
// must not keep the operator from acting by doing so again and again: what was decided on another spec is late by one pass, and the next
// one decides on this.
func (a *Applier) asDecidedOn(ctx context.Context, run *assayv1alpha1.BenchmarkRun) (*assayv1alpha1.BenchmarkRun, error) {
	var live assayv1alpha1.BenchmarkRun
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(run), &live); err != nil {
		return nil, fmt.Errorf("look for run %s: %w", run.Name, err)
	}
	same := live.UID == run.UID && (live.ResourceVersion == run.ResourceVersion ||
		live.DeletionTimestamp.IsZero() == run.DeletionTimestamp.IsZero() && equality.Semantic.DeepEqual(live.Status, run.Status))
	if same {
		return &live, nil
	}
	return nil, changedSince(&live, run)
}

func changedSince(live, run *assayv1alpha1.BenchmarkRun) error {
	return apierrors.NewConflict(assayv1alpha1.GroupVersion.WithResource("benchmarkruns").GroupResource(), run.Name,
		fmt.Errorf("it has version %s and uid %s, and version %s and uid %s was decided on", live.ResourceVersion, live.UID,
			run.ResourceVersion, run.UID))
}
