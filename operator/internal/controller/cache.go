package controller

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/cached"
	"assay.dev/assay/operator/internal/executor"
)

// CacheOptions limit the caches to the objects that are read: pods of runs and objects of the engine's kinds, and Leases of nodes, which
// are in one namespace, and of every object to the fields that decisions need. An empty list of namespaces means all of them.
func CacheOptions(namespaces []string, leaseNamespace string, kinds ...executor.Kind) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{executor.ManagedByLabel: executor.ManagedBy})}
	options := cache.Options{
		DefaultTransform:  cached.Slim,
		DefaultNamespaces: map[string]cache.Config{},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:           ours,
			&coordinationv1.Lease{}: {Label: ours.Label, Namespaces: map[string]cache.Config{leaseNamespace: {}}},
		},
	}
	for _, kind := range kinds {
		options.ByObject[kind.Object] = cache.ByObject{Label: ours.Label, Transform: kind.Slim}
	}
	for _, namespace := range namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}
