package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/history/scheduled"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/schedule"
)

// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkschedules,verbs=get;list;watch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkschedules/status,verbs=patch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkrevisions,verbs=list;watch;delete
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkrevisions/status,verbs=patch
// +kubebuilder:rbac:namespace=runs,groups=assay.dev,resources=benchmarkruns,verbs=create

// ScheduleReconciler creates the runs of BenchmarkSchedules, and adds their results to the series.
type ScheduleReconciler struct {
	// Cache reads schedules without the fields that only their own reconcile needs.
	Cache    client.Reader
	Applier  *apply.Applier
	History  *scheduled.History
	Recorder record.EventRecorder
	// Retry is when a history is asked again that did not answer.
	Retry time.Duration
}

// Reconcile observes a schedule, decides, executes one action and reports, also after a failure.
func (r *ScheduleReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var s assayv1alpha1.BenchmarkSchedule
	if err := r.Applier.Live.Get(ctx, request.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	observed, err := observe.Schedule(ctx, r.Cache, r.Applier.Live, &s)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}
	observed.History = r.History.URL(&s)
	// The API server keeps seconds.
	now := r.History.Clock.Now().Truncate(time.Second)
	decision, outcome := r.decide(ctx, &observed, now)
	if outcome.Err == nil && decision.Action != nil {
		ctrl.LoggerFrom(ctx).Info("Applying", "action", decision.Action.String())
		outcome = r.act(ctx, &s, decision.Action)
	}
	after := schedule.Status(observed, decision, outcome, now)
	if !equality.Semantic.DeepEqual(s.Status, after) {
		if err := r.Applier.ScheduleStatus(ctx, &s, &after); err != nil {
			return afterConflict(client.IgnoreNotFound(fmt.Errorf("write status: %w", err)))
		}
		r.tell(&s, &after, decision, outcome)
	}
	return r.again(decision, outcome)
}

// decide makes a decision, and observes its inputs until it can.
func (r *ScheduleReconciler) decide(ctx context.Context, observed *schedule.Observed, now time.Time) (schedule.Decision, schedule.Outcome) {
	for {
		decision := schedule.Decide(*observed, now)
		var err error
		switch decision.Needs {
		case schedule.NeedsNothing:
			return decision, schedule.Outcome{}
		case schedule.NeedsImage:
			source := observed.Schedule.Spec.Source
			image := r.History.Images.Resolve(ctx, cmp.Or(source.Image, source.Time).Name)
			observed.Image = &image
		case schedule.NeedsPast:
			observed.Past, err = r.History.Past(ctx, observed.Schedule)
		case schedule.NeedsConfirmation:
			observed.Confirmation, err = r.History.Due(ctx, observed.Schedule)
		case schedule.NeedsSearch:
			observed.Search, err = r.History.Search(ctx, observed.Schedule, observed.Recorded())
		}
		if err != nil {
			return schedule.Decision{}, historyError(err)
		}
	}
}

func historyError(err error) schedule.Outcome {
	return schedule.Outcome{Err: err, History: true, Reason: assayv1alpha1.ReasonHistoryAway}
}

// act carries an action out.
func (r *ScheduleReconciler) act(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, action schedule.Action) schedule.Outcome {
	var err error
	switch action := action.(type) {
	case schedule.Start:
		return r.start(ctx, s, action)
	case schedule.Record:
		return r.record(ctx, s, &action.Run)
	case schedule.RecordGap:
		if err := r.History.Gap(ctx, s, &action.Run, action.Run.Gap); err != nil {
			return historyError(err)
		}
	case schedule.Locate:
		return r.locate(ctx, s, &action)
	case schedule.Cancel:
		err = r.Applier.CancelRun(ctx, s.Namespace, action.Run)
	case schedule.Delete:
		err = r.Applier.Delete(ctx, "BenchmarkRun", s.Namespace, action.Runs)
	case schedule.Forget:
		err = r.Applier.Delete(ctx, "BenchmarkRevision", s.Namespace, action.Revisions)
	}
	return writeError(err)
}

