// Package cached removes the fields that the operator does not read from the objects in its caches: there may be thousands of objects of a
// megabyte each.
package cached

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
)

// Slim removes the unused fields from an object that is not of the engine. Cached objects are never written back.
func Slim(object any) (any, error) {
	if accessor, ok := object.(metav1.ObjectMetaAccessor); ok {
		SlimMeta(accessor.GetObjectMeta())
	}
	switch object := object.(type) {
	case *corev1.Pod:
		object.Spec = corev1.PodSpec{NodeName: object.Spec.NodeName}
		object.Annotations, object.Labels = nil, executor.OwnLabels(object.Labels)
	case *corev1.Node:
		object.Status.Images = nil
		object.Annotations = nil
	case *assayv1alpha1.BenchmarkRun:
		// The spec of a run is read from the API server. The cache holds the fields that decisions about other runs need.
		object.Annotations, object.Labels = nil, nil
		experiment.DefaultRun(&object.Spec)
		object.Spec = assayv1alpha1.BenchmarkRunSpec{
			TemplateRef: object.Spec.TemplateRef, Placement: object.Spec.Placement, Suspend: object.Spec.Suspend, Cancel: object.Spec.Cancel,
		}
		object.Status.Gates, object.Status.Candidates, object.Status.Search, object.Status.Warnings = nil, nil, nil, nil
	case *assayv1alpha1.BenchmarkSchedule:
		// A due schedule is read from the API server. The cache retains its series and, for the metrics, its due times.
		object.Annotations, object.Labels = nil, nil
		object.Spec = assayv1alpha1.BenchmarkScheduleSpec{
			Series: object.Spec.Series, Schedule: object.Spec.Schedule, TimeZone: object.Spec.TimeZone, Suspend: object.Spec.Suspend,
		}
		object.Status = assayv1alpha1.BenchmarkScheduleStatus{}
	case *assayv1alpha1.BenchmarkRevision:
		// A recorded revision is read from the API server as well.
		object.Annotations, object.Labels = nil, nil
		object.Spec = assayv1alpha1.BenchmarkRevisionSpec{Series: object.Spec.Series}
		object.Status = assayv1alpha1.BenchmarkRevisionStatus{}
	case *assayv1alpha1.BenchmarkTemplate:
		// A run that is not accepted yet reads its template from the API server. The cache only records that the template exists.
		object.Annotations, object.Labels = nil, nil
		object.Spec = assayv1alpha1.BenchmarkTemplateSpec{}
	}
	return object, nil
}

// SlimMeta removes unused metadata. It retains only the controller reference of the owners, because tenants may add owners and finalizers
// of any length; a run's own are read from the API server.
func SlimMeta(meta metav1.Object) {
	meta.SetManagedFields(nil)
	meta.SetFinalizers(nil)
	var owners []metav1.OwnerReference
	if owner := metav1.GetControllerOf(meta); owner != nil && len(owner.Name) <= validation.DNS1123SubdomainMaxLength {
		owners = append(owners, *owner)
	}
	meta.SetOwnerReferences(owners)
}
