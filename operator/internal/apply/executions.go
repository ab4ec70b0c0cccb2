package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// writer writes the objects of an executor for one run, as long as the run is as it was when the action was decided.
type writer struct {
	*Applier
	// run is nil for a run that is gone, of which nothing is decided any more.
	run *assayv1alpha1.BenchmarkRun
	// wave is the wave that is being started; nil if none is.
	wave *record.Wave
}

func (a *Applier) writer(run *assayv1alpha1.BenchmarkRun) *writer {
	return &writer{Applier: a, run: run}
}

// check returns a conflict if the action is out of date. Before the first object of a wave it also adds the finalizer.
func (w *writer) check(ctx context.Context) error {
	if w.run == nil {
		return nil
	}
	if w.wave != nil {
		if _, err := w.inForce(ctx, w.run, w.wave); err != nil {
			return err
		}
		if err := w.addFinalizer(ctx, w.run); err != nil {
			return err
		}
	}
	_, err := w.asDecidedOn(ctx, w.run)
	return err
}

// Create creates an object unless it exists. An existing execution stays as it is, because its lanes may have been planned on other nodes
// than there are now.
func (w *writer) Create(ctx context.Context, object client.Object) error {
	live, err := w.live(ctx, object)
	if err != nil {
		return err
	}
	if live != nil {
		return w.own(ctx, w.run, object)
	}
	return w.Apply(ctx, object)
}

// Apply applies an object.
func (w *writer) Apply(ctx context.Context, object client.Object) error {
	if err := w.check(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, w.run, object); err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	return nil
}

// Delete deletes an object and, in the background, its dependents.
func (w *writer) Delete(ctx context.Context, object client.Object) error {
	if err := w.check(ctx); err != nil {
		return err
	}
	asRead := client.Preconditions{}
	if uid := object.GetUID(); uid != "" {
		asRead.UID = &uid
	}
	if version := object.GetResourceVersion(); version != "" {
		asRead.ResourceVersion = &version
	}
	err := w.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground), asRead)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	return nil
}

func executionOf(run *assayv1alpha1.BenchmarkRun, name string) executor.ID {
	return executor.ID{Namespace: run.Namespace, Name: name}
}

// suspend suspends or resumes an execution, unless the run asks for something else by now.
func (a *Applier) suspend(ctx context.Context, run *assayv1alpha1.BenchmarkRun, name string, suspend bool) error {
	live, err := a.asDecidedOn(ctx, run)
	if err != nil {
		return err
	}
	if live.Generation != run.Generation {
		return changedSince(live, run)
	}
	return a.Executor.Suspend(ctx, a.writer(run), executionOf(run, name), suspend)
}

// deleteExecutions deletes executions with their pods.
func (a *Applier) deleteExecutions(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.DeleteExecutions) error {
	for _, name := range action.Names {
		if err := a.Executor.Delete(ctx, a.writer(run), executionOf(run, name)); err != nil {
			return err
		}
	}
	return nil
}

// endPods deletes pods whose own containers have ended.
func (a *Applier) endPods(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.EndPods) error {
	for _, pod := range action.Pods {
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: pod.Name}}
		err := a.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(types.UID(pod.UID))})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// DeleteOrphans deletes the executions of a run that is gone, with their pods.
func (a *Applier) DeleteOrphans(ctx context.Context, gone lease.Holder) error {
	var run assayv1alpha1.BenchmarkRun
	err := a.Live.Get(ctx, client.ObjectKey{Namespace: gone.Namespace, Name: gone.Name}, &run)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get run %s: %w", gone.Run(), err)
	}
	if err == nil && string(run.UID) == gone.UID {
		return nil // The caller has read a stale cache.
	}
	var left []executor.ID
	err = a.Executor.Visit(ctx, executor.Query{Namespace: gone.Namespace, UID: gone.UID}, func(e executor.Execution) {
		if e.Managed && !e.Deleting {
			left = append(left, e.ID())
		}
	})
	if apierrors.IsForbidden(err) {
		if state, failed := observe.Namespace(ctx, a.Live, gone.Namespace); failed == nil && state != observe.NamespaceActive {
			return nil // Its executions are deleted with it.
		}
	}
	if err != nil {
		return fmt.Errorf("list executions of run %s, which is gone: %w", gone.Run(), err)
	}
	for _, execution := range left {
		ctrl.LoggerFrom(ctx).Info("Deleting an execution whose run is gone", "execution", execution.Name, "run", gone.Run())
		if err := a.Executor.Delete(ctx, a.writer(nil), execution); err != nil {
			return err
		}
	}
	return nil
}

// asDecidedOn returns the run as it is now, or a conflict if its status has changed or its deletion has started since the decision: an
// operator that lost its leadership without noticing must not undo the actions of its successor. Every action of the successor changes the
// status of the run, and its later writes change the version of the execution, which is read before this check.
//
// Labels and annotations decide nothing, and of the spec only suspend, cancel and the time to live can change. A user who updates them
// continuously must not block the operator: a decision on an older spec is late by one reconcile, and the next one uses the new spec.
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
