package observe

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
)

// executionsOf lists the executions of all runs that have or had a name, from the cache.
func (o *Observer) executionsOf(ctx context.Context, run client.ObjectKey) (out []executor.Execution, err error) {
	err = o.Executor.Visit(ctx, executor.Query{Namespace: run.Namespace, Name: run.Name, Cached: true}, func(e executor.Execution) {
		out = append(out, e)
	})
	return out, err
}

// sortExecutions finds the newest wave's execution, its further analyses, and whether an earlier run of the same name left any.
func sortExecutions(world *World, all []executor.Execution) {
	slices.SortFunc(all, func(a, b executor.Execution) int { return cmp.Compare(a.Name, b.Name) })
	newest, known := 0, world.Ledger.Newest != nil
	if known {
		newest = world.Ledger.Newest.Wave
	}
	for i := range all {
		of := &all[i]
		if of.Run.UID != string(world.Run.UID) {
			world.EarlierRunDeleting = true
			continue
		}
		// While the ledger is unreachable, the newest wave is that of the newest execution. The name of wave 1000 sorts before that of 999.
		switch {
		case of.Wave < 0, known && of.Wave != newest:
		case of.Analysis:
			world.Analyses = append(world.Analyses, of.Execution)
		case of.Wave >= newest:
			world.Wave, newest = &of.Execution, of.Wave
		}
	}
}

// OrphanedHolders returns the earlier runs of a name that still own executions. Current is the uid of the run that has the name now.
func (o *Observer) OrphanedHolders(ctx context.Context, name client.ObjectKey, current types.UID) (gone []lease.Holder, err error) {
	executions, err := o.executionsOf(ctx, name)
	for i := range executions {
		if e := &executions[i]; e.Run.UID != string(current) && !e.Deleting && !slices.Contains(gone, e.Run) {
			gone = append(gone, e.Run)
		}
	}
	return gone, err
}
