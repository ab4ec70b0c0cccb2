package controller

import (
	"context"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	runnable "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// ConcurrentRuns is how many runs are reconciled concurrently: a reconcile mostly waits for the object store.
const ConcurrentRuns = 4

// SetupWithManager watches everything that decisions depend on, except the ledger, which cannot be watched.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	built, err := ctrl.NewControllerManagedBy(manager).
		Named("benchmarkrun").
		WithOptions(controllerOptions(ConcurrentRuns)).
		// Only this controller writes the status.
		For(&assayv1alpha1.BenchmarkRun{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(runOf)).
		Watches(&assayv1alpha1.BenchmarkTemplate{}, handler.EnqueueRequestsFromMapFunc(r.runsOfTemplate)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.activeRuns), builder.WithPredicates(nodeChanged)).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(r.runsOfLease), builder.WithPredicates(holderChanged)).
		Build(timed{r, r.Observer.Clock})
	if err != nil {
		return err
	}
	return manager.Add(runnable.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-r.Executor.Ready():
			return built.Watch(r.Executor.Source(manager.GetCache(), handler.EnqueueRequestsFromMapFunc(runOf)))
		}
	}))
}

// runOf returns the run of a pod or an execution, according to its labels.
func runOf(_ context.Context, object client.Object) []ctrl.Request {
	name := object.GetLabels()[executor.RunLabel]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// runsOfTemplate returns the runs that wait for a template. A run that is accepted has its own copy.
func (r *Reconciler) runsOfTemplate(ctx context.Context, template client.Object) []ctrl.Request {
	return r.requests(ctx, func(run *assayv1alpha1.BenchmarkRun) bool {
		return run.Status.Experiment == "" && run.Spec.TemplateRef != nil && run.Spec.TemplateRef.Name == template.GetName()
	}, client.InNamespace(template.GetNamespace()))
}

// activeRuns returns the runs that a change of a node may concern: all that have not ended.
func (r *Reconciler) activeRuns(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.requests(ctx, func(*assayv1alpha1.BenchmarkRun) bool { return true })
}

// runsOfLease returns the runs that a change of a lease may concern: those without a node, and those whose status lists the node.
func (r *Reconciler) runsOfLease(ctx context.Context, object client.Object) []ctrl.Request {
	node := object.GetAnnotations()[lease.NodeAnnotation]
	return r.requests(ctx, func(run *assayv1alpha1.BenchmarkRun) bool {
		return len(run.Status.Leases) == 0 ||
			slices.ContainsFunc(run.Status.Leases, func(l assayv1alpha1.LeaseStatus) bool { return l.Node == node })
	})
}

// holderChanged ignores renewals.
var holderChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*coordinationv1.Lease), e.ObjectNew.(*coordinationv1.Lease)
		return ptr.Deref(before.Spec.HolderIdentity, "") != ptr.Deref(after.Spec.HolderIdentity, "") ||
			ptr.Deref(before.Spec.LeaseTransitions, 0) != ptr.Deref(after.Spec.LeaseTransitions, 0)
	},
}

func (r *Reconciler) requests(ctx context.Context, wanted func(*assayv1alpha1.BenchmarkRun) bool,
	options ...client.ListOption) []ctrl.Request {
	var runs assayv1alpha1.BenchmarkRunList
	if err := r.Observer.Client.List(ctx, &runs, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the runs that an event may concern")
		return nil
	}
	var out []ctrl.Request
	for i := range runs.Items {
		run := &runs.Items[i]
		if !plan.Ended(run) && wanted(run) {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)})
		}
	}
	return out
}

// nodeChanged ignores heartbeats.
var nodeChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
		return observe.Ready(before).Status != observe.Ready(after).Status ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
			!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
	},
}
