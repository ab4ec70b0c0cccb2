package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/status"
)

func TestRequeue(t *testing.T) {
	settings := plan.Settings{LedgerRetry: 10 * time.Second}
	away := &apply.LedgerError{Err: errors.New("no answer")}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "node-a", errors.New("too late"))
	broken := errors.New("forbidden")
	const atOnce = time.Nanosecond
	cases := map[string]struct {
		decision plan.Decision
		err      error
		after    time.Duration
		fails    bool
	}{
		"no action and no requeue":             {plan.Decision{}, nil, 0, false},
		"a wait without a watch":               {plan.Decision{After: time.Minute}, nil, time.Minute, false},
		"an action requeues at once":           {plan.Decision{Action: plan.PlanWave{}}, nil, atOnce, false},
		"an action that the watch has to show": {plan.Decision{Action: plan.StartWave{}, After: plan.WatchSettles}, nil, plan.WatchSettles, false},
		"an ending requeues at once":           {plan.Decision{Ending: &plan.Ending{}}, nil, atOnce, false},
		"an unreachable ledger":                {plan.Decision{Action: plan.PlanWave{}}, fmt.Errorf("plan: %w", away), 10 * time.Second, false},
		"a conflict":                           {plan.Decision{Action: plan.PlanWave{}}, fmt.Errorf("take: %w", conflict), plan.WatchSettles, false},
		"another error":                        {plan.Decision{After: time.Minute}, broken, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := again(tc.decision, settings, tc.err)
			if got.RequeueAfter != tc.after || (err != nil) != tc.fails {
				t.Errorf("again after %s, %v; want %s, an error: %v", got.RequeueAfter, err, tc.after, tc.fails)
			}
		})
	}
}

// After a conflict on the termination of a Workflow the run is reconciled again, because a finished run terminates nothing.
func TestReconcile_ConflictOnTheLastWriteDoesNotEndTheRun(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "workflows"}, "scan-w000", errors.New("it has another version"))
	for sentence, tc := range map[string]struct {
		err  error
		want bool
	}{
		"the write succeeded":        {nil, true},
		"a conflict":                 {fmt.Errorf("apply workflow scan-w000: %w", conflict), false},
		"the write was forbidden":    {errors.New("forbidden"), false},
		"the ledger was unreachable": {&apply.LedgerError{Err: errors.New("no answer")}, false},
	} {
		run := &assayv1alpha1.BenchmarkRun{}
		decision := plan.Decision{Action: plan.Terminate{Execution: "scan-w000"},
			Ending: &plan.Ending{Reason: assayv1alpha1.ReasonImageNotPulled},
			Reason: assayv1alpha1.ReasonImageNotPulled, Grace: assayv1alpha1.GraceForImage}
		after := status.Compute(outcome(&observe.World{Observed: plan.Observed{Run: run}}, decision, tc.err), time.Now())
		if ended := after.CompletionTime != nil; ended != tc.want || !ended && (after.Grace == nil || after.Phase == assayv1alpha1.PhaseFailed) {
			t.Errorf("%s: it has ended: %v, and is %s with grace %v; want %v", sentence, ended, after.Phase, after.Grace, tc.want)
		}
	}
}

func TestTimed_SlowReconcileIsLogged(t *testing.T) {
	for took, want := range map[time.Duration]int{slowReconcile: 0, slowReconcile + time.Millisecond: 1} {
		lines := 0
		log := funcr.New(func(_, _ string) { lines++ }, funcr.Options{})
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
		pass := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			clock.SetTime(clock.Now().Add(took))
			return ctrl.Result{RequeueAfter: time.Minute}, nil
		})
		result, err := timed{pass, clock}.Reconcile(ctrl.LoggerInto(t.Context(), log), ctrl.Request{})
		if err != nil || result.RequeueAfter != time.Minute || lines != want {
			t.Errorf("a pass of %s: %v, %v and %d lines; want %d", took, result, err, lines, want)
		}
	}
}
