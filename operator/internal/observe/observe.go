// Package observe reads a run's world into plain values: the run's workflows and pods, the nodes, its template and its ledger.
package observe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/workflow"
)

// World is everything known of a run at one moment.
type World struct {
	plan.Observed
	// Analysis is the newest one in the ledger, not necessarily of the newest wave; nil when there is none.
	Analysis *analysis.Analysis
	// LedgerURL is the address of the run's objects, ReportURL of the newest report, if there is one.
	LedgerURL, ReportURL string
}

// Observer reads worlds. It is safe for concurrent use.
type Observer struct {
	// Client reads from caches.
	Client client.Reader
	// Live reads a run's own leases, past the caches. They are in LeaseNamespace.
	Live           client.Reader
	LeaseNamespace string
	// Namespaces are those that can be looked into; none is all.
	Namespaces []string
	// Store is the root of all ledgers.
	Store ledger.Store
	// Argo reports whether there are workflows to list; nil is always.
	Argo ArgoStates
	// Stored knows what the ledgers of a namespace hold; nil where nothing bounds that.
	Stored func(namespace string) (ledger.Sizes, bool)
	// Memory is the controller's.
	Memory *Memory
}

// ArgoStates knows how Argo Workflows stands.
type ArgoStates interface{ State() plan.ArgoState }

// Observe reads the world of a run. A ledger that does not answer is part of the world, not an error.
func (o *Observer) Observe(ctx context.Context, run *assayv1alpha1.BenchmarkRun) (*World, error) {
	world := &World{Observed: plan.Observed{Run: run}}
	read := o.goingOn
	if !run.DeletionTimestamp.IsZero() || plan.Ended(run) {
		o.Memory.over(run.UID)
		read = o.over
	}
	if err := read(ctx, world); err != nil {
		return nil, err
	}
	return world, nil
}

// goingOn reads all there is to know of a run that goes on.
func (o *Observer) goingOn(ctx context.Context, world *World) error {
	// Before the ledger: what ended has left there what it leaves.
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

// over reads what a run that is over, or being deleted, has still to give back, and what of it may still run.
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

func (o *Observer) template(ctx context.Context, world *World) error {
	if world.Run.Spec.Template != nil {
		world.Template = world.Run.Spec.Template
		return nil
	}
	var template assayv1alpha1.BenchmarkTemplate
	err := o.Client.Get(ctx, types.NamespacedName{Namespace: world.Run.Namespace, Name: world.Run.Spec.TemplateRef.Name}, &template)
	if apierrors.IsNotFound(err) {
		return nil
	}
	world.Template = &template.Spec
	return err
}

func (o *Observer) nodes(ctx context.Context, world *World) error {
	var nodes corev1.NodeList
	if err := o.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range nodes.Items {
		world.Nodes = append(world.Nodes, nodeState(&nodes.Items[i]))
	}
	return nil
}

// workflowsTimeout bounds the wait for the cache of workflows, which would last for ever when Argo's API goes away before it
// was filled.
const workflowsTimeout = 10 * time.Second

// workflows lists the run's workflows. Where Argo's API is missing there is nothing to list, and asking for it would wait
// for ever.
func (o *Observer) workflows(ctx context.Context, world *World) ([]workflow.Workflow, error) {
	if o.Argo != nil {
		world.Argo = o.Argo.State()
	}
	if world.Argo.Absent {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, workflowsTimeout)
	defer cancel()
	var list workflow.WorkflowList
	if err := o.Client.List(ctx, &list, client.InNamespace(world.Run.Namespace), client.MatchingLabels{workflow.RunLabel: world.Run.Name}); err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (o *Observer) pods(ctx context.Context, world *World) error {
	var list corev1.PodList
	if err := o.Client.List(ctx, &list, client.InNamespace(world.Run.Namespace), client.MatchingLabels{workflow.RunUIDLabel: string(world.Run.UID)}); err != nil {
		return err
	}
	world.Pods = podState(list.Items)
	return nil
}
