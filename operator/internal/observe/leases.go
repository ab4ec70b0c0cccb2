package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/pages"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// Leases reads the leases of all nodes, without those that cannot be parsed.
func Leases(ctx context.Context, reader client.Reader, namespace string) ([]lease.Lease, error) {
	out, _, _, err := leases(ctx, reader, namespace)
	return out, err
}

// leases also returns the version of each node's object, and why others cannot be parsed, by their names.
func leases(ctx context.Context, reader client.Reader, namespace string) (
	out []lease.Lease, versions, damaged map[string]string, err error) {
	var list coordinationv1.LeaseList
	if err := reader.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingLabels{executor.ManagedByLabel: executor.ManagedBy}); err != nil {
		return nil, nil, nil, err
	}
	versions, damaged = map[string]string{}, map[string]string{}
	for i := range list.Items {
		current, err := lease.FromObject(&list.Items[i])
		if err != nil {
			damaged[list.Items[i].Name] = err.Error()
			continue
		}
		out = append(out, current)
		versions[current.Node] = list.Items[i].ResourceVersion
	}
	return out, versions, damaged, nil
}

// Busy returns which execution or pod of a holder runs on a node or may still start there, as the API server has it, or "". Besides is the
// name of an execution that is known to use only other nodes.
func Busy(ctx context.Context, engine executor.Executor, live client.Reader, holder lease.Holder, node, besides string) (string, error) {
	found, err := busy(ctx, engine, source{live, false}, holder, node, besides)
	if err != nil && gone(ctx, live, holder.Namespace, err) {
		return "", nil
	}
	return found, err
}

// source is where objects are read: from the API server, or from a cache.
type source struct {
	client.Reader
	cached bool
}

func (s source) pods(ctx context.Context, namespace string, visit func(*corev1.Pod), options ...client.ListOption) error {
	if s.cached {
		return pages.Cached(ctx, s.Reader, &corev1.PodList{}, namespace, visit, options...)
	}
	return pages.Each(ctx, s.Reader, &corev1.PodList{}, namespace, visit, options...)
}

func busy(ctx context.Context, engine executor.Executor, from source, holder lease.Holder, node, besides string) (found string, err error) {
	query := executor.Query{Namespace: holder.Namespace, UID: holder.UID, Cached: from.cached}
	err = engine.Visit(ctx, query, func(e executor.Execution) {
		if found == "" && e.StartsBlocks() && e.Name != besides {
			found = "execution " + strings.Clone(e.Name)
		}
	})
	if err != nil {
		return "", fmt.Errorf("list executions of run %s: %w", holder.Run(), err)
	}
	if found != "" {
		return found, nil
	}
	if err := from.pods(ctx, holder.Namespace, func(pod *corev1.Pod) {
		if found == "" && aliveBlock(pod) && (pod.Spec.NodeName == "" || pod.Spec.NodeName == node) {
			found = "pod " + strings.Clone(pod.Name)
		}
	}, client.MatchingLabels{executor.RunUIDLabel: holder.UID}); err != nil {
		return "", fmt.Errorf("list pods of run %s: %w", holder.Run(), err)
	}
	return found, nil
}

// OthersOn returns which execution or pod of other runs is on a node or may still start there, or "". It reads every execution and pod, for
// a node without a Lease that names its holder. The namespaces that have runs are those of the cache.
func OthersOn(ctx context.Context, engine executor.Executor, cache, live client.Reader, me lease.Holder, node string) (string, error) {
	var runs assayv1alpha1.BenchmarkRunList
	if err := cache.List(ctx, &runs, client.UnsafeDisableDeepCopy); err != nil {
		return "", err
	}
	namespaces := map[string]bool{}
	for i := range runs.Items {
		namespaces[runs.Items[i].Namespace] = true
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		found := ""
		err := engine.Visit(ctx, executor.Query{Namespace: namespace}, func(e executor.Execution) {
			if found == "" && e.Run.UID != me.UID && e.StartsBlocks() && slices.Contains(e.Nodes, node) {
				found = "execution " + namespace + "/" + strings.Clone(e.Name)
			}
		})
		if err != nil && gone(ctx, live, namespace, err) {
			continue // The cache is late.
		}
		if err != nil {
			return "", fmt.Errorf("list executions in namespace %s: %w", namespace, err)
		}
		if err := pages.Each(ctx, live, &corev1.PodList{}, namespace, func(pod *corev1.Pod) {
			if found == "" && pod.Labels[executor.RunUIDLabel] != me.UID && aliveBlock(pod) && pod.Spec.NodeName == node {
				found = "pod " + namespace + "/" + strings.Clone(pod.Name)
			}
		}, client.HasLabels{executor.RunUIDLabel}); err != nil {
			return "", fmt.Errorf("list pods in namespace %s: %w", namespace, err)
		}
		if found != "" {
			return found, nil
		}
	}
	return "", nil
}

