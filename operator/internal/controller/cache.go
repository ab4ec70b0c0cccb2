package controller

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/cached"
	"assay.dev/assay/operator/internal/executor/argo"
)

// CacheOptions limit the caches to what is read: workflows and pods of runs, Leases of nodes, which are in one namespace, and of every
// object the fields that decisions need. An empty list of namespaces means all of them.
func CacheOptions(namespaces []string, leaseNamespace string) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{argo.ManagedByLabel: argo.ManagedBy})}
	options := cache.Options{
		DefaultTransform:  cached.Slim,
		DefaultNamespaces: map[string]cache.Config{},
		ByObject: map[client.Object]cache.ByObject{
			&argo.Workflow{}:        ours,
			&corev1.Pod{}:           ours,
			&coordinationv1.Lease{}: {Label: ours.Label, Namespaces: map[string]cache.Config{leaseNamespace: {}}},
		},
	}
	for _, namespace := range namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}
