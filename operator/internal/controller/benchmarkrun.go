// Package controller reconciles BenchmarkRuns.
package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/argo"
	"assay.dev/assay/operator/internal/metrics"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/status"
)

// What the operator may do: with nodes everywhere, and with all else in each namespace of --namespaces, which the namespace of the
// markers stands for. What it may do in its own namespace, with Leases, is in config/rbac/leader_election_role.yaml and
// config/rbac/leases_role.yaml; which of its writes to nodes are taken at all is in config/rbac/nodes_policy.yaml.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns/status,verbs=patch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns/finalizers,verbs=update
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarktemplates,verbs=list;watch
// +kubebuilder:rbac:namespace=runs,groups=argoproj.io,resources=workflows,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:namespace=runs,groups="",resources=configmaps,verbs=get;create;patch
// +kubebuilder:rbac:namespace=runs,groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:namespace=runs,groups="",resources=events,verbs=create;patch

// Reconciler turns a BenchmarkRun into waves until it has its verdict.
type Reconciler struct {
	// Cache and Live read the run; a status is never computed from one that was replaced. See readRun.
	Cache, Live client.Reader
	Observer    *observe.Observer
	Applier     *apply.Applier
	Recorder    record.EventRecorder
	Settings    plan.Settings
	// Argo says when workflows can be watched.
	Argo  *argo.Monitor
	Clock clock.PassiveClock
	// Metrics may be nil.
	Metrics *metrics.Metrics

	latest     latestRuns
	expansions expansions
	queues     queues
	turns      turns
}

// Reconcile observes, plans, applies and, whatever came of that, reports.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	began := r.Clock.Now()
	run, err := r.readRun(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	found := r.Clock.Now()
	world, err := r.Observer.Observe(ctx, run)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}
	r.Metrics.Saw(world)
	done, err := r.noteExpansion(ctx, world)
	if err != nil {
		return r.result(plan.Decision{}, client.IgnoreNotFound(err))
	}
	observed := r.Clock.Now()
	r.queues.of(world, r.Settings, observed)
	decision, err := r.decide(ctx, world, observed)
	done()
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("count runs under way: %w", err)
	}
	err = r.apply(ctx, run, decision.Action)
	applied := r.Clock.Now()
	if errors.Is(err, apply.ErrUnfinished) {
		decision.Continues, decision.After, err = true, plan.AtOnce, nil
	}
	dashboardDue, reportErr := r.report(ctx, world, decision, err)
	if dashboardDue {
		decision.After = plan.AtOnce
	}
	if reported := r.Clock.Now(); reported.Sub(began) > slowPass {
		ctrl.LoggerFrom(ctx).Info("Slow reconcile", "action", fmt.Sprint(decision.Action), "read", found.Sub(began).String(),
			"observe", observed.Sub(found).String(), "apply", applied.Sub(observed).String(), "report", reported.Sub(applied).String())
	}
	return r.result(decision, errors.Join(err, reportErr))
}

// slowPass is when a pass over a run is worth a line that says where its time went.
const slowPass = 100 * time.Millisecond

func (r *Reconciler) apply(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.Action) error {
	if action == nil {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Applying", "action", action.String())
	r.latest.forget(client.ObjectKeyFromObject(run)) // Some actions write the run.
	if err := r.Applier.Do(ctx, run, action); err != nil {
		return err
	}
	switch taken := action.(type) {
	case plan.AcquireLeases:
		r.Observer.Took(run, taken.Nodes)
	case plan.RetakeLeases:
		r.Observer.Took(run, taken.Nodes)
	}
	r.Metrics.Applied(run, action, r.Clock.Now())
	return nil
}

// report writes the status if it changed, and then says what happened. So that no pass is long, one whose action is
// followed up leaves that to the next, and one that wrote anything leaves it the run's dashboard, and says that it is due.
func (r *Reconciler) report(ctx context.Context, world *observe.World, decision plan.Decision, err error) (dashboardDue bool, _ error) {
	if err == nil {
		switch decision.Action.(type) {
		case plan.Release, plan.DeleteRun:
			return false, nil // There is no run any more to report on.
		}
		if decision.Continues {
			return false, nil
		}
	}
	outcome := status.Outcome{World: world, Decision: decision}
	var ledgerErr *apply.LedgerError
	switch {
	case errors.As(err, &ledgerErr):
		outcome.LedgerErr = err
	case err != nil && !apierrors.IsConflict(err):
		outcome.WriteErr = err
	}
	before := &world.Run.Status
	after := status.Compute(outcome, r.Clock.Now())
	if world.Run.DeletionTimestamp.IsZero() {
		after.Dashboard = r.Applier.Dashboards.Link(world.Run, &after)
	}
	changed := !equality.Semantic.DeepEqual(*before, after)
	if changed {
		written, err := r.Applier.Status(ctx, world.Run, &after)
		if err != nil {
			return false, client.IgnoreNotFound(fmt.Errorf("write status: %w", err))
		}
		r.latest.keep(written)
		r.reported(world, &after)
	}
	if due := r.Applier.DashboardDue(world.Run, &after); !due || changed || decision.Action != nil {
		return due, nil
	}
	r.dashboard(ctx, world.Run, &after)
	return false, nil
}

// reported counts and tells what a status that was written says for the first time.
func (r *Reconciler) reported(world *observe.World, after *assayv1alpha1.BenchmarkRunStatus) {
	before := &world.Run.Status
	r.Metrics.Reported(world, after)
	for _, event := range slices.Concat(status.Events(before, after), status.AcceptanceEvents(before, after, &world.Run.Spec), status.LeaseEvents(world, after)) {
		r.Recorder.Eventf(world.Run, event.Type, event.Reason, "%s", event.Message)
	}
}

// result says when to look again. A ledger that does not answer and a write that met another one are no errors of this
// program: they are in the status, or over in a moment.
func (r *Reconciler) result(decision plan.Decision, err error) (ctrl.Result, error) {
	var ledgerErr *apply.LedgerError
	switch {
	case errors.As(err, &ledgerErr):
		return ctrl.Result{RequeueAfter: r.Settings.LedgerRetry}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: plan.WatchSettles}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: decision.After}, nil
}
