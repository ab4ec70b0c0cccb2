package observe

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/workflow"
)

// sortWorkflows finds the newest wave's workflow, those that analyse it again, and whether an earlier run of the same name left any.
func sortWorkflows(world *World, all []workflow.Workflow) {
	slices.SortFunc(all, func(a, b workflow.Workflow) int { return cmp.Compare(a.Name, b.Name) })
	newest, known := 0, world.Ledger.Newest != nil
	if known {
		newest = world.Ledger.Newest.Wave
	}
	for i := range all {
		found := &all[i]
		if found.Labels[workflow.RunUIDLabel] != string(world.Run.UID) {
			world.Older = true
			continue
		}
		// While the ledger does not answer, the newest wave is the newest workflow's.
		wave := 0
		if _, err := fmt.Sscan(found.Labels[workflow.WaveLabel], &wave); err != nil || known && wave != newest {
			continue
		}
		state := workflowState(found)
		if found.Name == workflow.Name(world.Run.Name, wave) {
			world.Wave = &state
		} else {
			world.Analyses = append(world.Analyses, state)
		}
	}
}

func workflowState(found *workflow.Workflow) plan.WorkflowState {
	return plan.WorkflowState{
		Name: found.Name, CreatedAt: found.CreationTimestamp.Time,
		Seen: found.Status.Phase != "", Ended: found.Status.Ended(), Message: found.Status.Message,
		Suspended: found.Spec.Suspend != nil && *found.Spec.Suspend,
		Stopped:   found.Spec.Shutdown != "",
		Again:     found.Annotations[workflow.AgainAnnotation],
		Deleting:  !found.DeletionTimestamp.IsZero(),
	}
}
