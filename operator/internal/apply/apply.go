// Package apply executes the actions of the planner. It is the only package that writes to the API server. It uses server-side apply with
// one field owner, so that every write contains all fields that Assay owns and can be repeated. Leases and taints, for which runs and
// programs compete, are written against the version that was read, and so are statuses, which are replaced.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/dashboard"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/internal/store"
)

// FieldOwner is the one owner of every field that Assay writes.
const FieldOwner = "assay-operator"

// Applier writes.
type Applier struct {
	Client client.Client
	// Live reads from the API server, without a cache.
	Live client.Reader
	// Store is the root of all ledgers.
	Store store.Store
	// Executor executes waves and analyses. It writes through writer alone.
	Executor executor.Executor
	Lease    LeaseConfig
	Clock    clock.PassiveClock
	// Dashboards configures which dashboards runs have.
	Dashboards dashboard.Config
}

// LedgerError is an error of the ledger, not of the API server.
type LedgerError struct{ Err error }

func (e *LedgerError) Error() string { return e.Err.Error() }
func (e *LedgerError) Unwrap() error { return e.Err }

// Do writes one action. Every action can be repeated after it was interrupted anywhere.
func (a *Applier) Do(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.Action) error {
	switch action := action.(type) {
	case plan.Accept:
		return a.accept(ctx, run, action)
	case plan.PlanWave:
		return a.planWave(ctx, run, action)
	case plan.StartWave:
		return a.Executor.StartWave(ctx, &writer{Applier: a, run: run, wave: action.Wave}, action)
	case plan.Analyze:
		return a.Executor.StartAnalysis(ctx, a.writer(run), action)
	case plan.Suspend:
		return a.suspend(ctx, run, action.Execution, true)
	case plan.Resume:
		return a.suspend(ctx, run, action.Execution, false)
	case plan.Stop:
		stop := executor.Stop{Analyze: true}
		if action.Again {
			stop.Again = action.Why
		}
		return a.Executor.Stop(ctx, a.writer(run), executionOf(run, action.Execution), stop)
	case plan.Terminate:
		return a.Executor.Stop(ctx, a.writer(run), executionOf(run, action.Execution), executor.Stop{})
	case plan.AcquireLeases:
		return a.takeLeases(ctx, run, action)
	case plan.RetakeLeases:
		// One write per lease, so that no other run can acquire it in between.
		return a.editLeases(ctx, run, action.Nodes, "take anew", func(l lease.Lease) (lease.Lease, error) {
			anew := l.WithNewToken(a.Lease.Duration, a.now())
			if _, err := a.asDecidedOn(ctx, run); err != nil {
				return anew, err
			}
			// No block starts under the old token any more. Record its end for the blocks that still run under it, before the Lease records
			// another end.
			return anew, a.recordEnd(ctx, anew.Last)
		})
	case plan.RenewLeases:
		return a.editLeases(ctx, run, action.Nodes, "renew", func(l lease.Lease) (lease.Lease, error) {
			l.Renewed, l.Duration = a.now(), a.Lease.Duration
			return l, nil
		})
	case plan.DrainLeases:
		// No block may start under them any more.
		return a.editLeases(ctx, run, action.Nodes, "drain", func(l lease.Lease) (lease.Lease, error) {
			l.Draining = true
			_, err := a.asDecidedOn(ctx, run)
			return l, err
		})
	case plan.ReleaseLeases:
		return a.releaseLeases(ctx, run, action)
	case plan.DeleteRun:
		return client.IgnoreNotFound(a.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion}))
	case plan.DeleteExecutions:
		return a.deleteExecutions(ctx, run, action)
	case plan.EndPods:
		return a.endPods(ctx, run, action)
	case plan.Release:
		return client.IgnoreNotFound(a.release(ctx, run))
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

func (a *Applier) accept(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.Accept) error {
	raw, err := ledger.JSON(action.Experiment)
	if err != nil {
		return err
	}
	// If the ledger has an experiment already, that one counts; the next reconcile reads it.
	err = observe.RunStore(a.Store, run).Create(ctx, ledger.ExperimentKey, raw)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return &LedgerError{err}
	}
	return a.addFinalizer(ctx, run)
}

// planWave writes the wave's plan to the ledger, under leases that are the run's.
func (a *Applier) planWave(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.PlanWave) error {
	raw, err := record.Line(action.Wave)
	if err != nil {
		return err
	}
	held, err := a.inForce(ctx, run, action.Wave)
	if err != nil {
		return err
	}
	for _, l := range held {
		// Before the plan that counts on it: a token that the run had before is over.
		if err := a.recordEnd(ctx, l.Last); err != nil {
			return err
		}
		if err := a.recordLease(ctx, run, l); err != nil {
			return err
		}
	}
	if err := store.EnsureCreated(ctx, observe.RunStore(a.Store, run), ledger.WaveKey(action.Wave.Wave), raw); err != nil {
		return &LedgerError{err}
	}
	return nil
}

// apply applies an object that the run owns, unless an object of that name has another owner.
func (a *Applier) apply(ctx context.Context, run *assayv1alpha1.BenchmarkRun, object client.Object, options ...client.ApplyOption) error {
	if err := a.own(ctx, run, object); err != nil {
		return err
	}
	object.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(run, assayv1alpha1.GroupVersion.WithKind("BenchmarkRun")),
	})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "status")
	return a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content}),
		append(options, client.FieldOwner(FieldOwner), client.ForceOwnership)...)
}

// addFinalizer adds the finalizer to a run that has started.
func (a *Applier) addFinalizer(ctx context.Context, run *assayv1alpha1.BenchmarkRun) error {
	if slices.Contains(run.Finalizers, plan.Finalizer) {
		return nil
	}
	// No other field of the run. The uid prevents the creation of a run that was deleted.
	object := identity(run)
	object.SetFinalizers([]string{plan.Finalizer})
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(FieldOwner),
		client.ForceOwnership); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	written(run, object)
	return nil
}

// release removes the finalizer of a run, regardless of its field owner: an apply removes only the fields that its own owner has applied.
func (a *Applier) release(ctx context.Context, run *assayv1alpha1.BenchmarkRun) error {
	at := fmt.Sprintf("/metadata/finalizers/%d", slices.Index(run.Finalizers, plan.Finalizer))
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": run.UID},
		{"op": "test", "path": at, "value": plan.Finalizer},
		{"op": "remove", "path": at},
	})
	if err != nil {
		return err
	}
	object := identity(run)
	if err := a.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	written(run, object)
	return nil
}

// written copies the new resource version and finalizers into run: the status of this reconcile is written against that version.
func written(run *assayv1alpha1.BenchmarkRun, object client.Object) {
	run.ResourceVersion, run.Finalizers = object.GetResourceVersion(), object.GetFinalizers()
}

func identity(run *assayv1alpha1.BenchmarkRun) *unstructured.Unstructured {
	return object("BenchmarkRun", run.Namespace, schedule.Version{Name: run.Name, UID: string(run.UID)})
}
