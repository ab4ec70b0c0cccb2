package argo

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewChecker returns a Checker for the API server of a connection. It tries a Workflow in the namespace that has the fields of every wave.
func NewChecker(config *rest.Config, writer client.Client, waves Config, namespace string) (Checker, error) {
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Checker{}, err
	}
	sample, err := Sample(waves, namespace)
	if err != nil {
		return Checker{}, fmt.Errorf("workflow of the check of Argo: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sample)
	if err != nil {
		return Checker{}, err
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "status")
	return Checker{
		Kinds: func(context.Context) (*metav1.APIResourceList, error) {
			return discover.ServerResourcesForGroupVersion(GroupVersion.String())
		},
		// Server-side apply rejects a field that is not in the CRD. Other writes would drop it silently.
		Try: func(ctx context.Context) error {
			object := (&unstructured.Unstructured{Object: content}).DeepCopy()
			return writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.FieldOwner("assay-argo-check"),
				client.ForceOwnership)
		},
	}, nil
}
