package argo

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits of a pod's ephemeral storage, in bytes. The kubelet measures it now and then and evicts a pod above its limit, which bounds
// trusted containers only; the limit of trials is in scratch.go. Requests are small, because most containers use little storage, and it
// should not limit the number of runs.
const (
	emptyRoom  = 1 << 20
	binRoom    = 256 << 20
	imageRoom  = 2 << 30
	argoRoom   = 512 << 20
	logRoom    = 256 << 20
	storageAsk = 16 << 20
	// executorRoom is the limit of Argo's containers, for their logs and Argo's volumes.
	executorRoom = 2*argoRoom + 256<<20
)

func emptyDir(name string, room int64) corev1.Volume {
	limit := resource.NewQuantity(room, resource.BinarySI)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: limit}}}
}

// stored adds ephemeral storage to the resources of a container. The sum of the containers' limits also bounds the pod's volumes, so that
// the limit of a container includes the volumes that it writes.
func stored(resources corev1.ResourceRequirements, room int64) corev1.ResourceRequirements {
	resources.Requests, resources.Limits = resources.Requests.DeepCopy(), resources.Limits.DeepCopy()
	resources.Requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(storageAsk, resource.BinarySI)
	resources.Limits[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(room, resource.BinarySI)
	return resources
}
