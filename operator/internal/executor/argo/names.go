package argo

import (
	"fmt"

	"assay.dev/assay/operator/internal/record"
)

// Labels of workflows and their pods.
const (
	// RunLabel is the name of the BenchmarkRun.
	RunLabel = "assay.dev/run"
	// RunUIDLabel keeps apart runs that used the same name.
	RunUIDLabel = "assay.dev/run-uid"
	// WaveLabel is the number of the wave.
	WaveLabel = "assay.dev/wave"
	// PartLabel is what a pod is: block or analysis.
	PartLabel = "assay.dev/part"
	// ManagedByLabel selects everything that the operator made.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is its value.
	ManagedBy = "assay-operator"

	// AnalysisPart is the value of PartLabel of pods that analyse.
	AnalysisPart = "analysis"

	// AgainAnnotation records why a workflow was stopped whose missing blocks are planned again.
	AgainAnnotation = "assay.dev/planned-again"

	instanceIDLabel = "workflows.argoproj.io/controller-instanceid"
)

// WaveFile is the key of the wave's plan in its ConfigMap.
const WaveFile = "wave.json"

// Name of a wave's Workflow and ConfigMap. Argo takes names of up to 63 characters; a run's name has at most 52.
func Name(run string, wave int) string { return run + "-w" + record.WaveName(wave) }

// Labels of a wave's objects.
func Labels(run record.Run, wave int) map[string]string {
	return map[string]string{
		ManagedByLabel: ManagedBy,
		RunLabel:       run.Name,
		RunUIDLabel:    run.UID,
		WaveLabel:      fmt.Sprint(wave),
	}
}

// OwnLabels are the labels that Assay put on a workflow, without those that Argo adds.
func OwnLabels(all map[string]string) map[string]string {
	return only(all, ManagedByLabel, RunLabel, RunUIDLabel, WaveLabel, instanceIDLabel)
}

// OwnAnnotations are the annotations that Assay put on a workflow, without those that others add.
func OwnAnnotations(all map[string]string) map[string]string {
	if out := only(all, titleAnnotation, descriptionAnnotation, ReportAnnotation, AgainAnnotation); len(out) > 0 {
		return out
	}
	return nil
}

// only is what a map has under some names.
func only(all map[string]string, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if value, ok := all[name]; ok {
			out[name] = value
		}
	}
	return out
}
