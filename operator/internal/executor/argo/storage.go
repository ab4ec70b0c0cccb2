package argo

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What a pod may keep on its node's disk, in bytes. A pod that keeps more is evicted, so that no trial fills the disk that others
// measure on. Containers request little of it: most use next to nothing, and a node's disk is not to be what limits runs.
const (
	emptyRoom  = 1 << 20
	binRoom    = 256 << 20
	tmpRoom    = 4 << 30
	imageRoom  = 2 << 30
	argoRoom   = 512 << 20
	layerRoom  = 2 << 30
	storageAsk = 16 << 20
	// executorRoom is for containers that write logs, and for Argo's volumes.
	executorRoom = 2*argoRoom + 256<<20
)

func emptyDir(name string, room int64) corev1.Volume {
	limit := resource.NewQuantity(room, resource.BinarySI)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: limit}}}
}

// stored adds to the resources of a container what it may keep on disk. The limits of a pod's containers together bound its volumes
// too, so that a container that fills one has to have room for it.
func stored(resources corev1.ResourceRequirements, room int64) corev1.ResourceRequirements {
	resources.Requests, resources.Limits = resources.Requests.DeepCopy(), resources.Limits.DeepCopy()
	resources.Requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(storageAsk, resource.BinarySI)
	resources.Limits[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(room, resource.BinarySI)
	return resources
}
