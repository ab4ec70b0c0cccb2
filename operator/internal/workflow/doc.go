// Package workflow writes a wave as an Argo Workflow. It is pure. Only identifiers made by Assay pass through Argo's
// templating; what people wrote reaches the runner inside the wave's ConfigMap, byte for byte.
//
// Argo's types in it are none of Assay's API:
// +kubebuilder:skip
package workflow