func aliveBlock(pod *corev1.Pod) bool {
	return !over(pod) && pod.Labels[executor.PartLabel] != executor.AnalysisPart
}

// soon exceeds the time between an observation and the decision on it.
const soon = time.Minute

// leases reads the leases of all nodes. Busy is set from the cache for other holders whose lease has expired, and from the API server for
// nodes that this run drains.
//
// The cache may be stale. For other runs' leases that is harmless: acquiring a lease reads it from the API server, and a change of the
// cache causes another reconcile. The run's own leases decide whether its blocks may continue, and are read from the API server unless the
// cache has the version that was read there last. They are read one by one, because a consistent list waits for etcd's progress
// notification, up to a tenth of a second.
func (o *Observer) leases(ctx context.Context, world *World) error {
	all, versions, damaged, err := leases(ctx, o.Client, o.LeaseNamespace)
	if err != nil {
		return err
	}
	world.DamagedLeases = damaged
	me := plan.HolderOf(world.Run)
	if plan.Leased(experiment.PlacementOf(world.Run.Spec.Placement)) {
		for _, node := range o.own(world, all) {
			if version, ok := o.Memory.leases.Load(node); ok && version == versions[node] {
				continue
			}
			if all, err = o.refresh(ctx, all, node); err != nil {
				return err
			}
		}
	}
	for i := range all {
		if all[i].Holder == me && all[i].Draining {
			if all[i].Busy, err = Busy(ctx, o.Executor, o.Live, me, all[i].Node, besides(world, all[i].Node)); err != nil {
				return err
			}
		}
		if !all[i].Held() || all[i].Holder == me {
			continue
		}
		if where := all[i].Holder.Namespace; len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, where) {
			all[i].Busy = "its execution in namespace " + where + ", which this operator does not watch,"
			continue
		}
		// Skip the holder of a lease in force: acquiring a lease reads the state of its holder from the API server.
		if !all[i].Expired(o.Clock.Now().Add(soon)) {
			continue
		}
		from := source{o.Client, true}
		if o.Executor.State().Absent {
			from = source{o.Live, false} // The cache of executions would not answer.
		}
		switch all[i].Busy, err = busy(ctx, o.Executor, from, all[i].Holder, all[i].Node, ""); {
		case apierrors.IsForbidden(err):
			// The reconcile of the node ends the lease once the namespace is gone.
			all[i].Busy = "its execution in namespace " + all[i].Holder.Namespace + ", which this operator may not read,"
		case err != nil:
			return err
		}
	}
	lease.Sort(all)
	world.Leases = all
	return nil
}

// besides is the name of the newest wave's execution if none of its blocks is on the node, and empty otherwise.
func besides(world *World, node string) string {
	newest := world.Ledger.Newest
	if newest == nil || slices.ContainsFunc(newest.Blocks, func(b record.Block) bool { return b.Lease == nil || b.Lease.Node == node }) {
		return ""
	}
	return executor.Name(world.Run.Name, newest.Wave)
}

// own are the nodes that the run holds, according to any source that may be stale.
func (o *Observer) own(world *World, all []lease.Lease) []string {
	nodes := slices.Clone(o.Memory.Noted(world.Run).Taken)
	for _, l := range all {
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

// refresh replaces a cached lease by the API server's. A lease that cannot be parsed is left out, because it has no valid holder.
func (o *Observer) refresh(ctx context.Context, all []lease.Lease, node string) ([]lease.Lease, error) {
	all = slices.DeleteFunc(all, func(l lease.Lease) bool { return l.Node == node })
	var object coordinationv1.Lease
	if err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.LeaseNamespace, Name: lease.Name(node)}, &object); err != nil {
		return all, client.IgnoreNotFound(err)
	}
	o.Memory.leases.Store(node, object.ResourceVersion)
	if fresh, err := lease.FromObject(&object); err == nil {
		all = append(all, fresh)
	}
	return all, nil
}

