package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/workflow"
)

// Leases reads the leases of all nodes. One that cannot be parsed is left out: acquiring its node fails with the reason.
func Leases(ctx context.Context, reader client.Reader, namespace string) ([]lease.Lease, error) {
	out, _, err := leases(ctx, reader, namespace)
	return out, err
}

// leases also returns the version of each node's object.
func leases(ctx context.Context, reader client.Reader, namespace string) (out []lease.Lease, versions map[string]string, err error) {
	var list coordinationv1.LeaseList
	if err := reader.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingLabels{workflow.ManagedByLabel: workflow.ManagedBy}); err != nil {
		return nil, nil, err
	}
	versions = map[string]string{}
	for i := range list.Items {
		if found, err := lease.FromObject(&list.Items[i]); err == nil {
			out = append(out, found)
			versions[found.Node] = list.Items[i].ResourceVersion
		}
	}
	return out, versions, nil
}

// Busy names what of a holder runs on a node or may still start there; empty is nothing. Besides names a workflow that is known to use
// only other nodes.
func Busy(ctx context.Context, reader client.Reader, holder lease.Holder, node, besides string) (string, error) {
	mine := []client.ListOption{client.InNamespace(holder.Namespace), client.MatchingLabels{workflow.RunUIDLabel: holder.UID}}
	var workflows workflow.WorkflowList
	// Where Argo's API is gone, so are its workflows.
	if err := client.IgnoreNotFound(reader.List(ctx, &workflows, mine...)); err != nil {
		return "", fmt.Errorf("list workflows of run %s: %w", holder.Run(), err)
	}
	for i := range workflows.Items {
		if found := &workflows.Items[i]; runsBlocks(found) && found.Name != besides {
			return "workflow " + found.Name, nil
		}
	}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, mine...); err != nil {
		return "", fmt.Errorf("list pods of run %s: %w", holder.Run(), err)
	}
	for i := range pods.Items {
		if found := &pods.Items[i]; aliveBlock(found) && (found.Spec.NodeName == "" || found.Spec.NodeName == node) {
			return "pod " + found.Name, nil
		}
	}
	return "", nil
}

// runsBlocks reports whether a workflow may start blocks: it has not ended, is not being deleted and is not an analysis only.
func runsBlocks(found *workflow.Workflow) bool {
	wave := 0
	_, err := fmt.Sscan(found.Labels[workflow.WaveLabel], &wave)
	analyses := err == nil && found.Name != workflow.Name(found.Labels[workflow.RunLabel], wave)
	return !analyses && !found.Status.Ended() && found.DeletionTimestamp.IsZero()
}

func aliveBlock(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed &&
		pod.Labels[workflow.PartLabel] != workflow.AnalysisPart
}

// leases reads the leases of all nodes, with what still runs there (Busy) for other holders and, read from the API server, for nodes that
// this run drains.
//
// The cache may be stale. For other runs' leases that is harmless: acquiring one reads it from the API server, and a change of the cache
// causes another reconcile. The run's own leases decide whether its blocks may go on, and are read from the API server unless the cache
// has the version that was read there last. They are read one by one, because a consistent list waits for etcd's progress notification,
// up to a tenth of a second.
func (o *Observer) leases(ctx context.Context, world *World) error {
	found, versions, err := leases(ctx, o.Client, o.LeaseNamespace)
	if err != nil {
		return err
	}
	me := plan.HolderOf(world.Run)
	if plan.Leased(experiment.PlacementOf(world.Run.Spec.Placement)) {
		for _, node := range o.own(world, found) {
			if version, ok := o.Memory.lease(node); ok && version == versions[node] {
				continue
			}
			if found, err = o.refresh(ctx, found, node); err != nil {
				return err
			}
		}
	}
	for i := range found {
		if found[i].Holder == me && found[i].Draining {
			if found[i].Busy, err = Busy(ctx, o.Live, me, found[i].Node, besides(world, found[i].Node)); err != nil {
				return err
			}
		}
		if !found[i].Held() || found[i].Holder == me {
			continue
		}
		if where := found[i].Holder.Namespace; len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, where) {
			found[i].Busy = "what it started in namespace " + where + ", which this operator does not watch,"
			continue
		}
		if found[i].Busy, err = Busy(ctx, o.Client, found[i].Holder, found[i].Node, ""); err != nil {
			return err
		}
	}
	lease.Sort(found)
	world.Leases = found
	return nil
}

