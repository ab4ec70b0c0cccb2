// Package observe reads what a decision about a run depends on into plain values: workflows, pods, nodes, leases, template and ledger.
package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/workflow"
)

// World is everything that is known of a run at one moment.
type World struct {
	plan.Observed
	// Analysis is the newest one in the ledger, not necessarily of the newest wave; nil when there is none.
	Analysis *analysis.Analysis
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
	// Argo reports whether Argo's API exists; nil means that it does.
	Argo ArgoStates
	// Stored returns what the ledgers of a namespace hold; nil where there is no limit.
	Stored func(namespace string) (store.Sizes, bool)
	Memory Memory
	Clock  clock.PassiveClock
}

// ArgoStates reports the state of Argo Workflows.
type ArgoStates interface{ State() plan.ArgoState }

// Observe reads the world of a run. An unreachable ledger is part of the world, not an error.
func (o *Observer) Observe(ctx context.Context, run *assayv1alpha1.BenchmarkRun) (*World, error) {
	world := &World{Observed: plan.Observed{Run: run}}
	read := o.active
	if !run.DeletionTimestamp.IsZero() || plan.Ended(run) {
		o.Memory.over(run)
		read = o.over
	}
	return world, read(ctx, world)
}

// active reads the world of a run that has not ended.
func (o *Observer) active(ctx context.Context, world *World) error {
	// Before the ledger: what a workflow that ended wrote there is then seen.
	workflows, err := o.workflows(ctx, world)
	if err != nil {
		return fmt.Errorf("list workflows: %w", err)
	}
	if err := o.pods(ctx, world); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	if err := o.ledger(ctx, world); err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	sortWorkflows(world, workflows)
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

// over reads what a run that has ended, or is being deleted, still holds and what of it may still run.
func (o *Observer) over(ctx context.Context, world *World) error {
	if err := o.leases(ctx, world); err != nil {
		return fmt.Errorf("read leases: %w", err)
	}
	if world.Run.DeletionTimestamp.IsZero() && !holds(world) {
		return nil
	}
	workflows, err := o.workflows(ctx, world)
	if err != nil {
		return fmt.Errorf("list workflows: %w", err)
	}
	sortWorkflows(world, workflows)
	if err := o.pods(ctx, world); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	return nil
}

// template reads the template of a run that is not accepted yet, past the cache, which holds none whole: there may be thousands, of a
// megabyte each.
func (o *Observer) template(ctx context.Context, world *World) error {
	if world.Ledger.Experiment != nil {
		return nil // It has a copy of its own.
	}
	if world.Run.Spec.Template != nil {
		world.Template = world.Run.Spec.Template
		return nil
	}
	var template assayv1alpha1.BenchmarkTemplate
	key := types.NamespacedName{Namespace: world.Run.Namespace, Name: world.Run.Spec.TemplateRef.Name}
	if err := o.Live.Get(ctx, key, &template); err != nil {
		return client.IgnoreNotFound(err)
	}
	world.Template = &template.Spec
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

// workflowsTimeout limits the wait for the cache of workflows, which never fills if Argo's API is removed before it has.
const workflowsTimeout = 10 * time.Second

// workflows lists the run's workflows. Without Argo's API there are none, and listing would wait for ever.
func (o *Observer) workflows(ctx context.Context, world *World) ([]workflow.Workflow, error) {
	if o.Argo != nil {
		world.Argo = o.Argo.State()
	}
	return o.workflowsOf(ctx, client.ObjectKeyFromObject(world.Run))
}

// argoAbsent reports whether nothing may be asked of a cache of workflows.
func (o *Observer) argoAbsent() bool { return o.Argo != nil && o.Argo.State().Absent }

func (o *Observer) workflowsOf(ctx context.Context, run client.ObjectKey) ([]workflow.Workflow, error) {
	if o.argoAbsent() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, workflowsTimeout)
	defer cancel()
	var list workflow.WorkflowList
	err := o.Client.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingLabels{workflow.RunLabel: run.Name})
	return list.Items, err
}

// LeftBy are the runs that had a name and have workflows, but for the run that has it now.
func (o *Observer) LeftBy(ctx context.Context, name client.ObjectKey, now types.UID) (gone []lease.Holder, err error) {
	flows, err := o.workflowsOf(ctx, name)
	for i := range flows {
		of := lease.Holder{Namespace: name.Namespace, Name: name.Name, UID: flows[i].Labels[workflow.RunUIDLabel]}
		if of.UID != string(now) && flows[i].DeletionTimestamp.IsZero() && !slices.Contains(gone, of) {
			gone = append(gone, of)
		}
	}
	return gone, err
}

func (o *Observer) pods(ctx context.Context, world *World) error {
	var list corev1.PodList
	if err := o.Client.List(ctx, &list, client.InNamespace(world.Run.Namespace),
		client.MatchingLabels{workflow.RunUIDLabel: string(world.Run.UID)}); err != nil {
		return err
	}
	world.Pods = podState(list.Items)
	return nil
}