// holds reports whether the run holds a lease.
func holds(world *World) bool {
	me := plan.HolderOf(world.Run)
	return slices.ContainsFunc(world.Leases, func(l lease.Lease) bool { return l.Holder == me })
}

// waiting reads which runs wait for a lease, including this one, and counts the earlier ones of the namespace that have not started. A run
// is in the queue by its status, and leaves it when something else keeps it from starting.
func (o *Observer) waiting(ctx context.Context, world *World) error {
	var runs assayv1alpha1.BenchmarkRunList
	// The list is read only, and copying a thousand runs would be most of the cost of a reconcile.
	if err := o.Client.List(ctx, &runs, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range runs.Items {
		if o.waitsBefore(&runs.Items[i], world.Run) {
			world.Earlier++
		}
		// A status that cannot be written leaves a run in the queue: it must not be granted nodes that it does not take.
		if run := &runs.Items[i]; WaitsForLease(run) && !o.Memory.Noted(run).Passive {
			world.Waiting = append(world.Waiting, plan.WaitingRun{
				Run: plan.HolderOf(run), Created: run.CreationTimestamp.Time, Placement: experiment.PlacementOf(run.Spec.Placement),
			})
		}
	}
	slices.SortFunc(world.Waiting, func(a, b plan.WaitingRun) int { return cmp.Compare(a.Run.UID, b.Run.UID) })
	return nil
}

// waitsBefore reports whether a run of the same namespace was created before another one and has neither started nor ended.
func (o *Observer) waitsBefore(run, other *assayv1alpha1.BenchmarkRun) bool {
	if run.Namespace != other.Namespace || run.UID == other.UID || plan.Ended(run) || !run.DeletionTimestamp.IsZero() ||
		run.Status.Wave != nil || o.Memory.Noted(run).Begins {
		return false
	}
	created := run.CreationTimestamp.Compare(other.CreationTimestamp.Time)
	return created < 0 || created == 0 && run.Name < other.Name
}

// CountUnderWay counts the other runs of the namespace that have started and not ended. A deleted run that still has a node or a block
// counts: otherwise deleting runs without their finalizer would allow an additional run for each while its blocks end.
func (o *Observer) CountUnderWay(ctx context.Context, world *World) error {
	var runs assayv1alpha1.BenchmarkRunList
	if err := o.Client.List(ctx, &runs, client.InNamespace(world.Run.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	gone, err := o.atWork(ctx, world)
	if err != nil {
		return err
	}
	world.UnderWay = 0
	for i := range runs.Items {
		delete(gone, string(runs.Items[i].UID))
		if run := &runs.Items[i]; run.UID != world.Run.UID && !plan.Ended(run) && (run.Status.Wave != nil || o.Memory.Noted(run).Begins) {
			world.UnderWay++
		}
	}
	world.UnderWay += len(gone)
	return nil
}

// atWork are the uids of the runs of the namespace, there or gone, that have a node or a block, but for the run's own.
func (o *Observer) atWork(ctx context.Context, world *World) (map[string]bool, error) {
	var pods corev1.PodList
	if err := o.Client.List(ctx, &pods, client.InNamespace(world.Run.Namespace), client.HasLabels{executor.RunUIDLabel},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for i := range pods.Items {
		if pod := &pods.Items[i]; aliveBlock(pod) {
			out[pod.Labels[executor.RunUIDLabel]] = true
		}
	}
	for _, l := range world.Leases {
		if l.Holder.Namespace == world.Run.Namespace {
			out[l.Holder.UID] = true
		}
	}
	delete(out, string(world.Run.UID))
	return out, nil
}

// Begun reports whether a run holds a node or has a wave, whether or not its status shows it yet.
func Begun(world *World) bool { return holds(world) || world.Ledger.Newest != nil }

// WaitsForLease reports whether a run is in the queue for nodes.
func WaitsForLease(run *assayv1alpha1.BenchmarkRun) bool {
	return run.Status.Queue != nil && !plan.Ended(run) && !plan.Suspended(run) && !plan.Cancelled(run) && run.DeletionTimestamp.IsZero()
}
