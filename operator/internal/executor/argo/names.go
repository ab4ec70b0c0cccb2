package argo

import "assay.dev/assay/operator/internal/executor"

const (
	// ReplanAnnotation records why a workflow was stopped whose missing blocks are planned again.
	ReplanAnnotation = "assay.dev/planned-again"

	instanceIDLabel = "workflows.argoproj.io/controller-instanceid"
)

// OwnLabels returns the labels that Assay put on a workflow, without those that Argo adds.
func OwnLabels(all map[string]string) map[string]string {
	return executor.Only(all, executor.ManagedByLabel, executor.RunLabel, executor.RunUIDLabel, executor.WaveLabel, instanceIDLabel)
}

// OwnAnnotations returns the annotations that Assay put on a workflow, without those that others add.
func OwnAnnotations(all map[string]string) map[string]string {
	if out := executor.Only(all, titleAnnotation, descriptionAnnotation, ReportAnnotation, ReplanAnnotation); len(out) > 0 {
		return out
	}
	return nil
}
