// Package argo executes waves as Argo Workflows, and checks whether the cluster's Argo supports every field that Assay writes. Only
// identifiers made by Assay pass through Argo's templating; user input reaches the runner unchanged in the wave's ConfigMap.
//
// The Argo types in it are not part of Assay's API:
// +kubebuilder:skip
package argo