func writeError(err error) schedule.Outcome {
	if _, ok := errors.AsType[*apply.ForeignError](err); ok {
		return schedule.Outcome{Err: err, Reason: assayv1alpha1.ReasonRunNameTaken}
	}
	return schedule.Outcome{Err: err, Reason: assayv1alpha1.ReasonWriteFailed}
}

// start creates a run, records its purpose, and marks the revisions that it measures. Each step can be repeated.
func (r *ScheduleReconciler) start(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, action schedule.Start) schedule.Outcome {
	run, err := r.Applier.ScheduledRun(ctx, s, action.Run)
	if err != nil {
		return writeError(err)
	}
	if err := r.History.Begin(ctx, s, &action.Next, run); err != nil {
		return historyError(err)
	}
	if err := r.Applier.MarkRevisions(ctx, s.Namespace, action.Mark); err != nil {
		return writeError(err)
	}
	return schedule.Outcome{UID: string(run.UID)}
}

// record adds the results of a run to the history.
func (r *ScheduleReconciler) record(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule,
	entry *assayv1alpha1.ScheduledRun) schedule.Outcome {
	var run assayv1alpha1.BenchmarkRun
	if err := r.Applier.Live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: entry.Name}, &run); err != nil {
		return writeError(err) // One that was deleted since is a gap in the next pass.
	}
	recorded, err := r.History.Record(ctx, s, entry, &run)
	if err != nil {
		return historyError(err)
	}
	for _, alert := range recorded.Alerts {
		kind, what := corev1.EventTypeWarning, "regression"
		if alert.Improvement {
			kind, what = corev1.EventTypeNormal, "improvement"
		}
		text := fmt.Sprintf("%s confirmed, change %s of series %s: %s", what, alert.Change, s.Spec.Series, alert.Why)
		text = report.Published(report.Visible(text))
		event := apply.ChangeEvent{Name: alert.Change, Type: kind, Reason: "ChangeConfirmed", Message: text}
		if err := r.Applier.ChangeEvent(ctx, s, event, r.History.Clock.Now()); err != nil {
			return writeError(err)
		}
	}
	if len(recorded.Alerts) > 0 {
		if err := r.History.MarkSent(ctx, s, recorded.Alerts); err != nil {
			return historyError(err)
		}
	}
	return recorded.Outcome
}

// locate begins or ends the search for the culprits of a change. It emits the event before it records the result. The event has a
// deterministic name, so that it is emitted once.
func (r *ScheduleReconciler) locate(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, action *schedule.Locate) schedule.Outcome {
	finding, err := r.History.Locate(ctx, s, action)
	if err != nil {
		return historyError(err)
	}
	if finding == nil {
		return schedule.Outcome{Locating: action.Change}
	}
	event := apply.ChangeEvent{
		Name: finding.Change + ".located", Type: corev1.EventTypeNormal, Reason: "ChangeLocated",
		Message: fmt.Sprintf("change %s of series %s: %s", finding.Change, s.Spec.Series, finding.Story()),
	}
	if len(finding.Culprits) == 0 {
		event.Type, event.Reason = corev1.EventTypeWarning, "ChangeNotLocated"
	}
	if err := r.Applier.ChangeEvent(ctx, s, event, r.History.Clock.Now()); err != nil {
		return writeError(err)
	}
	next, err := r.History.Located(ctx, s, finding)
	if err != nil {
		return historyError(err)
	}
	return schedule.Outcome{Locating: next}
}

