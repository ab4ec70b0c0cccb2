package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// LeaseConfig is where the leases are and how long they last.
type LeaseConfig struct {
	Namespace string
	Duration  time.Duration
}

// Leases are not server-side applied, because a forced write would take a node from its holder. Every write names the version that the
// decision was based on, and the second of two writers gets a conflict.

// takeLeases acquires nodes for a run. It can be repeated: leases that the run already holds are not changed.
func (a *Applier) takeLeases(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.AcquireLeases) error {
	if action.For != nil {
		if err := a.Executor.CheckWave(ctx, &rehearsal{a, run}, *action.For); err != nil {
			return fmt.Errorf("check the wave before a node is taken: %w", err)
		}
	}
	// The finalizer first, so that a run that holds a node cannot be deleted before it released the node.
	if err := a.addFinalizer(ctx, run); err != nil {
		return err
	}
	for _, node := range action.Nodes {
		if err := a.takeLease(ctx, run, node, action.Whole); err != nil {
			return err
		}
	}
	return nil
}

// takeLease acquires a node for a run, and records in its ledger that it holds it.
func (a *Applier) takeLease(ctx context.Context, run *assayv1alpha1.BenchmarkRun, node string, whole bool) error {
	object, current, err := a.readLease(ctx, node)
	if err != nil {
		return err
	}
	if current.Holder == plan.HolderOf(run) {
		return a.recordLease(ctx, run, current)
	}
	if current.Held() {
		// The previous holder did not renew. Record the end of its lease before the next holder's begins.
		if current, err = a.endLease(ctx, object, current); err != nil {
			return err
		}
	}
	if err := a.recordEnd(ctx, current.Last); err != nil {
		return err
	}
	if object.ResourceVersion == "" {
		// The deleted Lease object named the holder of the node. Check all runs that may use it.
		busy, err := observe.OthersOn(ctx, a.Executor, a.Client, a.Live, plan.HolderOf(run), node)
		if err != nil {
			return err
		}
		if busy != "" {
			return tooLate(node, fmt.Sprintf("its Lease object is missing, and %s has not ended", busy))
		}
		// Recreate it with a token that this run never had.
		if current.Token, err = ledger.LastToken(ctx, observe.RunStore(a.Store, run), node); err != nil {
			return &LedgerError{err}
		}
	}
	taken := current.TakenBy(plan.HolderOf(run), whole, a.Lease.Duration, a.now())
	if err := a.writeLease(ctx, object, taken); err != nil {
		return fmt.Errorf("take the lease of node %s: %w", node, err)
	}
	return a.recordLease(ctx, run, taken)
}

// editLeases changes leases of the run. A lease that another run has acquired by now is a conflict, which the next reconcile resolves.
func (a *Applier) editLeases(ctx context.Context, run *assayv1alpha1.BenchmarkRun, nodes []string, what string,
	edit func(lease.Lease) (lease.Lease, error)) error {
	for _, node := range nodes {
		object, held, err := a.readLease(ctx, node)
		if err != nil {
			return err
		}
		if held.Holder != plan.HolderOf(run) {
			return tooLate(node, "the run no longer holds it")
		}
		wanted, err := edit(held)
		if err == nil {
			err = a.writeLease(ctx, object, wanted)
		}
		if err != nil {
			return fmt.Errorf("%s the lease of node %s: %w", what, node, err)
		}
	}
	return nil
}

// releaseLeases releases drained leases. Nothing of the run can have started on their nodes since they were drained.
func (a *Applier) releaseLeases(ctx context.Context, run *assayv1alpha1.BenchmarkRun, action plan.ReleaseLeases) error {
	for _, node := range action.Nodes {
		object, current, err := a.readLease(ctx, node)
		if err != nil {
			return err
		}
		if current.Holder != plan.HolderOf(run) {
			continue
		}
		if !current.Draining {
			return tooLate(node, "blocks may start there")
		}
		if _, err := a.asDecidedOn(ctx, run); err != nil {
			return err
		}
		ended := current.Ended(lease.Released, a.now())
		if err := a.writeLease(ctx, object, ended); err != nil {
			return fmt.Errorf("release the lease of node %s: %w", node, err)
		}
		if err := a.recordEnd(ctx, ended.Last); err != nil {
			// Release the node although the object store is unreachable. The next holder writes this record first.
			ctrl.LoggerFrom(ctx).Info("The end of a lease is not in the ledger yet", "node", node, "error", err.Error())
		}
	}
	return nil
}

// Reclaim ends a lease that expired and whose run is over or gone, if nothing of it runs on the node.
func (a *Applier) Reclaim(ctx context.Context, node string) error {
	object, current, err := a.readLease(ctx, node)
	if err != nil || !current.Expired(a.now()) {
		return err
	}
	_, err = a.endLease(ctx, object, current)
	return err
}

// endLease ends another run's time, which was not renewed, after asking the API server itself whether something of it still runs.
func (a *Applier) endLease(ctx context.Context, object *coordinationv1.Lease, current lease.Lease) (lease.Lease, error) {
	if !current.Expired(a.now()) {
		return lease.Lease{}, tooLate(current.Node,
			fmt.Sprintf("run %s holds it until %s", current.Holder.Run(), current.ExpiresAt().Format(time.RFC3339)))
	}
	busy, err := observe.Busy(ctx, a.Executor, a.Live, current.Holder, current.Node, "")
	if err != nil {
		return lease.Lease{}, err
	}
	if busy != "" {
		return lease.Lease{}, tooLate(current.Node, fmt.Sprintf("%s of run %s has not ended", busy, current.Holder.Run()))
	}
	ended := current.Ended(lease.Expired, a.now())
	if err := a.writeLease(ctx, object, ended); err != nil {
		return lease.Lease{}, fmt.Errorf("end the lease of node %s: %w", current.Node, err)
	}
	return ended, nil
}

