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

// Leases reads the leases of all nodes. One that cannot be read is left out: whoever tries to take its node is told why.
func Leases(ctx context.Context, reader client.Reader, namespace string) ([]lease.Lease, error) {
	out, _, err := leases(ctx, reader, namespace)
	return out, err
}

// leases also returns the version of each node's object.
func leases(ctx context.Context, reader client.Reader, namespace string) (out []lease.Lease, versions map[string]string, err error) {
	var list coordinationv1.LeaseList
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{workflow.ManagedByLabel: workflow.ManagedBy}); err != nil {
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

// Busy names what of a holder runs on a node or may still start there, or nothing. A workflow that is known to use other
// nodes does not count.
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

// runsBlocks tells a workflow that may start blocks from one that ended, is on its way out or only analyses.
func runsBlocks(found *workflow.Workflow) bool {
	wave := 0
	_, err := fmt.Sscan(found.Labels[workflow.WaveLabel], &wave)
	analyses := err == nil && found.Name != workflow.Name(found.Labels[workflow.RunLabel], wave)
	return !analyses && !found.Status.Ended() && found.DeletionTimestamp.IsZero()
}

func aliveBlock(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.Labels[workflow.PartLabel] != workflow.AnalysisPart
}

// leases reads who holds the nodes and who waits for them. Of other holders it says what keeps them there, and so of this run on nodes
// that it gives back, where the API server itself is asked.
//
// The cache may be behind. For the nodes of others that does no harm: whoever takes one asks the API server itself, and what the
// cache learns brings the next pass. The run's own leases say whether its blocks may go on and are read past the cache, unless it
// has them as they were last read. That is done one by one, because a list that must not be old waits for etcd to say how far it
// is, a tenth of a second at worst.
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

// besides is the workflow of the newest wave, if that has no block on a node.
func besides(world *World, node string) string {
	newest := world.Ledger.Newest
	if newest == nil || slices.ContainsFunc(newest.Blocks, func(b record.Block) bool { return b.Lease == nil || b.Lease.Node == node }) {
		return ""
	}
	return workflow.Name(world.Run.Name, newest.Wave)
}

// own are the nodes that the run holds, or may think it does.
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

// refresh puts a node's lease as the API server has it in place of what the cache had. As in Leases, one that cannot be read is
// left out.
func (o *Observer) refresh(ctx context.Context, found []lease.Lease, node string) ([]lease.Lease, error) {
	found = slices.DeleteFunc(found, func(l lease.Lease) bool { return l.Node == node })
	var object coordinationv1.Lease
	if err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.LeaseNamespace, Name: lease.Name(node)}, &object); err != nil {
		return found, client.IgnoreNotFound(err)
	}
	o.Memory.sawLease(node, object.ResourceVersion)
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

// waiting reads which runs wait for a lease, this one too. A run has its place in the queue by its status, and loses it when something
// else keeps it from starting.
func (o *Observer) waiting(ctx context.Context, world *World) error {
	var runs assayv1alpha1.BenchmarkRunList
	// Nothing of the list is written to, and copies of a thousand runs in every pass are most of its cost.
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

// Begun reports whether a run holds a node or has a wave, whatever its status tells.
func Begun(world *World) bool { return holds(world) || world.Ledger.Newest != nil }

// WaitsForLease reports whether a run is in the queue for nodes.
func WaitsForLease(run *assayv1alpha1.BenchmarkRun) bool {
	return run.Status.Queue != nil && !plan.Ended(run) && !plan.Suspended(run) && !plan.Cancelled(run) && run.DeletionTimestamp.IsZero()
}
