// Package observe reads the inputs of a decision about a run into plain values: executions, pods, nodes, leases, template and ledger.
package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/store"
)

// World is everything that is known of a run at one moment.
type World struct {
	plan.Observed
	// Analysis is the newest accepted one in the ledger, not necessarily of the newest wave; nil without one. Accepted identifies it.
	Analysis *analysis.Analysis
	Accepted *assayv1alpha1.AnalysisStatus
	// LedgerURL is the address of the run's objects, ReportURL of the newest report, if there is one.
	LedgerURL, ReportURL string
	// DamagedLeases is why Lease objects cannot be parsed, by their names.
	DamagedLeases map[string]string
}

// Observer reads worlds. It is safe for concurrent use.
type Observer struct {
	// Client reads from caches.
	Client client.Reader
	// Live reads from the API server. Leases are in LeaseNamespace.
	Live           client.Reader
	LeaseNamespace string
	// Namespaces are those that this operator watches; empty is all.
	Namespaces []string
	// Store is the root of all ledgers.
	Store store.Store
	// Executor executes the runs.
	Executor executor.Executor
	// Stored returns the size of the ledgers of a namespace; nil without a limit.
	Stored func(namespace string) (store.Sizes, bool)
	Memory Memory
	Clock  clock.PassiveClock
}

// Observe reads the world of a run. An unreachable ledger is part of the world, not an error.
func (o *Observer) Observe(ctx context.Context, run *assayv1alpha1.BenchmarkRun) (*World, error) {
	world := &World{Observed: plan.Observed{Run: run}}
	read := o.active
	if !run.DeletionTimestamp.IsZero() || plan.Ended(run) {
		o.Memory.forget(run)
		read = o.observeFinished
	}
	return world, read(ctx, world)
}

// active reads the world of a run that has not ended.
func (o *Observer) active(ctx context.Context, world *World) error {
	world.Engine = o.Executor.State()
	// Executions before the ledger: the objects that an ended execution wrote are then in the ledger as it is read.
	executions, err := o.executionsOf(ctx, client.ObjectKeyFromObject(world.Run))
	if err != nil {
		return fmt.Errorf("list executions: %w", err)
	}
	pods, err := o.pods(ctx, world)
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	if err := o.ledger(ctx, world); err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	sortExecutions(world, executions)
	if err := o.analysis(ctx, world, pods); err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	if err := o.unread(ctx, world); err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	if err := o.leases(ctx, world); err != nil {
		return fmt.Errorf("read leases: %w", err)
	}
	if err := o.waiting(ctx, world); err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	if err := o.template(ctx, world); err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	if err := o.nodes(ctx, world); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	if o.Stored != nil {
		if sizes, known := o.Stored(world.Run.Namespace); known {
			world.Stored = &plan.Stored{Bytes: sizes.Bytes, Objects: sizes.Objects}
		}
	}
	return nil
}

// observeFinished reads the leases, executions and pods of a run that has ended or is being deleted.
func (o *Observer) observeFinished(ctx context.Context, world *World) error {
	if err := o.leases(ctx, world); err != nil {
		return fmt.Errorf("read leases: %w", err)
	}
	if !world.Run.DeletionTimestamp.IsZero() {
		state, err := Namespace(ctx, o.Live, world.Run.Namespace)
		if err != nil {
			return err
		}
		if world.NamespaceEnding = state != NamespaceActive; world.NamespaceEnding {
			return nil // The rights to read anything else of the run may be gone.
		}
	}
	// A container of another program may keep the pod of the last analysis.
	if _, err := o.pods(ctx, world); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	if world.Run.DeletionTimestamp.IsZero() && !holds(world) && !slices.Contains(world.Run.Finalizers, plan.Finalizer) {
		return nil
	}
	world.Engine = o.Executor.State()
	executions, err := o.executionsOf(ctx, client.ObjectKeyFromObject(world.Run))
	if err != nil {
		return fmt.Errorf("list executions: %w", err)
	}
	sortExecutions(world, executions)
	return nil
}

// template reads the template of a run that is not accepted yet, past the cache, which holds none whole: there may be thousands, of a
// megabyte each.
func (o *Observer) template(ctx context.Context, world *World) error {
	if world.Ledger.Experiment != nil {
		return nil // The experiment contains a copy.
	}
	if world.Run.Spec.Template != nil {
		world.Template = world.Run.Spec.Template
		return nil
	}
	var template assayv1alpha1.BenchmarkTemplate
	key := types.NamespacedName{Namespace: world.Run.Namespace, Name: world.Run.Spec.TemplateRef.Name}
	if err := o.Live.Get(ctx, key, &template); apierrors.IsNotFound(err) {
		return o.templates(ctx, world)
	} else if err != nil {
		return err
	}
	world.Template = &template.Spec
	return nil
}

// templates reads the names of the templates in the run's namespace, from the cache.
func (o *Observer) templates(ctx context.Context, world *World) error {
	var list assayv1alpha1.BenchmarkTemplateList
	if err := o.Client.List(ctx, &list, client.InNamespace(world.Run.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		world.Templates = append(world.Templates, list.Items[i].Name)
	}
	slices.Sort(world.Templates)
	return nil
}

func (o *Observer) nodes(ctx context.Context, world *World) error {
	var nodes corev1.NodeList
	if err := o.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range nodes.Items {
		node, ready := &nodes.Items[i], Ready(&nodes.Items[i])
		world.Nodes = append(world.Nodes, plan.Node{
			Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints,
			Unschedulable: node.Spec.Unschedulable, Allocatable: node.Status.Allocatable,
			Ready: ready.Status == corev1.ConditionTrue, ReadySince: ready.LastTransitionTime.Time,
			LeaseDamaged: world.DamagedLeases[lease.Name(node.Name)],
		})
	}
	return nil
}

// pods reads the state of the run's pods, and returns the pods.
func (o *Observer) pods(ctx context.Context, world *World) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := o.Client.List(ctx, &list, podsOf(world.Run)...); err != nil {
		return nil, err
	}
	world.Pods = podState(list.Items)
	return list.Items, nil
}

// podsOf selects the pods of a run.
func podsOf(run *assayv1alpha1.BenchmarkRun) []client.ListOption {
	return []client.ListOption{client.InNamespace(run.Namespace), client.MatchingLabels{executor.RunUIDLabel: string(run.UID)}}
}
