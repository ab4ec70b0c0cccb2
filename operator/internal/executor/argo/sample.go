package argo

import (
	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Sample returns a Workflow with every field that Build sets. An API server that accepts it supports all of them.
func Sample(config Config, namespace string) (*Workflow, error) {
	spec := assayv1alpha1.BenchmarkRunSpec{
		Arms:      []assayv1alpha1.Arm{{Name: "only"}},
		Placement: assayv1alpha1.Placement{CPUs: 1, Memory: resource.MustParse("64Mi"), Exclusive: assayv1alpha1.ExclusiveNode, MaxNodes: 1},
		Design:    assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 2, Max: 2}},
		Budget:    assayv1alpha1.Budget{Trials: 100},
	}
	template := assayv1alpha1.BenchmarkTemplateSpec{
		Image: "sample", Command: []string{"/sample"},
		Metrics: []assayv1alpha1.Metric{{Name: "time", Unit: "s", Direction: assayv1alpha1.LowerIsBetter}},
	}
	exp, err := experiment.Freeze(record.Run{Namespace: namespace, Name: "assay-argo-check", UID: "sample"}, spec, template)
	if err != nil {
		return nil, err
	}
	lanes := []design.Lane{{Node: "node"}}
	wave, err := design.BuildWave(exp, 0, 0, 2, lanes)
	if err != nil {
		return nil, err
	}
	return Build(config, exp, wave, lanes, nil, longestDeadline)
}