// besides is the name of the newest wave's workflow if none of its blocks is on the node, and empty otherwise.
func besides(world *World, node string) string {
	newest := world.Ledger.Newest
	if newest == nil || slices.ContainsFunc(newest.Blocks, func(b record.Block) bool { return b.Lease == nil || b.Lease.Node == node }) {
		return ""
	}
	return workflow.Name(world.Run.Name, newest.Wave)
}

// own are the nodes that the run holds, according to any source that may be stale.
func (o *Observer) own(world *World, found []lease.Lease) []string {
	nodes := slices.Clone(o.Memory.Noted(world.Run.UID).Taken)
	for _, l := range found {
		if l.Holder == plan.HolderOf(world.Run) {
			nodes = append(nodes, l.Node)
		}
	}
	for _, l := range world.Run.Status.Leases {
		nodes = append(nodes, l.Node)
	}
	if newest := world.Ledger.Newest; newest != nil && !world.Ledger.Analysed {
		for _, block := range newest.Blocks {
			if block.Lease != nil {
				nodes = append(nodes, block.Lease.Node)
			}
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// refresh replaces a cached lease by the API server's. As in Leases, one that cannot be parsed is left out.
func (o *Observer) refresh(ctx context.Context, found []lease.Lease, node string) ([]lease.Lease, error) {
	found = slices.DeleteFunc(found, func(l lease.Lease) bool { return l.Node == node })
	var object coordinationv1.Lease
	if err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.LeaseNamespace, Name: lease.Name(node)}, &object); err != nil {
		return found, client.IgnoreNotFound(err)
	}
	o.Memory.keepLease(node, object.ResourceVersion)
	if fresh, err := lease.FromObject(&object); err == nil {
		found = append(found, fresh)
	}
	return found, nil
}

// holds reports whether the run holds a lease.
func holds(world *World) bool {
	me := plan.HolderOf(world.Run)
	return slices.ContainsFunc(world.Leases, func(l lease.Lease) bool { return l.Holder == me })
}

// waiting reads which runs wait for a lease, including this one. A run is in the queue by its status, and leaves it when something else
// keeps it from starting.
func (o *Observer) waiting(ctx context.Context, world *World) error {
	var runs assayv1alpha1.BenchmarkRunList
	// The list is read only, and copying a thousand runs would be most of the cost of a reconcile.
	if err := o.Client.List(ctx, &runs, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range runs.Items {
		if run := &runs.Items[i]; WaitsForLease(run) {
			world.Waiting = append(world.Waiting, plan.WaitingRun{
				Run: plan.HolderOf(run), Created: run.CreationTimestamp.Time, Placement: experiment.PlacementOf(run.Spec.Placement),
			})
		}
	}
	slices.SortFunc(world.Waiting, func(a, b plan.WaitingRun) int { return cmp.Compare(a.Run.UID, b.Run.UID) })
	return nil
}

// CountUnderWay counts the other runs of the namespace that have started and not ended, as of now.
func (o *Observer) CountUnderWay(ctx context.Context, world *World) error {
	var runs assayv1alpha1.BenchmarkRunList
	if err := o.Client.List(ctx, &runs, client.InNamespace(world.Run.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	world.UnderWay = 0
	for i := range runs.Items {
		if run := &runs.Items[i]; run.UID != world.Run.UID && !plan.Ended(run) && (run.Status.Wave != nil || o.Memory.Noted(run.UID).Begins) {
			world.UnderWay++
		}
	}
	return nil
}

// Begun reports whether a run holds a node or has a wave, whether or not its status shows it yet.
func Begun(world *World) bool { return holds(world) || world.Ledger.Newest != nil }

// WaitsForLease reports whether a run is in the queue for nodes.
func WaitsForLease(run *assayv1alpha1.BenchmarkRun) bool {
	return run.Status.Queue != nil && !plan.Ended(run) && !plan.Suspended(run) && !plan.Cancelled(run) && run.DeletionTimestamp.IsZero()
}
