// Package controller reconciles BenchmarkRuns.
package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/metrics"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/status"
)

// The rights of the operator: cluster-wide for nodes, and for all other kinds in each namespace of --namespaces, for which the namespace of
// the markers is a placeholder. Its rights in its own namespace, for Leases, are in config/rbac/leader_election_role.yaml and
// config/rbac/leases_role.yaml; config/rbac/nodes_policy.yaml limits its writes to nodes. config/rbac/runs_policy.yaml requires the verb
// execute on runs for creating their workflows and pods.
// A namespace that is deleted takes its RoleBinding along before its runs, so that the rights to release them are cluster-wide too.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=assay.dev,resources=benchmarkruns,verbs=get;patch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns,verbs=get;list;watch;patch;delete;execute
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns/status,verbs=patch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns/finalizers,verbs=update
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarktemplates,verbs=get;list;watch
// +kubebuilder:rbac:namespace=runs,groups=argoproj.io,resources=workflows,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:namespace=runs,groups="",resources=configmaps,verbs=get;create;patch
// +kubebuilder:rbac:namespace=runs,groups="",resources=pods,verbs=list;watch;delete
// +kubebuilder:rbac:namespace=runs,groups="",resources=events,verbs=create;patch

// Reconciler turns a BenchmarkRun into waves until it has its verdict.
type Reconciler struct {
	// Observer also has the reader of runs; a status is never computed from a stale run. See readRun.
	Observer *observe.Observer
	Applier  *apply.Applier
	Recorder record.EventRecorder
	Settings plan.Settings
	// Executor is watched for changes of executions.
	Executor executor.Watched
	Metrics  *metrics.Metrics

	// expanding is held while an experiment is expanded, and beginning while a run is started in a namespace with a limit of runs.
	expanding, beginning sync.Mutex
}

// Reconcile observes a run, decides, acts and, whether or not the action succeeded, writes the status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	run, err := r.readRun(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.sweep(ctx, request.NamespacedName, "")
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	// If this reconcile fails or panics, drop the run from the node queue until a reconcile succeeds. Otherwise every other run would grant
	// it a node that it never acquires. A tenant can cause that, for example with a run so large that the API server rejects the finalizer.
	completed := false
	defer func() {
		if !completed {
			r.Observer.Memory.Note(run, func(n *observe.Notes) { n.Passive = true })
		}
	}()
	world, err := r.Observer.Observe(ctx, run)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}
	if world.EarlierRunDeleting {
		if err := r.sweep(ctx, request.NamespacedName, run.UID); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot delete the executions of an earlier run of this name") // This run waits for them.
		}
	}
	r.Metrics.Observed(world)
	decision, err := r.decide(ctx, world)
	if err != nil {
		completed = apierrors.IsConflict(err)
		return again(plan.Decision{}, r.Settings, client.IgnoreNotFound(err))
	}
	defer func() {
		if unstartable(decision.Action, err) {
			ctrl.LoggerFrom(ctx).Error(err, "The wave cannot be started: the run ends")
			decision, err = plan.CannotStart(err), nil
		}
		if !world.NamespaceEnding { // Nothing can be written but the finalizer.
			err = errors.Join(err, r.report(ctx, outcome(world, decision, err)))
		}
		result, err = again(decision, r.Settings, err)
	}()
	err = r.apply(ctx, world.Run, decision.Action)
	completed = err == nil || apierrors.IsConflict(err)
	return ctrl.Result{}, err
}

