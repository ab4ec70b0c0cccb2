package controller

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
)

// NodeReconciler gives nodes the taint that their lease asks for, and ends expired leases whose runs are over or gone. It only depends on
// the current objects, so that another operator can continue at any point.
type NodeReconciler struct{ Applier *apply.Applier }

// Reconcile reconciles one node with its lease.
func (r *NodeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := request.Name
	current, err := r.lease(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	if changed, err := r.Applier.Taint(ctx, node, current.Taint()); err != nil {
		return afterConflict(fmt.Errorf("taint node %s: %w", node, err))
	} else if changed {
		ctrl.LoggerFrom(ctx).Info("Changed the node's taint", "node", node, "holder", current.Holder.Run())
	}
	if !current.Held() {
		return ctrl.Result{}, nil
	}
	if left := current.Left(r.Applier.Clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	over, gone, err := r.over(ctx, current.Holder)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !over {
		// Its run renews the lease, or the next run in the queue takes over the node.
		return ctrl.Result{RequeueAfter: current.Duration}, nil
	}
	if gone {
		// A run that is deleted without its finalizer may leave executions behind that no other controller stops.
		if err := r.Applier.DeleteOrphans(ctx, current.Holder); err != nil {
			return afterForbidden(err)
		}
	}
	if err := r.Applier.Reclaim(ctx, node); err != nil && !apierrors.IsConflict(err) {
		return afterForbidden(err)
	}
	return ctrl.Result{RequeueAfter: current.Duration}, nil
}

// unreadableInterval is how often the holder of an expired lease is looked for in a namespace that this operator may not read. It ends once
// the namespace is gone.
const unreadableInterval = 10 * time.Second

func afterForbidden(err error) (ctrl.Result, error) {
	if apierrors.IsForbidden(err) {
		return ctrl.Result{RequeueAfter: unreadableInterval}, nil
	}
	return ctrl.Result{}, err
}

func afterConflict(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: plan.WatchSettles}, nil
	}
	return ctrl.Result{}, err
}

func (r *NodeReconciler) lease(ctx context.Context, node string) (lease.Lease, error) {
	var object coordinationv1.Lease
	key := types.NamespacedName{Namespace: r.Applier.Lease.Namespace, Name: lease.Name(node)}
	if err := r.Applier.Live.Get(ctx, key, &object); err != nil {
		return lease.Lease{Node: node}, client.IgnoreNotFound(err)
	}
	return lease.FromObject(&object)
}

// over reports whether a run will never need its lease again, and whether that is because it is gone.
func (r *NodeReconciler) over(ctx context.Context, holder lease.Holder) (over, gone bool, err error) {
	var run assayv1alpha1.BenchmarkRun
	err = r.Applier.Live.Get(ctx, types.NamespacedName{Namespace: holder.Namespace, Name: holder.Name}, &run)
	switch {
	case apierrors.IsNotFound(err):
		return true, true, nil
	case apierrors.IsForbidden(err):
		return false, false, nil // It is in a namespace that this operator does not watch.
	case err != nil:
		return false, false, err
	}
	gone = string(run.UID) != holder.UID
	return gone || plan.Ended(&run), gone, nil
}

// SetupWithManager watches leases, and nodes whose lease taint changed, such as one that was restored with an old taint.
func (r *NodeReconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("nodelease").
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(nodeOfLease), builder.WithPredicates(holderChanged)).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(leaseTaintChanged)).
		Complete(r)
}

func nodeOfLease(_ context.Context, object client.Object) []ctrl.Request {
	node := object.GetAnnotations()[lease.NodeAnnotation]
	if node == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: node}}}
}

// leaseTaintChanged ignores changes that do not concern the lease taint.
var leaseTaintChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return leaseTaint(e.Object) != "" },
	UpdateFunc: func(e event.UpdateEvent) bool { return leaseTaint(e.ObjectOld) != leaseTaint(e.ObjectNew) },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

func leaseTaint(object client.Object) string {
	text := ""
	for _, taint := range object.(*corev1.Node).Spec.Taints {
		if taint.Key == lease.TaintKey {
			text += taint.ToString() + " "
		}
	}
	return text
}
