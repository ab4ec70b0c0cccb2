package observe

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/plan"
)

// sortWorkflows finds the newest wave's workflow, those that analyse it again, and whether an earlier run of the same name left any.
func sortWorkflows(world *World, all []argo.Workflow) {
	slices.SortFunc(all, func(a, b argo.Workflow) int { return cmp.Compare(a.Name, b.Name) })
	newest, known := 0, world.Ledger.Newest != nil
	if known {
		newest = world.Ledger.Newest.Wave
	}
	for i := range all {
		flow := &all[i]
		if flow.Labels[argo.RunUIDLabel] != string(world.Run.UID) {
			world.Older = true
			continue
		}
		// While the ledger does not answer, the newest wave is the newest workflow's. The name of wave 1000 comes before that of wave 999.
		wave := 0
		if _, err := fmt.Sscan(flow.Labels[argo.WaveLabel], &wave); err != nil || known && wave != newest {
			continue
		}
		switch state := workflowState(flow); {
		case flow.Name != argo.Name(world.Run.Name, wave):
			world.Analyses = append(world.Analyses, state)
		case wave >= newest:
			world.Wave, newest = &state, wave
		}
	}
}

func workflowState(flow *argo.Workflow) plan.WorkflowState {
	return plan.WorkflowState{
		Name: flow.Name, CreatedAt: flow.CreationTimestamp.Time,
		Seen: flow.Status.Phase != "", Ended: flow.Status.Ended(), Message: flow.Status.Message,
		Suspended: flow.Spec.Suspend != nil && *flow.Spec.Suspend,
		Stopped:   flow.Spec.Shutdown != "",
		Again:     flow.Annotations[argo.AgainAnnotation],
		Deleting:  !flow.DeletionTimestamp.IsZero(),
	}
}