// inForce returns the leases that the plan of a wave names, if its run holds every one of them.
func (a *Applier) inForce(ctx context.Context, run *assayv1alpha1.BenchmarkRun, wave *record.Wave) ([]lease.Lease, error) {
	var out []lease.Lease
	seen := map[record.Lease]bool{}
	for _, block := range wave.Blocks {
		if block.Lease == nil || seen[*block.Lease] {
			continue
		}
		seen[*block.Lease] = true
		_, current, err := a.readLease(ctx, block.Lease.Node)
		if err != nil {
			return nil, err
		}
		if current.Holder != plan.HolderOf(run) || current.Token != block.Lease.Token || current.Draining || current.Expired(a.now()) {
			return nil, tooLate(block.Lease.Node, fmt.Sprintf("wave %d needs it with token %d", wave.Wave, block.Lease.Token))
		}
		out = append(out, current)
	}
	return out, nil
}

// recordLease writes to the run's ledger that it holds a lease: no block starts before that is known.
func (a *Applier) recordLease(ctx context.Context, run *assayv1alpha1.BenchmarkRun, held lease.Lease) error {
	taken := record.LeaseTaken{
		Run: record.Run(held.Holder), Lease: record.Lease{Node: held.Node, Token: held.Token}, AcquiredAt: held.Acquired,
	}
	raw, err := record.Line(taken)
	if err != nil {
		return err
	}
	if err := store.EnsureCreated(ctx, observe.RunStore(a.Store, run), ledger.LeaseTakenKey(taken.Lease), raw); err != nil {
		return &LedgerError{fmt.Errorf("record of the lease of node %s: %w", held.Node, err)}
	}
	return nil
}

// recordEnd writes the end of a lease to the ledger of the run that had it. The first end that is written stands.
func (a *Applier) recordEnd(ctx context.Context, end *lease.End) error {
	if end == nil {
		return nil
	}
	out := record.LeaseEnd{
		Run: record.Run(end.Holder), Lease: record.Lease{Node: end.Node, Token: end.Token}, EndedAt: end.At, Reason: end.Why,
	}
	raw, err := record.Line(out)
	if err != nil {
		return err
	}
	s := store.WithPrefix(a.Store, ledger.RunPrefix(out.Run))
	if err := s.Create(ctx, ledger.LeaseEndKey(out.Lease), raw); err != nil && !errors.Is(err, store.ErrExists) {
		return &LedgerError{fmt.Errorf("record of the end of run %s's lease of node %s: %w", end.Holder.Run(), end.Node, err)}
	}
	return nil
}

// readLease reads a node's lease past the caches. A node without a Lease object has a lease without a holder.
func (a *Applier) readLease(ctx context.Context, node string) (*coordinationv1.Lease, lease.Lease, error) {
	object := &coordinationv1.Lease{}
	err := a.Live.Get(ctx, client.ObjectKey{Namespace: a.Lease.Namespace, Name: lease.Name(node)}, object)
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Lease.Namespace, Name: lease.Name(node), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
		}}, lease.Lease{Node: node}, nil
	}
	if err != nil {
		return nil, lease.Lease{}, fmt.Errorf("read the lease of node %s: %w", node, err)
	}
	if object.Labels[executor.ManagedByLabel] != executor.ManagedBy {
		return nil, lease.Lease{}, fmt.Errorf("the Lease %s in namespace %s is not this operator's, it has no label %s=%s: delete or rename "+
			"it, or give the operator another --lease-namespace",
			object.Name, object.Namespace, executor.ManagedByLabel, executor.ManagedBy)
	}
	current, err := lease.FromObject(object)
	return object, current, err
}

// writeLease writes a lease that was read, and returns a conflict if it has changed since.
func (a *Applier) writeLease(ctx context.Context, object *coordinationv1.Lease, wanted lease.Lease) error {
	if err := wanted.Write(object); err != nil {
		return err
	}
	if object.ResourceVersion != "" {
		return a.Client.Update(ctx, object)
	}
	err := a.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return tooLate(wanted.Node, "another run took it first")
	}
	return err
}

// tooLate is a conflict: the decision is out of date, and the next reconcile decides again.
func tooLate(node, why string) error {
	return apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name(node), errors.New(why))
}

func (a *Applier) now() time.Time { return a.Clock.Now().UTC().Truncate(time.Microsecond) }

// Taint adds the taint that the lease requests to a node, and removes other taints that leases left. It reports whether the node was
// changed.
func (a *Applier) Taint(ctx context.Context, node string, wanted *corev1.Taint) (bool, error) {
	var live corev1.Node
	if err := a.Live.Get(ctx, types.NamespacedName{Name: node}, &live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	taints, changed := lease.Taints(live.Spec.Taints, wanted)
	if !changed {
		return false, nil
	}
	before := live.DeepCopy()
	live.Spec.Taints = taints
	// The list of taints is one value to the API server, and others write it too.
	return true, a.Client.Patch(ctx, &live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
