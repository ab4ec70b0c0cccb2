// Package v1alpha1 holds the kinds a person writes: BenchmarkTemplate (a workload), BenchmarkRun (an experiment on it) and
// BenchmarkSchedule (runs of it over time); and BenchmarkRevision, which CI writes.
// +kubebuilder:object:generate=true
// +groupName=assay.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "assay.dev", Version: "v1alpha1"}

// AddToScheme adds this package's kinds to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&BenchmarkTemplate{}, &BenchmarkTemplateList{},
		&BenchmarkRun{}, &BenchmarkRunList{},
		&BenchmarkSchedule{}, &BenchmarkScheduleList{},
		&BenchmarkRevision{}, &BenchmarkRevisionList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