// tell emits an event for the news in a status that was written.
func (r *ScheduleReconciler) tell(s *assayv1alpha1.BenchmarkSchedule, after *assayv1alpha1.BenchmarkScheduleStatus,
	decision schedule.Decision, outcome schedule.Outcome) {
	if decision.Missed > 0 {
		r.Recorder.Eventf(s, corev1.EventTypeWarning, "MissedSchedule", "%d due times passed before %s: the newest one counts", decision.Missed,
			decision.Dealt.Format(time.RFC3339))
	}
	if reason, message := schedule.Warning(&s.Status, after); reason != "" {
		r.Recorder.Eventf(s, corev1.EventTypeWarning, reason, "%s", message)
	}
	if outcome.Err != nil {
		return
	}
	switch action := decision.Action.(type) {
	case schedule.Start:
		r.Recorder.Eventf(s, corev1.EventTypeNormal, "RunCreated", "created BenchmarkRun %s", action.Run.Name)
	case schedule.RecordGap:
		r.Recorder.Eventf(s, corev1.EventTypeWarning, "Gap", "number %d of series %s is a gap: %s", action.Run.Sequence, s.Spec.Series,
			action.Run.Gap)
	}
}

// again says when to look again.
func (r *ScheduleReconciler) again(decision schedule.Decision, outcome schedule.Outcome) (ctrl.Result, error) {
	switch {
	case outcome.Err != nil && outcome.History:
		return ctrl.Result{RequeueAfter: r.Retry}, nil
	case apierrors.IsConflict(outcome.Err) || apierrors.IsNotFound(outcome.Err):
		return ctrl.Result{RequeueAfter: plan.WatchSettles}, nil
	case outcome.Err != nil:
		return ctrl.Result{}, outcome.Err
	}
	return requeue(decision.RequeueAfter())
}

// ConcurrentSchedules is how many schedules are looked at together: a pass may wait for a registry.
const ConcurrentSchedules = 2

// SetupWithManager watches schedules, the ends of their runs, and recorded revisions.
func (r *ScheduleReconciler) SetupWithManager(manager ctrl.Manager) error {
	owner := handler.EnqueueRequestForOwner(manager.GetScheme(), manager.GetRESTMapper(), &assayv1alpha1.BenchmarkSchedule{},
		handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(manager).
		Named("benchmarkschedule").
		WithOptions(controllerOptions(ConcurrentSchedules)).
		// The status is this controller's own.
		For(&assayv1alpha1.BenchmarkSchedule{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&assayv1alpha1.BenchmarkRun{}, owner, builder.WithPredicates(runEnded)).
		// The next oldest takes a series over.
		Watches(&assayv1alpha1.BenchmarkSchedule{}, handler.EnqueueRequestsFromMapFunc(r.schedulesOf), builder.WithPredicates(deletedOnly)).
		Watches(&assayv1alpha1.BenchmarkRevision{}, handler.EnqueueRequestsFromMapFunc(r.schedulesOf), builder.WithPredicates(createdOnly)).
		Complete(timed{r, r.History.Clock})
}

// runEnded ignores the updates that do not concern a schedule.
var runEnded = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return plan.Ended(e.ObjectNew.(*assayv1alpha1.BenchmarkRun)) && !plan.Ended(e.ObjectOld.(*assayv1alpha1.BenchmarkRun))
	},
}

var (
	deletedOnly = predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	createdOnly = predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
)

// schedulesOf finds the schedules of the series of a schedule or of a recorded revision.
func (r *ScheduleReconciler) schedulesOf(ctx context.Context, object client.Object) []ctrl.Request {
	series := ""
	switch object := object.(type) {
	case *assayv1alpha1.BenchmarkSchedule:
		series = object.Spec.Series
	case *assayv1alpha1.BenchmarkRevision:
		series = object.Spec.Series
	}
	var schedules assayv1alpha1.BenchmarkScheduleList
	if err := r.Cache.List(ctx, &schedules, client.InNamespace(object.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the schedules that an event may concern")
		return nil
	}
	var out []ctrl.Request
	for i := range schedules.Items {
		if s := &schedules.Items[i]; s.Spec.Series == series {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return out
}