// sweep deletes the executions of earlier runs of a name. Current is the uid of the run that has the name now, empty without one. A run
// that is deleted without its finalizer may leave executions behind: suspended ones would never end, and the limit of runs would not count
// them.
func (r *Reconciler) sweep(ctx context.Context, name client.ObjectKey, current types.UID) error {
	left, err := r.Observer.OrphanedHolders(ctx, name, current)
	if err != nil {
		return fmt.Errorf("list executions of runs that are gone: %w", err)
	}
	var errs []error
	for _, gone := range left {
		errs = append(errs, r.Applier.DeleteOrphans(ctx, gone))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) apply(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.Action) error {
	if action == nil {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Applying", "action", action.String())
	defer r.Observer.Memory.Wrote(run, action)
	if err := r.Applier.Do(ctx, run, action); err != nil {
		return err
	}
	r.Metrics.Applied(run, action, r.Observer.Clock.Now())
	return nil
}

// unstartable reports whether an action that starts a wave failed for a reason that a repetition does not change. Then the run ends, and
// its nodes are released.
func unstartable(action plan.Action, err error) bool {
	switch action.(type) {
	case plan.AcquireLeases, plan.StartWave:
		return apply.Permanent(err)
	default:
		return false
	}
}

// outcome is the outcome of a decision. After a conflict no failure is reported and no run has ended, because the next reconcile decides
// again. An execution that was to end with the run continues until then.
func outcome(world *observe.World, decision plan.Decision, err error) status.Outcome {
	out := status.Outcome{World: world, Decision: decision}
	var ledgerErr *apply.LedgerError
	switch {
	case errors.As(err, &ledgerErr):
		out.LedgerErr = err
	case apierrors.IsConflict(err):
		out.Decision.Ending = nil
	case err != nil:
		out.WriteErr = err
	}
	return out
}

// report writes the status if it changed, and its events. The run's dashboard is written by a reconcile that has no action.
func (r *Reconciler) report(ctx context.Context, outcome status.Outcome) error {
	run := outcome.World.Run
	after := status.Compute(outcome, r.Observer.Clock.Now())
	if run.DeletionTimestamp.IsZero() {
		after.Dashboard = r.Applier.Dashboards.Link(run, &after)
	}
	if !equality.Semantic.DeepEqual(run.Status, after) {
		written, err := r.Applier.Status(ctx, run, &after)
		if refused(err) {
			// The fields that decisions read must be written even if the messages for users cannot be.
			ctrl.LoggerFrom(ctx).Error(err, "The API server refuses the status: it is written without results")
			after = status.Least(run.Status, after, err)
			written, err = r.Applier.Status(ctx, run, &after)
		}
		if err != nil {
			return client.IgnoreNotFound(fmt.Errorf("write status: %w", err))
		}
		r.Observer.Memory.KeepRun(written)
		r.reported(outcome.World, &after)
	}
	if outcome.Decision.Action == nil {
		r.dashboard(ctx, run, &after)
	}
	return nil
}

// refused reports whether the API server rejects a status permanently. A status that exceeds the limit of etcd is an error without a
// reason.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		err != nil && (strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "larger than max"))
}

// reported records metrics and events of the changes in a status that was written.
func (r *Reconciler) reported(world *observe.World, after *assayv1alpha1.BenchmarkRunStatus) {
	before := &world.Run.Status
	r.Metrics.Reported(world, after)
	for _, event := range slices.Concat(status.Events(before, after), status.AcceptanceEvents(before, after, &world.Run.Spec),
		status.LeaseEvents(world, after), status.PodEvents(world, after)) {
		r.Recorder.Eventf(world.Run, event.Type, event.Reason, "%s", event.Message)
	}
}

// dashboard writes the run's dashboard if it differs from the one that was written last. A failure is an event, and is tried again by the
// next reconcile unless it is known to be permanent; no run waits for its dashboard.
func (r *Reconciler) dashboard(ctx context.Context, run *assayv1alpha1.BenchmarkRun, after *assayv1alpha1.BenchmarkRunStatus) {
	pin, wanted := r.Applier.Dashboards.Pin(run, after)
	if !wanted || !run.DeletionTimestamp.IsZero() || r.Observer.Memory.Dashboard(run.UID, pin) {
		return
	}
	err := r.Applier.Dashboard(ctx, run, pin)
	if err == nil || apply.InVain(err) {
		r.Observer.Memory.KeepDashboard(run.UID, pin)
	}
	if err != nil && ctx.Err() == nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot write the run's dashboard")
		r.Recorder.Eventf(run, corev1.EventTypeWarning, "DashboardNotWritten", "cannot write the run's dashboard: %v", err)
	}
}

// again is the result of a reconcile. An unreachable ledger and a conflict are not returned as errors, which would count as failed
// reconciles: the first is in the status, and the second is resolved by reconciling again.
func again(decision plan.Decision, settings plan.Settings, err error) (ctrl.Result, error) {
	if _, away := errors.AsType[*apply.LedgerError](err); away {
		return ctrl.Result{RequeueAfter: settings.LedgerRetry}, nil
	}
	if err != nil {
		return afterConflict(err)
	}
	return requeue(decision.RequeueAfter())
}

// requeue builds the result of a successful reconcile.
func requeue(after time.Duration, due bool) (ctrl.Result, error) {
	if due {
		after = max(after, time.Nanosecond) // 0 would be not at all.
	}
	return ctrl.Result{RequeueAfter: after}, nil
}
