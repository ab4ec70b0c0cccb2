// Package apply writes what the planner decided. It is the only package that writes to the API server: with server-side
// apply and one field owner, so that every write says the whole of what Assay wants and can be repeated. Leases and taints, over which
// runs and programs compete, are written against the version that was read, and so are statuses, which are replaced.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/dashboard"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/workflow"
)

// FieldOwner is the one owner of every field that Assay writes.
const FieldOwner = "assay-operator"

// Applier writes.
type Applier struct {
	Client client.Client
	// Live reads from the API server, without a cache.
	Live client.Reader
	// Store is the root of all ledgers.
	Store  store.Store
	Config workflow.Config
	Lease  LeaseConfig
	Clock  clock.PassiveClock
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
		return a.startWave(ctx, run, action)
	case plan.Analyze:
		wanted, err := workflow.BuildAnalysis(a.Config, action.Experiment, action.Wave, action.Try)
		if err != nil {
			return err
		}
		return a.createWorkflow(ctx, run, wanted)
	case plan.Suspend:
		return a.suspend(ctx, run, action.Workflow, true)
	case plan.Resume:
		return a.suspend(ctx, run, action.Workflow, false)
	case plan.Stop:
		// Argo does not run the exit handler of a suspended workflow.
		return a.editWorkflow(ctx, run, action.Workflow, func(live *workflow.Workflow) {
			live.Spec.Shutdown, live.Spec.Suspend = workflow.Stop, ptr.To(false)
			if action.Again {
				metav1.SetMetaDataAnnotation(&live.ObjectMeta, workflow.AgainAnnotation, action.Why)
			}
		})
	case plan.Terminate:
		return a.editWorkflow(ctx, run, action.Workflow, func(live *workflow.Workflow) {
			live.Spec.Shutdown, live.Spec.Suspend = workflow.Terminate, ptr.To(false)
		})
	case plan.AcquireLeases:
		return a.takeLeases(ctx, run, action)
	case plan.RetakeLeases:
		// In one write each, so that nobody else can take them in between.
		return a.editLeases(ctx, run, action.Nodes, "take anew", func(l lease.Lease) (lease.Lease, error) {
			anew := l.Anew(a.Lease.Duration, a.now())
			if _, err := a.asDecidedOn(ctx, run); err != nil {
				return anew, err
			}
			// Nothing starts under the old token any more. Whatever goes on under it has to find its end, before the Lease has another one.
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
	case plan.DeleteWorkflows:
		return a.deleteWorkflows(ctx, run, action)
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
	return a.keep(ctx, run)
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

// startWave starts the workflow of a wave in the ledger, if the leases are the run's still.
func (a *Applier) startWave(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.StartWave) error {
	raw, err := record.Line(action.Wave)
	if err != nil {
		return err
	}
	// Before anything is created: a Workflow that cannot be built leaves nothing behind.
	wanted, err := workflow.Build(a.Config, action.Experiment, action.Wave, action.Lanes, action.Longest)
	if err != nil {
		return err
	}
	if _, err := a.inForce(ctx, run, action.Wave); err != nil {
		return err
	}
	if err := a.keep(ctx, run); err != nil {
		return err
	}
	if err := a.apply(ctx, run, planConfigMap(run, action.Wave, raw)); err != nil {
		return fmt.Errorf("apply ConfigMap: %w", err)
	}
	// Again, because those writes may have taken their time.
	if _, err := a.inForce(ctx, run, action.Wave); err != nil {
		return err
	}
	return a.createWorkflow(ctx, run, wanted)
}

func planConfigMap(run *assayv1alpha1.BenchmarkRun, wave *record.Wave, raw []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: workflow.Name(run.Name, wave.Wave), Labels: workflow.Labels(wave.Run, wave.Wave),
		},
		Immutable: ptr.To(true),
		Data:      map[string]string{workflow.WaveFile: string(raw)},
	}
}

// apply applies an object that belongs to the run, unless one of that name belongs to somebody else.
func (a *Applier) apply(ctx context.Context, run *assayv1alpha1.BenchmarkRun, object client.Object) error {
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
		client.FieldOwner(FieldOwner), client.ForceOwnership)
}

// keep keeps a run that has begun until its operator lets it go.
func (a *Applier) keep(ctx context.Context, run *assayv1alpha1.BenchmarkRun) error {
	if slices.Contains(run.Finalizers, plan.Finalizer) {
		return nil
	}
	// Nothing else of the run. The uid keeps one that is gone from coming back.
	object := identity(run)
	object.SetFinalizers([]string{plan.Finalizer})
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(FieldOwner),
		client.ForceOwnership); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	written(run, object)
	return nil
}

// release takes the finalizer off a run, whoever wrote it: an apply takes away only what its owner has applied.
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

// written notes what a write made of a run: the status of this reconcile is written against that version.
func written(run *assayv1alpha1.BenchmarkRun, object client.Object) {
	run.ResourceVersion, run.Finalizers = object.GetResourceVersion(), object.GetFinalizers()
}

func identity(run *assayv1alpha1.BenchmarkRun) *unstructured.Unstructured {
	return object("BenchmarkRun", run.Namespace, schedule.Version{Name: run.Name, UID: string(run.UID)})
}
