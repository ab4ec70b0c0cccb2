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

// What the operator may do: with nodes everywhere, and with all else in each namespace of --namespaces, which the namespace of the
// markers stands for. What it may do in its own namespace, with Leases, is in config/rbac/leader_election_role.yaml and
// config/rbac/leases_role.yaml; which of its writes to nodes are taken at all is in config/rbac/nodes_policy.yaml.
// To execute runs is what config/rbac/runs_policy.yaml asks of who makes their workflows and pods.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns,verbs=get;list;watch;patch;delete;execute
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns/status,verbs=patch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns/finalizers,verbs=update
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarktemplates,verbs=get;list;watch
// +kubebuilder:rbac:namespace=runs,groups=argoproj.io,resources=workflows,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:namespace=runs,groups="",resources=configmaps,verbs=get;create;patch
// +kubebuilder:rbac:namespace=runs,groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:namespace=runs,groups="",resources=events,verbs=create;patch

// Reconciler turns a BenchmarkRun into waves until it has its verdict.
type Reconciler struct {
	// Observer also has what the run itself is read by; a status is never computed from one that was replaced. See readRun.
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
	// Whatever keeps this pass from its end, a panic too, takes the run out of the queue for nodes until one comes to it: it would be granted
	// a node in every pass of every other run, and never take it. Whoever writes a run may see to that, such as by making it so large that
	// the API server takes no finalizer.
	passes := false
	defer func() {
		if !passes {
			r.Observer.Memory.Note(run, func(n *observe.Notes) { n.Passive = true })
		}
	}()
	world, err := r.Observer.Observe(ctx, run)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}
	if world.Older {
		if err := r.sweep(ctx, request.NamespacedName, run.UID); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot delete what an earlier run of this name left") // Which this one waits for.
		}
	}
	r.Metrics.Observed(world)
	decision, err := r.decide(ctx, world)
	if err != nil {
		passes = apierrors.IsConflict(err)
		return again(plan.Decision{}, r.Settings, client.IgnoreNotFound(err))
	}
	defer func() {
		err = errors.Join(err, r.report(ctx, outcome(world, decision, err)))
		result, err = again(decision, r.Settings, err)
	}()
	err = r.apply(ctx, world.Run, decision.Action)
	passes = err == nil || apierrors.IsConflict(err)
	return ctrl.Result{}, err
}

// sweep deletes the workflows of runs that had a name before the run with a uid, if there is one now. Whoever deletes a run behind the
// operator's back may leave them behind: suspended ones would stay for ever, and no quota of runs would bound how many there are.
func (r *Reconciler) sweep(ctx context.Context, name client.ObjectKey, now types.UID) error {
	left, err := r.Observer.OrphanedHolders(ctx, name, now)
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

// outcome is the outcome of a decision. After a conflict nothing is reported as failed, and no run has ended: the next reconcile decides
// again. What was to end with the run, such as its workflow, goes on until then.
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
			// Whoever is to blame: what the operator goes on by must not depend on what it tells people.
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

// refused reports whether the API server will not take a status, however often it is sent. What is too large for etcd comes back as an
// error without a reason.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		err != nil && (strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "larger than max"))
}

// reported records metrics and events of what is new in a status that was written.
func (r *Reconciler) reported(world *observe.World, after *assayv1alpha1.BenchmarkRunStatus) {
	before := &world.Run.Status
	r.Metrics.Reported(world, after)
	for _, event := range slices.Concat(status.Events(before, after), status.AcceptanceEvents(before, after, &world.Run.Spec),
		status.LeaseEvents(world, after)) {
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
	return lookAgain(decision.LookAgain())
}

// lookAgain is the result of a pass that did all it had to.
func lookAgain(after time.Duration, due bool) (ctrl.Result, error) {
	if due {
		after = max(after, time.Nanosecond) // 0 would be not at all.
	}
	return ctrl.Result{RequeueAfter: after}, nil
}
